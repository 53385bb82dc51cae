package hooks_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// state is what a planner could change on this machine: processes of its own,
// network namespaces and interfaces, nftables, files where containerlab writes.
func state(t *testing.T) []string {
	t.Helper()
	var out []string
	run := func(name string, args ...string) {
		text, err := exec.Command(name, args...).Output()
		if err != nil {
			out = append(out, name+" is not here")
			return
		}
		for line := range strings.Lines(string(text)) {
			out = append(out, name+": "+strings.TrimSpace(line))
		}
	}
	run("sh", "-c", "ip netns list | grep clab || true")
	run("sh", "-c", "ps -eo args | grep '[d]evice-cli\\|[p]lanner device' || true")
	run("nft", "list", "tables")
	for _, pattern := range []string{
		"/etc/hosts", "/etc/ssh/ssh_config.d/*", "/run/lock/clab*", "/run/netns/clab*", "/tmp/.clab/*", "/var/lib/containerlab/*",
		filepath.Join(os.TempDir(), "c9s-planner-*"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			info, err := os.Lstat(f)
			if err == nil {
				out = append(out, fmt.Sprintf("%s %d %s %s", f, info.Size(), info.Mode(), info.ModTime()))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestNoEffects plans every kind and compares the machine before and after.
func TestNoEffects(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // where the planner's workspaces come and go
	before := state(t)
	p := planner(t)
	for _, k := range kinds.Builtin().All() {
		if k.Refused != "" || k.RootNamespace {
			continue
		}
		fields := ", license: lic"
		if k.Types.Required {
			for value := range k.Types.Values {
				fields += ", type: " + value
				break
			}
		}
		l := compileLab(t, one(k.Name, fields), map[string]string{"lic": "a licence"})
		if _, err := p.Plan(context.Background(), l, l.Nodes[0]); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
	p.Close()
	after := state(t)
	// What others do on this machine at the same time comes and goes.
	for end := time.Now().Add(30 * time.Second); !slices.Equal(after, before) && time.Now().Before(end); after = state(t) {
		time.Sleep(500 * time.Millisecond)
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			t.Errorf("new after planning: %s", line)
		}
	}
	for _, line := range before {
		if !slices.Contains(after, line) {
			t.Errorf("gone after planning: %s", line)
		}
	}
}
