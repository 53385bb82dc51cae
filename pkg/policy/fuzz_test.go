package policy

import (
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// FuzzLoad holds that any file is a policy or has an error that says why not.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("apiVersion: " + APIVersion + "\nkind: " + Kind + "\nwires: {encrypt: true}\nprofiles:\n  - name: a\n    match: {names: [r*], expression: 'node.name == \"r1\"'}\n    nodeSelector: {a: b}\n"))
	f.Add([]byte(policyHead + "segments: [{name: a, subnet: 10.0.0.0/24, gateway: 'r1:eth2', members: [{interface: eth1}], forward: [lacp], isolate: true}]\nmanagement: [{from: {}, to: {}, allow: no}]\nexternal: [{prefixes: ['::/0'], allow: true}]\n"))
	f.Add([]byte("segments: &s [*s]\nexternal: [null, *s]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("profiles: [{name: a, resources: {limits: {cpu: 1}}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, diags := Load("c9s.yaml", data)
		failed := false
		for _, d := range diags {
			failed = failed || d.Severity == diag.Error
		}
		if (p == nil) != failed {
			t.Errorf("%q: policy %v, %v", data, p, diags)
		}
	})
}
