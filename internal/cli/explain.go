package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/policy"
	"github.com/c9s-lab/c9s/pkg/topology"
)

func newExplain(world IO) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [FIELD | CODE]",
		Short: "Explain a field of the topology or policy, or the code of a diagnostic",
		Long: `Explain prints the meaning of a topology field in containerlab and what c9s does with it,
the meaning of a field of the policy file (its path, after "policy." if the topology has such a
field too), or the cause and remedy of a diagnostic. Without an argument it lists all fields.`,
		Example: "  c9s explain binds\n  c9s explain topology.nodes.r1.certificate.issue\n  c9s explain mgmt.ipv4-subnet\n  c9s explain segments.gateway\n  c9s explain policy.image\n  c9s explain image-missing",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return slices.Concat(topology.Keys(), kinds.Builtin().KeyNames(), policyPaths(), codeNames()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, f := range topology.Vocabulary() {
					fmt.Fprintf(world.Out, "%-52s %s\n", f.Path, f.Treatment)
				}
				for _, key := range kinds.Builtin().KeyNames() {
					fmt.Fprintf(world.Out, "%-52s %s\n", "node."+key, strings.Join(kinds.Builtin().KindsWithKey(key), ", "))
				}
				for _, path := range policyPaths() {
					fmt.Fprintf(world.Out, "%-52s policy file\n", policyPrefix+path)
				}
				return nil
			}
			return explain(world.Out, args[0])
		},
	}
}

// explain prints the fields and the code called name; a few names are both.
func explain(w io.Writer, name string) error {
	fields, near := topology.Lookup(name)
	keys := keysOfKinds(name)
	code, isCode := diag.Explain(diag.Code(name))
	if len(fields) == 0 && len(keys) == 0 && !isCode {
		own, nearPolicy := policy.LookupField(name)
		if len(own) > 0 {
			explainPolicy(w, own)
			return nil
		}
		if own := strictyaml.Nearest(name, kinds.Builtin().KeyNames()); near == "" && own != "" {
			near = own
		}
		if near == "" {
			near = strictyaml.Nearest(name, codeNames())
		}
		if near == "" {
			near = nearPolicy
		}
		hint := "\"c9s explain\" lists all fields, and docs/reference/diagnostics.md all codes"
		if near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return fail(fmt.Errorf("%q is neither a field of containerlab or the policy file nor a code of c9s; %s", name, hint))
	}
	for i, f := range fields {
		if i > 0 {
			fmt.Fprintln(w)
		}
		explainField(w, f)
	}
	for i, k := range keys {
		if i+len(fields) > 0 {
			fmt.Fprintln(w)
		}
		k.explain(w)
	}
	if isCode {
		if len(fields)+len(keys) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "CODE:   %s\nSTAGE:  %s\nTEXT:   %s\nCAUSE:  %s\nREMEDY: %s\n", code.Code, code.Stage, code.Text, code.Cause, code.Remedy)
	}
	return nil
}

// policyPrefix tells a field of the policy file from one of the topology.
const policyPrefix = "policy."

func policyPaths() []string {
	var paths []string
	for _, f := range policy.Fields() {
		paths = append(paths, f.Path)
	}
	return paths
}

// explainPolicy prints a field of the policy file and those below it.
func explainPolicy(w io.Writer, fields []policy.Field) {
	fmt.Fprintf(w, "FIELD: %s, of the policy file (c9s.yaml)\nTYPE:  %s\nC9S:   %s\n", fields[0].Path, fields[0].Type, fields[0].Text)
	if len(fields) > 1 {
		fmt.Fprintln(w, "KEYS:")
	}
	for _, f := range fields[1:] {
		fmt.Fprintf(w, "    %s (%s)\n        %s\n", strings.TrimPrefix(f.Path, fields[0].Path+"."), f.Type, f.Text)
	}
}

func codeNames() []string {
	var names []string
	for _, e := range diag.Explanations() {
		names = append(names, string(e.Code))
	}
	return names
}

func explainField(w io.Writer, f topology.Field) {
	fmt.Fprintf(w, "FIELD:        %s\nTREATMENT:    %s\nCONTAINERLAB: %s\nC9S:          %s\n", f.Path, f.Treatment, f.Meaning, f.Here)
	if since := f.Since(); since != "" {
		fmt.Fprintf(w, "SINCE:        containerlab %s\n", since)
	}
	if f.Example != "" {
		fmt.Fprintf(w, "EXAMPLE:\n    %s\n", strings.ReplaceAll(f.Example, "\n", "\n    "))
	}
}

// keyOfKind is a key that only nodes of one kind can have.
type keyOfKind struct {
	name string
	kind *kinds.Kind
	key  kinds.Key
}

// keysOfKinds are the keys that a name or the end of a path stands for.
func keysOfKinds(name string) []keyOfKind {
	name = name[strings.LastIndexByte(name, '.')+1:]
	var out []keyOfKind
	for _, k := range kinds.Builtin().All() {
		if key, ok := k.Keys[name]; ok {
			out = append(out, keyOfKind{name, k, key})
		}
	}
	return out
}

func (k keyOfKind) explain(w io.Writer) {
	fmt.Fprintf(w, "FIELD:        node.%s\nKIND:         %s\nCONTAINERLAB: %s\nVALUE:        %s\n", k.name, k.kind.Name, k.key.Meaning, k.key.Wants())
	for _, line := range []struct{ label, text string }{
		{"DEFAULT", k.key.Default}, {"SINCE", "containerlab " + k.key.Since}, {"REPLACES", k.former()},
	} {
		if line.text != "" {
			fmt.Fprintf(w, "%-13s %s\n", line.label+":", line.text)
		}
	}
	if k.key.Example != "" {
		fmt.Fprintf(w, "EXAMPLE:\n    %s: %s\n", k.name, k.key.Example)
	}
}

// former is what topologies wrote before the key existed, "" for nothing.
func (k keyOfKind) former() string {
	switch {
	case k.key.EnvFormer:
		return "the environment variable " + k.key.Env
	case k.key.ProcessEnv != "":
		return k.key.ProcessEnv + " in the environment of containerlab"
	}
	return ""
}
