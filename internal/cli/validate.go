package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/fetch"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/render"
)

// verdict is the result of validate for one topology.
type verdict struct {
	Topology    string            `json:"topology"`
	OK          bool              `json:"ok"`
	Lab         string            `json:"lab"`
	Nodes       int               `json:"nodes"`
	Links       int               `json:"links"`
	Kinds       map[string]int    `json:"kinds"`
	Diagnostics []diag.Diagnostic `json:"diagnostics"`
}

func newValidate(world IO) *cobra.Command {
	f := &labFlags{}
	var output, release string
	var all bool
	cmd := &cobra.Command{
		Use:   "validate TOPO...",
		Short: "Check topologies and report every problem",
		Long: `Validate does what render does, but writes no objects. It reports every problem at once,
with file, line, column and remedy.`,
		Example: `  c9s validate topo.clab.yml
  c9s validate labs/*.clab.yml -o json --allow-missing`,
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: use json", output)
			}
			if release != "" && !slices.Contains(compile.Releases, release) {
				return fmt.Errorf("--for %q: use %s", release, strings.Join(compile.Releases, ", "))
			}
			if f.topo != "" {
				args = append(args, f.topo)
			}
			if err := notEmpty(args); err != nil {
				return err
			}
			if len(args) == 0 {
				args = []string{""}
			}
			return f.validateAll(cmd.Context(), world, args, validateOptions{json: output == "json", all: all, release: release})
		},
	}
	f.topoFlags.add(cmd)
	f.addPlanner(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	cmd.Flags().StringVar(&release, "for", "", "also report what a release of containerlab does not accept: "+strings.Join(compile.Releases, ", "))
	cmd.Flags().BoolVar(&all, "all", false, "print every diagnostic, and not the most important ones on a page")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(compile.Releases, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// validateOptions are the flags that only validate has.
type validateOptions struct {
	json, all bool
	// release is the release of containerlab that must accept the topologies too.
	release string
}

func (f *labFlags) validateAll(ctx context.Context, world IO, refs []string, o validateOptions) error {
	verdicts := make([]verdict, 0, len(refs))
	ok := true
	for _, ref := range refs {
		v, err := f.validate(ctx, world, ref, o)
		if err != nil {
			return err
		}
		ok = ok && v.OK
		verdicts = append(verdicts, v)
	}
	if o.json {
		if err := printJSON(world.Out, verdicts); err != nil {
			return fail(err)
		}
	}
	if !ok {
		return errFailed
	}
	return nil
}

// validate checks one topology; a topology that cannot be opened is a verdict
// too, so that the others are still checked.
func (f *labFlags) validate(ctx context.Context, world IO, ref string, o validateOptions) (verdict, error) {
	tell := report
	if o.all {
		tell = reportAll
	}
	v := verdict{Topology: fetch.Redact(ref), Kinds: map[string]int{}, Diagnostics: []diag.Diagnostic{}}
	c, err := f.compile(ctx, world, ref, pipeline.Input{For: o.release})
	if err != nil {
		if _, isFailure := err.(failure); !isFailure {
			return v, err
		}
		v.Diagnostics = append(v.Diagnostics, diag.Diagnostic{Code: "topology-source", Severity: diag.Error, Pos: diag.Pos{File: fetch.Redact(ref)}, Message: err.Error()})
		if !o.json {
			tell(world, v.Diagnostics)
		}
		return v, nil
	}
	defer c.Close()
	v.Topology = c.Source.Name
	diags := c.Diags
	if c.Lab != nil {
		v.Lab, v.Nodes, v.Links = c.Lab.Name, len(c.Lab.Nodes), len(c.Lab.Links)
		for _, n := range c.Lab.Nodes {
			v.Kinds[n.WrittenKind]++
		}
		w := world
		if o.json {
			w.Err = discard{}
		}
		if _, all, err := f.renderLab(ctx, w, c, []render.ImageRule{}, render.Options{}, nil); err != nil {
			return v, err
		} else {
			diags = all
		}
		if !o.all {
			diags = diag.Collapse(diags)
		}
	}
	v.OK = !hasErrors(diags)
	v.Diagnostics = append(v.Diagnostics, diags...)
	if !o.json {
		tell(world, diags)
		word := "ok"
		if !v.OK {
			word = "refused"
		}
		fmt.Fprintf(world.Out, "%s: %s (lab %s, %s, %s; %s)\n", show.Cell(v.Topology), word, show.Cell(v.Lab), diag.Count(v.Nodes, "node"), diag.Count(v.Links, "link"), summary(diags))
	}
	return v, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
