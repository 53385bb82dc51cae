package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// badCase is a topology that must be rejected, and the output of validate.
type badCase struct{ name, input, want string }

const badFile = "testdata/bad.txt"

// readBad reads cases of the form "=== name", the topology, "--- want", the output.
func readBad(t *testing.T) []badCase {
	t.Helper()
	data, err := os.ReadFile(badFile)
	if err != nil {
		t.Fatal(err)
	}
	var cases []badCase
	var into *string
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "=== "); ok {
			cases = append(cases, badCase{name: strings.TrimSpace(name)})
			into = &cases[len(cases)-1].input
		} else if line == "--- want\n" {
			into = &cases[len(cases)-1].want
		} else {
			*into += line
		}
	}
	return cases
}

// TestBadInputs runs validate on every case, in a folder of its own.
func TestBadInputs(t *testing.T) {
	cases := readBad(t)
	if len(cases) < 150 {
		t.Errorf("%d cases, want at least 150", len(cases))
	}
	var rewritten bytes.Buffer
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			dir, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("t.clab.yml", []byte(c.input), 0o644); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			code := Main([]string{"validate", "t.clab.yml", "--planner", "builtin"}, IO{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
			if code != ExitFailure {
				t.Errorf("exit code %d, want %d", code, ExitFailure)
			}
			got := strings.ReplaceAll(stderr.String(), filepath.ToSlash(dir), "DIR")
			if !strings.Contains(got, "error: ") {
				t.Errorf("no error was reported:\n%s", got)
			}
			rewritten.WriteString("=== " + c.name + "\n" + c.input + "--- want\n" + got)
			if *update {
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if *update {
		if err := os.WriteFile(badFile, rewritten.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
