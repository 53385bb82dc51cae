//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/graph/live"
	"github.com/c9s-lab/c9s/pkg/status"
)

func sampleTop() topLab {
	lab := status.Lab{
		Name:  "demo",
		Nodes: []status.Node{{Name: "R1", State: "ready", PodName: "r1-x", Worker: "w1", Restarts: 3}, {Name: "R2", State: "failed", PodName: "r2-x"}, {Name: "br", State: "ready", PodName: "br-x"}},
		Links: []status.Link{
			{Kind: "wire", State: "up", A: status.End{Node: "R1", Interface: "eth1"}, B: status.End{Node: "R2", Interface: "eth1"}, RTT: .5, Loss: 1.26, Drops: 7, Datapath: "vxlan"},
			{Kind: "macvlan", State: "down", A: status.End{Node: "R1", Interface: "eth2"}},
		},
	}
	nodes := []cluster.Node{{Name: "R1", Containers: []string{"r1-a", "r1-b"}}, {Name: "R2", Containers: []string{"r2"}}, {Name: "br"}}
	rates := live.Rates{{Node: "R1", Interface: "eth1"}: {9_600_000_000, 1250}}
	usage := map[cluster.ContainerKey]cluster.Usage{{Pod: "r1-x", Container: "r1-a"}: {CPU: 12.4, Memory: 1000}, {Pod: "r1-x", Container: "r1-b"}: {CPU: 100, Memory: 2_000_000}, {Pod: "r1-x", Container: "wire"}: {CPU: 500}}
	return measured(lab, nodes, rates, usage, time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))
}

func TestTop(t *testing.T) {
	var b bytes.Buffer
	if err := printTop(&b, sampleTop()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"lab demo, 03:04:05", "",
		"NODE STATE CPU MEMORY RESTARTS WORKER", "R1 ready 112m 2.0MB 3 w1", "R2 failed - - 0 -", "br ready - - 0 -", "",
		"LINK STATE SENT RECEIVED LOSS DROPS RTT DATAPATH", "R1:eth1 R2:eth1 up 9.6Gbit/s 1.2kbit/s 1.3% 7 0.50ms vxlan", "R1:eth2 macvlan down - - - 0 - -",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTopSort(t *testing.T) {
	m := sampleTop()
	m.Nodes[1].Restarts = 9
	m.sort("restarts")
	if m.Nodes[0].Name != "R2" || m.Nodes[1].Name != "R1" {
		t.Errorf("by restarts: %+v", m.Nodes)
	}
	m.sort("cpu")
	if m.Nodes[0].Name != "R1" {
		t.Errorf("by CPU: %+v", m.Nodes)
	}
	for _, by := range []string{"rate", "loss", "drops", "rtt"} {
		m.Links[0], m.Links[1] = m.Links[1], m.Links[0]
		if m.sort(by); m.Links[0].B != "R2:eth1" {
			m.Links[0], m.Links[1] = m.Links[1], m.Links[0]
			t.Errorf("by %s: %+v", by, m.Links)
		}
	}
}

func TestTopScreen(t *testing.T) {
	got := topScreen([]string{"one", "two two", "three", "four"}, 5, 4)
	if diff := cmp.Diff([]string{"one", "two t", "... 2"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestTopKeys: a key sorts what is on the screen at once, and q ends.
func TestTopKeys(t *testing.T) {
	m := sampleTop()
	m.Nodes[1].Restarts = 9
	var b bytes.Buffer
	f := &topFlags{sort: "name"}
	keys := make(chan byte, 8)
	first := func() string {
		lines := strings.Split(b.String(), "\r\n")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "NODE") })
		name, _, _ := strings.Cut(lines[i+1], " ")
		b.Reset()
		return name
	}
	for _, tt := range []struct {
		key  byte
		want string
	}{{'s', "R2"}, {'n', "R1"}, {'m', "R1"}} {
		keys <- tt.key
		keys <- 'x' // means nothing
		if done, err := f.wait(t.Context(), IO{Out: &b}, keys, 50*time.Millisecond, &m); done || err != nil {
			t.Fatal(done, err)
		}
		if got := first(); got != tt.want {
			t.Errorf("key %c: %s is first, want %s", tt.key, got, tt.want)
		}
	}
	keys <- 'q'
	if done, err := f.wait(t.Context(), IO{Out: &b}, keys, time.Hour, &m); !done || err != nil {
		t.Errorf("q: %v, %v", done, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if done, err := f.wait(ctx, IO{Out: &b}, keys, time.Hour, &m); !done || err != exitCode(exitInterrupted) {
		t.Errorf("interrupted: %v, %v", done, err)
	}
}
