package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

func TestUserWins(t *testing.T) {
	l := testLab("t")
	n := testNode(l, "n1", "nokia_srlinux", 1)
	n.Cmd, n.User = []string{"sleep", "1"}, "admin"
	n.Env = map[string]string{"SRLINUX": "2"}
	n.Sysctls = map[string]string{"net.ipv4.ip_forward": "1", "net.core.somaxconn": "9"}
	n.Mounts = []lab.Mount{{Target: "/tmp/topology.yml", File: testFile(l, "mine.yml", "x")}}
	c := planOf(t, l).Containers[0]
	if !slices.Equal(c.Cmd, n.Cmd) || c.User != "admin" || c.Env["SRLINUX"] != "2" {
		t.Errorf("cmd %v, user %s, SRLINUX %s", c.Cmd, c.User, c.Env["SRLINUX"])
	}
	if c.Sysctls["net.ipv4.ip_forward"] != "0" || c.Sysctls["net.core.somaxconn"] != "9" {
		t.Errorf("sysctls %v", c.Sysctls)
	}
	at := slices.IndexFunc(c.Mounts, func(m Mount) bool { return m.Target == "/tmp/topology.yml" })
	if c.Mounts[at].Path != "binds/tmp/topology.yml" {
		t.Errorf("mounts %v", c.Mounts)
	}
	vm := testNode(l, "vm", "cisco_xrv9k", 2)
	vm.Env = map[string]string{"USERNAME": "me", "QEMU_MEMORY": "1"}
	vm.Cmd = []string{"ignored"}
	p, _ := NewBuiltin(kinds.Builtin()).Plan(context.Background(), l, vm)
	c = p.Containers[0]
	if c.Cmd[1] != "me" || c.Env["QEMU_MEMORY"] != "1" || c.Env["PASSWORD"] != "clab@123" {
		t.Errorf("cmd %v, env %v", c.Cmd, c.Env)
	}
}

func TestPlansDoNotDependOnOtherNodes(t *testing.T) {
	for _, k := range kinds.Builtin().All() {
		l := testLab("t")
		n := testNode(l, "n1", k.Name, 1)
		n.License, n.Type = testFile(l, "lic", "x"), ""
		before, _ := json.Marshal(planOf(t, l))
		testNode(l, "n2", "linux", 2)
		if after, _ := json.Marshal(planOf(t, l)); !bytes.Equal(before, after) {
			t.Errorf("%s: a second node changes the plan", k.Name)
		}
		if again, _ := json.Marshal(planOf(t, l)); !bytes.Equal(before, again) {
			t.Errorf("%s: two plans of the same node differ", k.Name)
		}
	}
}

func TestAddressesAreUnique(t *testing.T) {
	seen := map[string]string{}
	l := testLab("t")
	for i := 1; i <= 4094; i++ {
		x := &NodeData{LabName: l.Name, ShortName: fmt.Sprint("n", i), Index: i}
		for _, mac := range []string{x.IndexMAC("1a")} {
			if other := seen[mac]; other != "" {
				t.Fatalf("%s and %s have %s", other, x.ShortName, mac)
			}
			seen[mac] = x.ShortName
		}
		if id := x.IOLID(); id < 1 || id > 1023 || id == 513 {
			t.Fatalf("index %d has IOL id %d", i, id)
		}
	}
}

func TestBehavioursExist(t *testing.T) {
	for _, k := range kinds.Builtin().All() {
		if _, ok := behaviours[k.Behaviour]; k.Behaviour != "" && !ok {
			t.Errorf("%s: no behaviour %s", k.Name, k.Behaviour)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(behaviours)) {
		if !slices.ContainsFunc(kinds.Builtin().All(), func(k *kinds.Kind) bool { return k.Behaviour == name }) {
			t.Errorf("no kind has behaviour %s", name)
		}
	}
}

func BenchmarkBuiltin1000(b *testing.B) {
	l := testLab("t")
	for i := range 1000 {
		n := testNode(l, fmt.Sprintf("n%d", i), []string{"linux", "nokia_srlinux"}[i%2], i+1)
		connect(l, n, "e1-1", "e1-2", "e1-3", "e1-4")
	}
	planner := NewBuiltin(kinds.Builtin())
	for b.Loop() {
		for _, n := range l.Nodes {
			planner.Plan(context.Background(), l, n)
		}
	}
}

// TestPIDOffset: the key moves the application id, past the one of the bridge too.
func TestPIDOffset(t *testing.T) {
	for _, tt := range []struct{ index, offset, want int }{{1, 0, 1}, {1, 64, 65}, {2, 64, 66}, {1, 512, 514}} {
		x := &NodeData{Index: tt.index, Keys: map[string]any{"pid-offset": tt.offset}}
		if got := x.IOLID(); got != tt.want {
			t.Errorf("index %d, offset %d: id %d, want %d", tt.index, tt.offset, got, tt.want)
		}
	}
}

// TestPlainNodesAreTheHooks: no kind of the hooks' release counts as newer than they are
// when a node uses nothing special of it.
func TestPlainNodesAreTheHooks(t *testing.T) {
	catalogue := kinds.Builtin()
	planner := NewBuiltin(catalogue)
	for _, k := range catalogue.All() {
		if k.Refused != "" || k.Since != "" {
			continue
		}
		l := testLab("t")
		n := testNode(l, "n", k.Name, 1)
		d, err := planner.draft(context.Background(), l, n)
		if err != nil {
			t.Fatal(err)
		}
		if d.kind == nil {
			t.Errorf("%s: %v", k.Name, d.problems.All())
		} else if d.newer() {
			t.Errorf("%s: a plain node is newer than the hooks", k.Name)
		}
	}
}
