package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// quality is a row of c9s link -o json.
type quality struct {
	Node, Interface, Peer string
	Impairment            struct{ DelayMs, Loss float64 }
	Changed               bool
}

// TestLink: a link's delay and loss change while the lab runs, keep over a new Pod, and are
// restored by reset and by deploy.
func TestLink(t *testing.T) {
	l := written(t, "quality", map[string]string{"lab.clab.yml": `name: quality
topology:
  defaults: {kind: linux, image: 'ghcr.io/srl-labs/network-multitool:latest'}
  nodes:
    A: {exec: [ip addr add 10.0.0.1/24 dev eth1]}
    B: {exec: [ip addr add 10.0.0.2/24 dev eth1]}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
`})
	l.deploy(t)
	link := func(args ...string) (rows []quality) {
		t.Helper()
		out, err := l.output(t, append([]string{"link", args[0], "--lab", l.name, "-n", l.ns, "-o", "json"}, args[1:]...)...)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &rows); err != nil {
			t.Fatalf("c9s link %v: %v\n%s", args, err, out)
		}
		return rows
	}
	// rtt waits until a ping's round-trip time is in the range, in milliseconds.
	rtt := func(least, most float64) {
		t.Helper()
		began := time.Now()
		testcluster.Eventually(t, patience, fmt.Sprintf("a round trip of %v to %v ms", least, most), func() error {
			out, err := l.in(t.Context(), "A", "ping", "-c", "1", "-W", "1", "10.0.0.2")
			_, after, _ := strings.Cut(out, " time=")
			var ms float64
			if _, scanned := fmt.Sscanf(after, "%f", &ms); err != nil || scanned != nil || ms < least || ms > most {
				return fmt.Errorf("%v, %s", err, out)
			}
			return nil
		})
		t.Logf("%v to %v ms after %s", least, most, time.Since(began).Round(100*time.Millisecond))
	}
	rtt(0, 40)
	if rows := link("set", "A:eth1", "--delay", "60ms"); len(rows) != 1 || rows[0].Impairment.DelayMs != 60 || rows[0].Peer != "B:eth1" || !rows[0].Changed {
		t.Errorf("link set: %+v", rows)
	}
	rtt(60, 110)
	if rows := link("set", "A:eth1", "--loss", "0.001", "--both"); len(rows) != 2 || rows[0].Impairment.DelayMs != 60 || rows[0].Impairment.Loss != 0.001 || rows[1].Node != "B" || rows[1].Impairment.DelayMs != 0 {
		t.Errorf("link set --both: %+v", rows)
	}
	l.ready(t) // an edit that has arrived leaves nothing to wait for
	if out := l.c9s(t, append(l.args("status"), "-o", "wide")...); !strings.Contains(out, "delay 60ms") {
		t.Errorf("status does not have the delay:\n%s", out)
	}
	if actions := l.diff(t); actions["A"] != "live" || actions["B"] != "live" {
		t.Errorf("diff: %v, want live for both", actions)
	}
	old := l.pod(t, "a")
	l.c9s(t, "restart", "A", "--lab", l.name, "-n", l.ns)
	l.replaced(t, old)
	rtt(60, 110)
	if rows := link("reset", "--all"); len(rows) != 2 || rows[0].Changed || rows[0].Impairment.DelayMs != 0 {
		t.Errorf("link reset --all: %+v", rows)
	}
	rtt(0, 40)
	if rows := link("show"); len(rows) != 2 || rows[0].Changed || rows[1].Changed {
		t.Errorf("link show: %+v", rows)
	}
	link("set", "B:eth1", "--loss", "100")
	l.eventually(t, "A", "100% packet loss", "sh", "-c", "ping -c 2 -W 1 10.0.0.2; true")
	l.deploy(t)
	rtt(0, 40)
	out, err := l.try(t.Context(), "link", "set", "A:eth7", "--loss", "1", "--lab", l.name, "-n", l.ns)
	if err == nil || !strings.Contains(out, "node A has no interface eth7; it has eth1") {
		t.Errorf("an unknown interface: %v\n%s", err, out)
	}
	l.destroyed(t)
}
