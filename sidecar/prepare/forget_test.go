package prepare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// TestForget: the next Pod of a node that is to forget starts from its files alone. Links that
// the device left lead nowhere, and other nodes and volumes stay.
func TestForget(t *testing.T) {
	seed := with(file("config", "seed", "c"), func(e *contract.Entry) { e.Seed = true })
	m := node(seed)
	m.Nodes = append(m.Nodes, contract.ManifestNode{Name: "R2", ID: "r2"})
	m.Volumes = []string{"records"}
	p := newPod(t, m, map[string]string{"c": "seed"})
	p.must(Run(p.Paths))
	outside := filepath.Join(t.TempDir(), "outside")
	p.must(os.WriteFile(outside, []byte("theirs"), 0o644))
	at := func(parts ...string) string {
		return filepath.Join(append([]string{filepath.Dir(p.Nodes)}, parts...)...)
	}
	fill := func() {
		t.Helper()
		p.must(os.MkdirAll(at("nodes/r1/deep/er"), 0o755))
		p.must(os.MkdirAll(at("nodes/r2"), 0o755))
		for _, name := range []string{"nodes/r1/config", "nodes/r1/deep/er/log", "nodes/r2/disk", "volumes/records/log"} {
			p.must(os.WriteFile(at(name), []byte("saved"), 0o600))
		}
		p.must(os.RemoveAll(at("nodes/r1/out")))
		p.must(os.Symlink(filepath.Dir(outside), at("nodes/r1/out")))
		p.must(os.RemoveAll(at("nodes/r1", forgetMark)))
		p.must(os.Symlink(outside, at("nodes/r1", forgetMark))) // a device may leave anything
	}
	left := func() string {
		var out []string
		for _, name := range []string{"nodes/r1/deep", "nodes/r1/out", "nodes/r2/disk", "volumes/records/log"} {
			if _, err := os.Lstat(at(name)); err == nil {
				out = append(out, name)
			}
		}
		return strings.Join(out, " ")
	}
	const all = "nodes/r1/deep nodes/r1/out nodes/r2/disk volumes/records/log"
	for _, c := range []struct {
		nodes         []string
		volumes, undo bool
		config, left  string
	}{
		{[]string{"R1"}, false, false, "seed", "nodes/r2/disk volumes/records/log"},
		{[]string{"R1", "R2"}, true, false, "seed", ""},
		{[]string{"R1", "R2"}, true, true, "saved", all},
		{[]string{"R2"}, false, false, "saved", "nodes/r1/deep nodes/r1/out volumes/records/log"},
	} {
		fill()
		if c.nodes[0] != "R1" { // only what Forget marks counts
			p.must(os.Remove(at("nodes/r1", forgetMark)))
		}
		p.must(Forget(p.Paths, c.nodes, c.volumes, c.undo))
		for range 2 { // a second run has nothing to forget
			p.must(Run(p.Paths))
			p.want("config", map[string]string{"seed": "-rw-r-----", "saved": "-rw-------"}[c.config], c.config)
			if got := left(); got != c.left {
				t.Errorf("%v: left is %q, want %q", c, got, c.left)
			}
		}
		p.must(os.RemoveAll(at("nodes/r1/config")))
	}
	if text, err := os.ReadFile(outside); string(text) != "theirs" {
		t.Errorf("what a link of the device leads to: %q, %v", text, err)
	}
	if err := Forget(p.Paths, []string{"R9"}, false, false); err == nil || err.Error() != "this Pod has no node R9" {
		t.Errorf("an unknown node: %v", err)
	}
}
