package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemoRun: 'make demo CLUSTER=kind' and 'CLUSTER=k3s' bring the c9s image into that cluster and run
// the lab with its kubeconfig.
func TestDemoRun(t *testing.T) {
	const record = `echo "${0##*/} $* KUBECONFIG=${KUBECONFIG:-}" >>"$CALLS"`
	programs := map[string]string{
		"c9s": record, "docker": record, "k3s": record, "go": "echo x",
		"kind": record + "\n" + `case "$1 $2" in "get clusters") cat "$CLUSTERS";; "get kubeconfig") echo "a: kubeconfig";; esac`,
	}
	for name, c := range map[string]struct {
		where    string
		programs []string
		clusters string
		code     int
		calls    []string // in order
		not      string
		says     string
	}{
		"a new cluster of kind's": {where: "kind", programs: []string{"c9s", "docker", "go", "kind"}, calls: []string{
			"kind create cluster --name c9s --wait 2m KUBECONFIG=ROOT/bin/kind.kubeconfig", "c9s image build ghcr.io/c9s-lab/c9s:", "-o bin/image.tar KUBECONFIG=ROOT/bin/kind.kubeconfig",
			"kind load image-archive bin/image.tar --name c9s", "c9s deploy testdata/demo/demo.clab.yml --planner builtin --yes --image ghcr.io/c9s-lab/c9s:",
			"KUBECONFIG=ROOT/bin/kind.kubeconfig", "c9s test testdata/demo/demo.test.yaml",
		}, says: "kind delete cluster --name c9s"},
		"one that is there": {where: "kind", programs: []string{"c9s", "docker", "go", "kind"}, clusters: "other\nc9s\n", calls: []string{"kind load image-archive"}, not: "kind create"},
		"k3s": {where: "k3s", programs: []string{"c9s", "go", "k3s"}, calls: []string{
			"c9s image build", "KUBECONFIG=ROOT/k3s.yaml", "k3s ctr images import bin/image.tar", "c9s deploy testdata/demo/demo.clab.yml", "KUBECONFIG=ROOT/k3s.yaml",
		}},
		"no kind":             {where: "kind", programs: []string{"c9s", "docker", "go"}, code: 1, says: "CLUSTER=kind needs kind", not: "c9s"},
		"no k3s":              {where: "k3s", programs: []string{"c9s", "go"}, code: 1, says: "CLUSTER=k3s needs k3s", not: "c9s"},
		"no such cluster":     {where: "minikube", programs: []string{"c9s"}, code: 2, says: "use here, kind, k3s or current", not: "c9s"},
		"k3s without its key": {where: "k3s", programs: []string{"c9s", "go", "k3s"}, clusters: "unreadable", code: 1, says: "start k3s, and run this as root", not: "c9s"},
	} {
		t.Run(name, func(t *testing.T) {
			root, bin := t.TempDir(), t.TempDir()
			for _, program := range c.programs {
				if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+programs[program]+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			// The script's other programs, without those that are looked for.
			for _, program := range []string{"sh", "cat", "grep", "mkdir", "mv", "xargs", "sha256sum", "cut"} {
				path, err := exec.LookPath(program)
				if err != nil {
					t.Skipf("%s is not in PATH", program)
				}
				if err := os.Symlink(path, filepath.Join(bin, program)); err != nil {
					t.Fatal(err)
				}
			}
			script, err := filepath.Abs("../../testdata/demo/run.sh")
			if err != nil {
				t.Fatal(err)
			}
			config, calls, clusters := filepath.Join(root, "k3s.yaml"), filepath.Join(root, "calls"), filepath.Join(root, "clusters")
			if c.clusters != "unreadable" {
				if err := os.WriteFile(config, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{calls, clusters} {
				if err := os.WriteFile(file, []byte(c.clusters), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Truncate(calls, 0); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "sh"), script, c.where)
			cmd.Dir = root
			cmd.Env = []string{"PATH=" + bin, "CALLS=" + calls, "CLUSTERS=" + clusters, "K3S_KUBECONFIG=" + config, "MAKE=false"}
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d: %v\n%s", code, c.code, err, out)
			}
			if !strings.Contains(string(out), c.says) {
				t.Errorf("it says\n%s\nwant %q", out, c.says)
			}
			data, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			rest := strings.ReplaceAll(string(data), root, "ROOT")
			if c.not != "" && strings.Contains(rest, c.not) {
				t.Errorf("it calls %q:\n%s", c.not, rest)
			}
			for _, want := range c.calls {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("after what came before, no %q in\n%s", want, data)
				}
				rest = after
			}
		})
	}
}
