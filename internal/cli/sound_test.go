package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever is wrong with a topology, what is looked at beside it neither breaks nor
// blames c9s: each line of a lab is left out, cut short and misspelt in turn.
func TestBesideErrors(t *testing.T) {
	for _, name := range []string{"features/features.clab.yml", "isp/isp.clab.yml"} {
		topo := filepath.Join("..", "..", "testdata", name)
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(topo))); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.Base(topo))
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(data), "\n")
		refused := 0
		for i, line := range lines {
			for _, other := range []string{"", line[:len(line)/2] + "\n", strings.Replace(line, ": ", "x: ", 1), strings.Replace(line, ": ", ": !", 1), strings.Replace(line, "eth", "ath", 1)} {
				if other == line {
					continue
				}
				text := strings.Join(slices.Concat(lines[:i], []string{other}, lines[i+1:]), "")
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				code, out := validate(t, file)
				if code == ExitFailure {
					refused++
				}
				if code != ExitFailure && code != 0 || strings.Contains(out, "report this to c9s") {
					t.Errorf("%s, line %d as %q: exit code %d\n%s", name, i+1, other, code, out)
				}
			}
		}
		if refused < len(lines) {
			t.Errorf("%s: %d of some %d changes were refused", name, refused, 4*len(lines))
		}
	}
}

// validate runs the command without its output on a terminal; what panics fails.
func validate(t *testing.T, file string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	defer func() {
		if r := recover(); r != nil {
			code, out = -1, fmt.Sprint(r)
		}
	}()
	code = Main([]string{"validate", file, "--planner", "builtin"}, IO{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return code, stderr.String()
}
