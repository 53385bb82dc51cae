package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/compile"
)

func TestExternal(t *testing.T) {
	l, diags := compileWith(t, reachLab, `
external:
- {prefixes: [10.0.0.0/8, "2001:db8::/32"], allow: false}
- {prefixes: [10.0.0.0/16, 10.0.0.0/24, 9.0.0.0/8], allow: true}
profiles:
- name: hosts
  match: {groups: [hosts]}
  set: {external: [{prefixes: [0.0.0.0/0], allow: false}]}
- {name: free, priority: 50, match: {names: [h2]}, set: {external: []}}
`, compile.Options{})
	if got := errorsOf(diags, CodeUnused); len(got) > 0 {
		t.Error(got)
	}
	for name, want := range map[string]string{
		"R_1": "[{2001:db8::/32 false} {10.0.0.0/24 true} {10.0.0.0/16 true} {9.0.0.0/8 true} {10.0.0.0/8 false}]",
		"h1":  "[{0.0.0.0/0 false}]",
		"h2":  "[]",
	} {
		if got := fmt.Sprint(l.Node(name).Policy.External); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if plain, _ := compileWith(t, reachLab, "profiles: []\n", compile.Options{}); plain.Node("h1").Policy.External != nil {
		t.Error("a policy without external sets it")
	}
	// A key without a value sets nothing.
	blank, _ := compileWith(t, reachLab, "external: [{prefixes: [10.0.0.0/8], allow: false}]\nprofiles: [{name: a, set: {external: }}]\n", compile.Options{})
	if got := fmt.Sprint(blank.Node("h1").Policy.External); got != "[{10.0.0.0/8 false}]" {
		t.Errorf("a profile with a blank external has the rules %s", got)
	}
	// One more node changes no other's rules.
	more, _ := compileWith(t, strings.Replace(reachLab, "    h1:", "    h0: {group: hosts}\n    h1:", 1), "external: [{prefixes: [10.0.0.0/8], allow: false}]\n", compile.Options{})
	less, _ := compileWith(t, reachLab, "external: [{prefixes: [10.0.0.0/8], allow: false}]\n", compile.Options{})
	for _, n := range less.Nodes {
		if diff := cmp.Diff(fmt.Sprint(n.Policy.External), fmt.Sprint(more.Node(n.Name).Policy.External)); diff != "" {
			t.Errorf("%s: %s", n.Name, diff)
		}
	}
}

func TestInvalidExternal(t *testing.T) {
	for text, want := range map[string]string{
		"external: all":    "3:11: error: external must be a list, not the text \"all\"",
		"external: [null]": "3:12: error: a rule of external does not say whether it allows [policy-invalid]\nc9s.yaml:3:12: error: a rule of external has no prefixes",
		"external: [{prefixes: [null], allow: false}]":                                                 "3:24: error: \"\" is not a prefix",
		"external: [{allow: false}]":                                                                   "3:12: error: a rule of external has no prefixes",
		"external: [{prefixes: [], allow: false}]":                                                     "3:12: error: a rule of external has no prefixes",
		"external: [{prefixes: [10.0.0.0/8]}]":                                                         "3:12: error: a rule of external does not say whether it allows",
		"external: [{prefixes: 10.0.0.0/8, allow: false}]":                                             "3:23: error: prefixes must be a list, not the text \"10.0.0.0/8\"",
		"external: [{prefixes: [10.0.0.1], allow: false}]":                                             "3:24: error: \"10.0.0.1\" is not a prefix",
		"external: [{prefixes: [10.0.0.0/33], allow: false}]":                                          "3:24: error: \"10.0.0.0/33\" is not a prefix",
		"external: [{prefixes: [\"::ffff:10.0.0.0/104\"], allow: false}]":                              "3:24: error: \"::ffff:10.0.0.0/104\" is not a prefix",
		"external: [{prefixes: [10.0.0.1/8], allow: false}]":                                           "3:24: error: prefix 10.0.0.1/8 has bits of the host part",
		"external:\n- {prefixes: [10.0.0.0/8], allow: false}\n- {prefixes: [10.0.0.0/8], allow: true}": "5:15: error: external has prefix 10.0.0.0/8 twice (first at line 4)",
		"external: [{prefixes: [10.0.0.0/8], allow: 1}]":                                               "3:44: error: allow must be true or false, not the number 1",
		"external: [{prefix: [10.0.0.0/8], allow: true}]":                                              "3:13: error: unknown key \"prefix\" in external[]",
		"profiles: [{name: a, set: {external: [{prefixes: [x], allow: true}]}}]":                       "3:51: error: \"x\" is not a prefix",
		"profiles: [{name: a, set: {external: {prefixes: [x], allow: true}}}]":                         "3:38: error: external must be a list, not a mapping",
	} {
		p, diags := Load("c9s.yaml", []byte(policyHead+text+"\n"))
		if got, want := strings.Join(errorsOf(diags), "\n"), "c9s.yaml:"+want+" [policy-invalid]"; got != want || p != nil {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}
