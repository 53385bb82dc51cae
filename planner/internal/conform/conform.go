// Package conform plans nodes with the hooks and with the built-in catalogue, and
// tells where the two differ in facts.
package conform

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/c9s-lab/c9s/planner/internal/hooks"
	"go.yaml.in/yaml/v3"
)

// differencesText lists the deliberate differences: kind, field, reason.
//
//go:embed differences.yaml
var differencesText []byte

// Deliberate is a difference that is meant to be.
type Deliberate struct {
	Kind   string `yaml:"kind"` // "*" for every kind
	Field  string `yaml:"field"`
	Reason string `yaml:"reason"`
}

// Difference is one fact that the planners do not agree on.
type Difference struct {
	Kind, Field    string
	Hooks, Builtin string
	// Reason is why it is meant to be, "" if it is not.
	Reason string
}

// Run compares the planners over topologies, or over one small lab of each kind
// where none is named, and prints a table and a summary line.
func Run(w io.Writer, topologies []string) error {
	labs, err := loadLabs(topologies)
	if err != nil {
		return err
	}
	var deliberate []Deliberate
	if err := yaml.Unmarshal(differencesText, &deliberate); err != nil {
		return fmt.Errorf("differences.yaml: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	found, err := Compare(labs, plan.NewHooks(self, plan.WithArgs(hooks.ProgramArgs...)), plan.NewBuiltin(kinds.Builtin(), plan.WithTemplateFuncs(topology.TemplateFuncs())), deliberate)
	if err != nil {
		return err
	}
	return Print(w, found)
}

// Compare plans every node of labs with both planners. The result has every kind
// that was met, with its differences.
func Compare(labs []*lab.Lab, a, b plan.Planner, deliberate []Deliberate) (map[string][]Difference, error) {
	found := map[string][]Difference{}
	for _, l := range labs {
		for _, n := range l.Nodes {
			if n.Name == peer && len(labs) > 1 {
				continue
			}
			pa, err := a.Plan(context.Background(), l, n)
			if err != nil {
				return nil, err
			}
			pb, err := b.Plan(context.Background(), l, n)
			if err != nil {
				return nil, err
			}
			if found[n.Kind] == nil {
				found[n.Kind] = []Difference{}
			}
			for _, d := range differ(n.Kind, facts(pa), facts(pb)) {
				d.Reason = reasonFor(deliberate, d)
				if !slices.Contains(found[n.Kind], d) {
					found[n.Kind] = append(found[n.Kind], d)
				}
			}
		}
	}
	return found, nil
}

func reasonFor(deliberate []Deliberate, d Difference) string {
	for _, e := range deliberate {
		if (e.Kind == "*" || e.Kind == d.Kind) && e.Field == d.Field {
			return e.Reason
		}
	}
	return ""
}

func differ(kind string, a, b map[string]string) []Difference {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	var out []Difference
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if a[k] != b[k] {
			field, _, _ := strings.Cut(k, " ")
			out = append(out, Difference{Kind: kind, Field: field, Hooks: strings.TrimSpace(k[len(field):] + " " + a[k]), Builtin: b[k]})
		}
	}
	return out
}

// Print writes the table and the line "N kinds agree, M differ".
func Print(w io.Writer, found map[string][]Difference) error {
	agree, differing := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		open := slices.DeleteFunc(slices.Clone(found[kind]), func(d Difference) bool { return d.Reason != "" })
		state := "agrees"
		if len(open) > 0 {
			state = "differs"
			differing++
		} else {
			agree++
			if len(found[kind]) > 0 {
				state = "agrees but for what is meant to differ"
			}
		}
		if _, err := fmt.Fprintf(w, "%-28s %s\n", kind, state); err != nil {
			return err
		}
		for _, d := range found[kind] {
			note := ""
			if d.Reason != "" {
				note = "  (" + d.Reason + ")"
			}
			fmt.Fprintf(w, "    %-14s hooks: %s\n    %-14s builtin: %s%s\n", d.Field, clip(d.Hooks), "", clip(d.Builtin), note)
		}
	}
	_, err := fmt.Fprintf(w, "%d kinds agree, %d differ\n", agree, differing)
	return err
}

func clip(s string) string {
	s = strings.ReplaceAll(s, "\n", `\n`)
	if len(s) > 220 {
		return s[:220] + "..."
	}
	return cmp.Or(s, "-")
}

// peer is the far end in the small labs.
const peer = "peer"

// loadLabs compiles topologies, or makes a lab of every kind.
func loadLabs(files []string) ([]*lab.Lab, error) {
	var out []*lab.Lab
	if len(files) == 0 {
		for _, k := range kinds.Builtin().All() {
			if k.Refused == "" {
				l, err := compileText(smallLab(k), "")
				if err != nil {
					return nil, fmt.Errorf("kind %s: %w", k.Name, err)
				}
				out = append(out, l)
			}
		}
		return out, nil
	}
	for _, name := range files {
		src, err := topology.Open(context.Background(), name, os.Stdin)
		if err != nil {
			return nil, err
		}
		l, err := compileSource(src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// smallLab is two nodes and a link: the first end that the kind's rules allow.
func smallLab(k *kinds.Kind) string {
	iface := "eth1"
	for _, name := range []string{"eth1", "ethernet-1/1", "1/1/1", "1/1/c1/1", "Gi0-0-0-0", "Hu0_0_0_1", "swp1", "Ethernet0/1", "eth4", "et-0/0/0", "port1", "e1-1"} {
		probe := &lab.Node{Name: "n1", Kind: k.Name}
		linux, alias, err := k.MapInterface(name, probe)
		if err != nil {
			continue
		}
		probe.Endpoints = []*lab.Endpoint{{Node: "n1", Interface: linux, Alias: alias}}
		if len(k.CheckInterfaces(probe)) == 0 {
			iface = name
			break
		}
	}
	extra := ""
	if k.Types.Required && len(k.Types.Values) > 0 {
		extra = ", type: " + slices.Sorted(maps.Keys(k.Types.Values))[0]
	}
	return fmt.Sprintf("name: t\ntopology:\n  nodes:\n    n1: {kind: %s, image: 'registry.example/img:1.2.3'%s}\n    %s: {kind: linux, image: 'alpine:3'}\n  links:\n    - endpoints: [\"n1:%s\", \"%s:eth1\"]\n",
		k.Name, extra, peer, iface, peer)
}

func compileText(text, dir string) (*lab.Lab, error) {
	return compileSource(&topology.Source{Name: "t.clab.yml", Base: "t.clab.yml", Dir: dir, Data: []byte(text)})
}

func compileSource(src *topology.Source) (*lab.Lab, error) {
	f, diags := topology.Load(src, topology.Options{Env: os.Environ()})
	if f == nil {
		return nil, fmt.Errorf("%s", diags[0])
	}
	home, _ := os.UserHomeDir()
	l, more := compile.Compile(context.Background(), f, compile.Options{AllowMissing: true, Home: home, Env: os.Environ()})
	for _, d := range append(diags, more...) {
		if d.Severity == "error" {
			return nil, fmt.Errorf("%s", d)
		}
	}
	return l, nil
}
