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

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
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

// Run compares the planners over topologies, or over every kind in several forms where
// none is named, and prints a table and a summary line. The planner program is the
// running one, at path.
func Run(w io.Writer, path string, topologies []string) error {
	var deliberate []Deliberate
	if err := yaml.Unmarshal(differencesText, &deliberate); err != nil {
		return fmt.Errorf("differences.yaml: %w", err)
	}
	dir, err := os.MkdirTemp("", "c9s-conform-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	labs, err := loadLabs(dir, topologies)
	if err != nil {
		return err
	}
	c := newComparison(path)
	defer c.close()
	found := map[string][]Difference{}
	for _, l := range labs {
		if err := c.compare(l, deliberate, found); err != nil {
			return err
		}
	}
	return Print(w, found)
}

// comparison has the planners that are compared.
type comparison struct {
	catalogue *plan.Builtin
	// finished plans as c9s does with hooks; raw has all that the hooks say, and
	// nothing of the catalogue.
	finished  plan.Planner
	raw       plan.Planner
	processes []*plan.Hooks
}

func newComparison(path string) *comparison {
	catalogue := plan.NewBuiltin(kinds.Builtin(), plan.WithTemplateFuncs(topology.TemplateFuncs()))
	hooks, raw := plan.NewHooks(path), plan.NewHooks(path, plan.WithFull())
	return &comparison{
		catalogue: catalogue, raw: raw, finished: plan.NewAuto(hooks, catalogue, ""), processes: []*plan.Hooks{hooks, raw},
	}
}

func (c *comparison) close() {
	for _, p := range c.processes {
		p.Close()
	}
}

// compare plans every node of a lab with each planner, and adds to found every kind that
// it met, with its differences. Those of the hooks alone have "hook" before the field.
func (c *comparison) compare(l *lab.Lab, deliberate []Deliberate, found map[string][]Difference) error {
	for _, n := range l.Nodes {
		if n.Name == peer {
			continue
		}
		own, err := c.catalogue.Plan(context.Background(), l, n)
		if err != nil {
			return err
		}
		if found[n.Kind] == nil {
			found[n.Kind] = []Difference{}
		}
		for _, side := range []struct {
			planner plan.Planner
			prefix  string
			facts   func(*plan.Plan) map[string]string
		}{{c.finished, "", facts}, {c.raw, "hook ", hookFacts}} {
			p, err := side.planner.Plan(context.Background(), l, n)
			if err != nil {
				return err
			}
			for _, d := range differ(n.Kind, side.prefix, side.facts(p), side.facts(own)) {
				d.Reason = reasonFor(deliberate, d)
				if !slices.Contains(found[n.Kind], d) {
					found[n.Kind] = append(found[n.Kind], d)
				}
			}
		}
	}
	return nil
}

func reasonFor(deliberate []Deliberate, d Difference) string {
	for _, e := range deliberate {
		if (e.Kind == "*" || e.Kind == d.Kind) && e.Field == d.Field {
			return e.Reason
		}
	}
	return ""
}

func differ(kind, prefix string, a, b map[string]string) []Difference {
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
			field, name, _ := strings.Cut(k, " ")
			out = append(out, Difference{Kind: kind, Field: prefix + field, Hooks: strings.TrimSpace(name + " " + a[k]), Builtin: b[k]})
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

// peer is the far end in the labs of the kinds.
const peer = "peer"
