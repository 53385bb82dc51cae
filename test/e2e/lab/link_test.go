package lab

import (
	"bufio"
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
	Impairment            struct {
		DelayMs, Loss float64
		Down          bool
	}
	Changed bool
	Fault   *struct{ EndsInSeconds float64 }
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
	l.breaks(t, link)
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

// breaks takes the link down in each way and checks that it comes back in time, by itself where
// that is asked for, with the addresses that it had.
func (l *lab) breaks(t *testing.T, link func(args ...string) []quality) {
	t.Helper()
	events := l.follow(t)
	carrier := func(want string) time.Duration {
		t.Helper()
		began := time.Now()
		for {
			var both []string
			for _, node := range []string{"A", "B"} {
				out, err := l.in(t.Context(), node, "cat", "/sys/class/net/eth1/carrier")
				if err != nil {
					t.Fatal(err)
				}
				both = append(both, strings.TrimSpace(out))
			}
			took := time.Since(began)
			if both[0] == want && both[1] == want {
				return took
			}
			if took > patience {
				t.Fatalf("the carriers are %v, want %s", both, want)
			}
		}
	}
	index, err := l.in(t.Context(), "A", "cat", "/sys/class/net/eth1/ifindex")
	if err != nil {
		t.Fatal(err)
	}
	rows := link("down", "A:eth1")
	t.Logf("both ends are down %s after link down", carrier("0").Round(10*time.Millisecond))
	if len(rows) != 1 || !rows[0].Impairment.Down || rows[0].Fault != nil {
		t.Errorf("link down: %+v", rows)
	}
	testcluster.Eventually(t, patience, "a status that says why", func() error {
		if out := l.c9s(t, append(l.args("status"), "-o", "wide")...); !strings.Contains(out, "taken down at A:eth1") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	if actions := l.diff(t); actions["A"] != "live" {
		t.Errorf("diff: %v, want live for A", actions)
	}
	link("up", "B:eth1")
	t.Logf("both ends are up %s after link up", carrier("1").Round(10*time.Millisecond))

	began := time.Now()
	if rows := link("down", "B:eth1", "--for", "3s"); rows[0].Fault == nil || rows[0].Fault.EndsInSeconds > 3 {
		t.Errorf("link down --for: %+v", rows)
	}
	carrier("0")
	carrier("1")
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("the link was back after %s", took)
	} else {
		t.Logf("down --for 3s: back after %s", took.Round(10*time.Millisecond))
	}
	if actions := l.diff(t); actions["B"] != "nothing" {
		t.Errorf("diff after a fault that is over: %v", actions)
	}
	if after, err := l.in(t.Context(), "A", "cat", "/sys/class/net/eth1/ifindex"); err != nil || after != index {
		t.Errorf("the interface was recreated: %s, %s, %v", index, after, err)
	}
	l.reaches(t, "A", "10.0.0.2")

	link("flap", "A:eth1", "--times", "2", "--every", "2s")
	carrier("0")
	carrier("1")
	carrier("0")
	carrier("1")
	for range 2 {
		events("A", "netem_down=true")
		events("A", "")
	}
}

// follow starts c9s events, and returns what waits for the next impairment of an interface of a
// node, as a part of the line; "" is an impairment that has ended.
func (l *lab) follow(t *testing.T) func(node, part string) {
	t.Helper()
	cmd := l.command(t.Context(), "events", "-n", l.ns, "--initial-state")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	next := func(what string, wanted func(string) bool) {
		t.Helper()
		for late := time.After(patience); ; {
			select {
			case line, ok := <-lines:
				if !ok {
					t.Fatalf("events ended before %s", what)
				}
				if wanted(line) {
					return
				}
			case <-late:
				t.Fatalf("no event: %s", what)
			}
		}
	}
	followed := map[string]bool{}
	next("the first interfaces of A and B, in any order", func(line string) bool {
		for _, node := range []string{"A", "B"} {
			if strings.Contains(line, " interface snapshot ") && strings.Contains(line, "name=clab-"+l.name+"-"+node+",") {
				followed[node] = true
			}
		}
		return len(followed) == 2
	})
	return func(node, part string) {
		t.Helper()
		next(node+" "+part, func(line string) bool {
			return strings.Contains(line, " interface update ") && strings.Contains(line, "ifname=eth1,") && strings.Contains(line, "name=clab-"+l.name+"-"+node+",") &&
				(part != "" && strings.Contains(line, part) || part == "" && !strings.Contains(line, "netem_"))
		})
	}
}
