package kinds

import (
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// FuzzLoad: any file in a folder of kinds is read, or refused with an error that says
// why; kinds of the catalogue stay.
func FuzzLoad(f *testing.F) {
	f.Add("name: a\nimage: b\n")
	f.Add("name: linux\nextends: linux\n")
	f.Add("name: a\nextends: b\n---\nname: b\nextends: a\n")
	f.Add("name: a\nextends: a\n")
	f.Add("a: &a [*a]\n")
	f.Add("name: a\ninterfaces: {pattern: '(', first: -1}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, diags := Load(Builtin(), files("a.yaml", text), "kinds")
		failed := false
		for _, d := range diags {
			failed = failed || d.Severity == diag.Error
		}
		if (c == nil) != failed {
			t.Fatalf("%q: catalogue %v, %v", text, c, diags)
		}
		if c != nil && len(c.Names()) < len(Builtin().Names()) {
			t.Errorf("%q: kinds are gone", text)
		}
	})
}
