package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// TestGenerate: what is generated renders as it is, and nothing that exists is replaced unasked.
func TestGenerate(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, errs, code := run(t, "generate", "--name", "dc", "--super-spines", "2", "--hosts-per-leaf", "2"); code != ExitOK || !strings.Contains(errs, "dc: 10 files written\nnext: c9s deploy dc/dc.clab.yml\n") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if out, errs, code := run(t, "render", "dc", "--planner", "builtin"); code != ExitOK || errs != "" || strings.Count(out, "\nkind: Deployment\n") != 4+2+2+8+1 {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	topo := filepath.Join("dc", "dc.clab.yml")
	if err := os.WriteFile(topo, []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run(t, "generate", "--name", "dc"); code != ExitFailure || !strings.Contains(errs, "files exist already: "+topo) {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if data, err := os.ReadFile(topo); err != nil || string(data) != "mine\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if _, errs, code := run(t, "generate", "--name", "dc", "--force"); code != ExitOK {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if out, errs, code := run(t, "validate", "dc", "--planner", "builtin"); code != ExitOK || !strings.Contains(out+errs, "10 nodes, 12 links") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestGenerateKinds: nodes of every kind have interfaces that the kind accepts. What else they
// need (an image, a type) is reported by validate, and is for the user to add.
func TestGenerateKinds(t *testing.T) {
	dir := t.TempDir()
	tried := 0
	for _, kind := range kinds.Builtin().All() {
		if kind.Refused != "" || kind.RootNamespace {
			continue
		}
		file := filepath.Join(dir, kind.Name+".clab.yml")
		if _, errs, code := run(t, "generate", "--nodes", "3:"+kind.Name+",2", "--kind", kind.Name, "--file", file); code != ExitOK {
			t.Errorf("%s: exit code %d\n%s", kind.Name, code, errs)
			continue
		}
		tried++
		if _, errs, _ := run(t, "validate", file, "--planner", "builtin"); strings.Contains(errs, "interface-name") {
			t.Errorf("%s: %s", kind.Name, errs)
		}
	}
	if tried < 50 {
		t.Errorf("only %d kinds were tried", tried)
	}
}

func TestGenerateUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--shape", "mesh"}, ExitUsage, "--shape mesh needs --nodes, the number of routers"},
		{[]string{"--kind", "nosuch"}, ExitUsage, `--kind: "nosuch" is not a kind`},
		{[]string{"--nodes", "x"}, ExitUsage, `--nodes: "x": use NUMBER[:KIND[:TYPE]]`},
		{[]string{"--nodes", "2:nosuch"}, ExitUsage, `--nodes: "nosuch" is not a kind`},
		{[]string{"--image", "nosuch=x"}, ExitUsage, `--image: "nosuch" is not a kind`},
		{[]string{"--nodes", "2", "--leaves", "3"}, ExitUsage, "none of the others can be"},
		{[]string{"--name", "Big", "--leaves", "0"}, ExitFailure, "0 nodes in tier 1"},
		{[]string{"more"}, ExitUsage, "unknown command"},
	} {
		if _, errs, code := run(t, append([]string{"generate"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d, want %d\n%s", c.args, code, c.code, errs)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("%v are written, %v", entries, err)
	}
}

// TestGenerateTiers: containerlab's form is printed and names no other file.
func TestGenerateTiers(t *testing.T) {
	out, errs, code := run(t, "generate", "--name", "3tier", "--nodes", "2:srl:ixrd3,1", "--kind", "ceos", "--image", "ceos=ceos:4.32")
	for _, want := range []string{"name: 3tier\n", `nokia_srlinux: {image: "ghcr.io/nokia/srlinux`, `arista_ceos: {image: "ceos:4.32"}`, "type: ixrd3\n", `["node1-2:e1-1", "node2-1:eth2"]`} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if code != ExitOK || errs != "" || strings.Contains(out, "startup") {
		t.Errorf("exit code %d\n%s\n%s", code, errs, out)
	}
}
