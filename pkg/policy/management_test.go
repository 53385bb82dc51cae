package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/lab"
)

const reachLab = `name: t
topology:
  defaults: {kind: linux, image: a}
  nodes:
    R_1: {group: routers}
    h1: {group: hosts}
    h2: {group: hosts}
    tool: {network-mode: "container:h2", group: tools}
    alone: {network-mode: none}
    sw: {kind: bridge}
`

// denials are the pairs of a lab that may not connect: "a>b".
func denials(t *testing.T, l *lab.Lab) []string {
	t.Helper()
	var to, from []string
	for _, n := range l.Nodes {
		for _, far := range n.Policy.DenyTo {
			to = append(to, n.ID+">"+far)
		}
		for _, far := range n.Policy.DenyFrom {
			from = append(from, far+">"+n.ID)
		}
	}
	slices.Sort(to)
	slices.Sort(from)
	if diff := cmp.Diff(to, from); diff != "" {
		t.Errorf("the ends disagree: %s", diff)
	}
	return to
}

func TestMgmtRules(t *testing.T) {
	for text, want := range map[string]string{
		"[]": "",
		"[{from: {groups: [hosts]}, to: {groups: [routers]}, allow: false}]": "h1>r-1 h2>r-1",
		"[{from: {groups: [hosts]}, allow: false}]":                          "h1>h2 h1>r-1 h2>h1 h2>r-1",
		"[{to: {names: [R_1]}, allow: no}]":                                  "h1>r-1 h2>r-1",
		"[{allow: false}]":                                                   "h1>h2 h1>r-1 h2>h1 h2>r-1 r-1>h1 r-1>h2",
		"[{allow: true}, {allow: false}]":                                    "",
		"[{from: {names: [h1]}, to: {names: [h2]}, allow: true}, {to: {groups: [hosts]}, allow: false}]":                                  "h2>h1 r-1>h1 r-1>h2",
		"[{to: {expression: 'node.group == \"hosts\"'}, from: {expression: 'node.name.startsWith(\"R\")'}, allow: false}, {allow: true}]": "r-1>h1 r-1>h2",
	} {
		l, diags := compileWith(t, reachLab, "management: "+text+"\n", compile.Options{})
		if got := errorsOf(diags, CodeUnused); len(got) > 0 {
			t.Errorf("%s: %v", text, got)
		}
		if got := strings.Join(denials(t, l), " "); got != want {
			t.Errorf("%s denies %q, want %q", text, got, want)
		}
	}
}

// TestMgmtRulesUnused: nodes without a management address of their own have no rules.
func TestMgmtRulesUnused(t *testing.T) {
	l, diags := compileWith(t, reachLab, "management:\n- {from: {groups: [tools]}, allow: false}\n- {to: {names: [alone, sw, x]}, allow: false}\n", compile.Options{})
	want := []string{
		"c9s.yaml:4:10: warning: from of a rule of management matches no node with a management address [policy-unused]",
		"c9s.yaml:5:8: warning: to of a rule of management matches no node with a management address [policy-unused]",
	}
	if diff := cmp.Diff(want, errorsOf(diags, CodeUnused)); diff != "" {
		t.Error(diff)
	}
	if got := denials(t, l); len(got) > 0 {
		t.Errorf("denied: %v", got)
	}
}

// TestManyMgmtRules: the first rule counts for each pair in a lab with more nodes than a word
// of a set has bits.
func TestManyMgmtRules(t *testing.T) {
	const nodes = 200
	var topo, rules strings.Builder
	topo.WriteString("name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n")
	for i := range nodes {
		fmt.Fprintf(&topo, "    n%d: {group: g%d}\n", i, i%2)
	}
	rules.WriteString("management:\n")
	for i := range 10_000 {
		fmt.Fprintf(&rules, "- {from: {names: [n%d]}, to: {groups: [g%d]}, allow: %v}\n", i%nodes, i/nodes%2, i/nodes%2 == 0)
	}
	l, diags := compileWith(t, topo.String(), rules.String(), compile.Options{})
	if got := errorsOf(diags, CodeUnused); len(got) > 0 {
		t.Fatal(got)
	}
	for _, n := range l.Nodes {
		odd := nodes / 2
		if n.Group == "g1" {
			odd-- // itself
		}
		if len(n.Policy.DenyTo) != odd {
			t.Errorf("%s may not connect to %d nodes, want the %d of g1", n.Name, len(n.Policy.DenyTo), odd)
		}
		for _, far := range n.Policy.DenyTo {
			if l.Node(far).Group != "g1" {
				t.Errorf("%s may not connect to %s", n.Name, far)
			}
		}
	}
}

// TestMgmtRulesAreStable: one more node changes the lists of others by its own name only.
func TestMgmtRulesAreStable(t *testing.T) {
	const rules = "management: [{from: {groups: [hosts]}, to: {groups: [hosts]}, allow: false}]\n"
	before, _ := compileWith(t, reachLab, rules, compile.Options{})
	after, _ := compileWith(t, strings.Replace(reachLab, "    h1:", "    h0: {group: hosts}\n    h1:", 1), rules, compile.Options{})
	got := slices.DeleteFunc(denials(t, after), func(pair string) bool { return strings.Contains(pair, "h0") })
	if diff := cmp.Diff(denials(t, before), got); diff != "" || len(got) != 2 {
		t.Errorf("%v: %s", got, diff)
	}
}

func TestInvalidMgmtRules(t *testing.T) {
	for text, want := range map[string]string{
		"management: {}":                                          "3:13: error: management must be a list, not a mapping",
		"management: [no]":                                        "3:14: error: an entry of management must be a mapping, not the text \"no\"",
		"management: [{}]":                                        "3:14: error: a rule of management does not say whether it allows",
		"management: [{allow: maybe}]":                            "3:22: error: allow must be true or false, not the text \"maybe\"",
		"management: [{allow: false, form: {}}]":                  "3:29: error: unknown key \"form\" in management[]",
		"management: [{allow: false, from: r1}]":                  "3:35: error: from must be a mapping",
		"management: [null]":                                      "3:14: error: a rule of management does not say whether it allows",
		"management: [{allow: false, from: {name: [r1]}}]":        "3:36: error: unknown key \"name\" in from",
		"management: [{allow: false, to: {names: ['[']}}]":        "3:41: error: pattern \"[\" is malformed",
		"management: [{allow: false, to: {names: [a], kind: b}}]": "3:46: error: unknown key \"kind\" in to",
	} {
		p, diags := Load("c9s.yaml", []byte(policyHead+text+"\n"))
		if got, want := strings.Join(errorsOf(diags), "\n"), "c9s.yaml:"+want+" [policy-invalid]"; got != want || p != nil {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}
