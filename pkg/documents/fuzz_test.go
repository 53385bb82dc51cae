package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// FuzzRead holds that any input is read without a panic, that each error has a position, and
// that what is read without one can be written.
func FuzzRead(f *testing.F) {
	for _, file := range []string{"bad.txt", "fields.txt"} {
		data, err := os.ReadFile(filepath.Join("../pipeline/testdata/documents", file))
		if err != nil {
			f.Fatal(err)
		}
		for c := range strings.SplitSeq(string(data), "\n=== ") {
			_, c, _ = strings.Cut(c, "\n") // its name
			input, _, _ := strings.Cut(c, "--- want\n")
			f.Add(input)
		}
	}
	f.Fuzz(func(t *testing.T, input string) {
		if len(input) > 1<<16 {
			t.Skip("larger than what finds faults")
		}
		src := &topology.Source{Name: "<stdin>", Parts: []topology.Part{{Name: "<stdin>", Data: []byte(input)}}}
		for _, allowMissing := range []bool{false, true} {
			out, diags := Read(src, allowMissing)
			failed := false
			for _, d := range diags {
				failed = failed || d.Severity == diag.Error
				if d.Severity == diag.Error && (d.File == "" || d.Line < 1 || d.Column < 1) {
					t.Errorf("no position: %v", d)
				}
				if d.Code == "" || d.Message == "" {
					t.Errorf("no code or message: %v", d)
				}
			}
			if !failed && out.Topology != nil {
				if _, _, err := out.Texts(true); err != nil {
					t.Errorf("not written: %v", err)
				}
			}
		}
	})
}
