package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sources are the places of a render that name the topology file.
var sources = regexp.MustCompile(`(?m)^# .*$|c9s\.dev/source: [^,}]*`)

// TestConvertDocuments writes documents as a topology, which renders to the same objects,
// and overwrites nothing.
func TestConvertDocuments(t *testing.T) {
	const pairs = "../../pkg/pipeline/testdata/documents/pairs"
	for _, pair := range []string{"topology-files", "nodes", "secrets"} {
		t.Run(pair, func(t *testing.T) {
			from := filepath.Join(pairs, pair, "documents")
			to := filepath.Join(t.TempDir(), "lab")
			_, said, code := run(t, "convert", from, "-o", to)
			if code != ExitOK || !strings.Contains(said, "deploy the lab with: c9s deploy") {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			args := []string{"--planner", "builtin", "-n", "labs"}
			if pair == "secrets" {
				// The policy of the folder is the user's own and is not converted.
				data, err := os.ReadFile(filepath.Join(to, "c9s.yaml"))
				if err != nil || !strings.Contains(string(data), "/etc/token") || !strings.Contains(said, "do not commit files/r1/etc/token") {
					t.Errorf("%v\n%s\n%s", err, data, said)
				}
				if err := os.Rename(filepath.Join(to, "c9s.yaml"), filepath.Join(to, "derived.yaml")); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--policy", filepath.Join(to, "derived.yaml"))
			}
			want, stderr, code := run(t, append([]string{"render", from}, args...)...)
			if code != ExitOK {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			got, stderr, code := run(t, append([]string{"render", to}, args...)...)
			if code != ExitOK || pair == "secrets" && !strings.Contains(stderr, "Secret") || strings.Contains(got, "s3cr3t") {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			if diff := cmp.Diff(sources.ReplaceAllString(want, ""), sources.ReplaceAllString(got, "")); diff != "" {
				t.Errorf("-documents +converted:\n%s", diff)
			}
			_, stderr, code = run(t, "convert", from, "-o", to)
			if code != ExitFailure || !strings.Contains(stderr, "exists; choose another folder") {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
		})
	}
	for _, args := range [][]string{
		{"convert", filepath.Join(pairs, "nodes/documents"), "--write"},
		{"convert", filepath.Join(pairs, "nodes/topology"), "-o", t.TempDir()},
	} {
		if _, stderr, code := run(t, args...); code == ExitOK || !strings.Contains(stderr, "-o") {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
}
