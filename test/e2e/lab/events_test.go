package lab

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// eventsEnv is for how long TestRandomEvents has things happen to its labs, in all
// (time.ParseDuration).
const eventsEnv = "C9S_EVENTS"

// expect is what a command in a node prints in a lab that works.
type expect struct {
	node, text string
	argv       []string
}

func pings(from, to string) expect {
	return expect{from, " 0% packet loss", []string{"ping", "-c", "1", "-W", "1", to}}
}

func vtysh(node, text, command string) expect {
	return expect{node, text, []string{"vtysh", "-c", command}}
}

// eventLabs are labs of the kind that people publish, in testdata.
var eventLabs = map[string][]expect{
	"isis": {
		vtysh("R1", "R2", "show isis neighbor"), vtysh("R1", "R3", "show isis neighbor"), vtysh("R2", "10.255.1.3/32", "show ip route isis"),
		pings("R1", "10.255.1.3"), pings("R2", "10.255.1.1"), pings("R3", "10.255.1.2"),
		{"br-dr", "master br-dr state forwarding", []string{"bridge", "link"}}, pings("R3", "172.20.20.1"),
	},
	"unnumbered": {
		vtysh("leaf1", "10.255.2.12/32", "show ip route bgp"), vtysh("leaf2", "10.255.2.11/32", "show ip route bgp"), vtysh("spine", "10.255.2.11/32", "show ip route bgp"),
		{"leaf1", " 0% packet loss", []string{"ping", "-c", "1", "-W", "1", "-I", "10.255.2.11", "10.255.2.12"}},
	},
	"stp": {
		pings("H1", "10.3.0.2"), pings("H2", "10.3.0.1"),
		{"S3", "blocking ports: 1", []string{"sh", "-c", `echo "blocking ports: $(bridge link | grep -c blocking)"`}},
	},
	"nat": {
		pings("client", "203.0.113.10"), {"server", "c9s test host", []string{"curl", "-s", "-m", "2", "http://203.0.113.1:8080/"}},
		{"router", "masquerade", []string{"nft", "list", "ruleset"}},
		{"router", "tables: 1", []string{"sh", "-c", `echo "tables: $(nft list tables | wc -l)"`}},
	},
	"evpn": {
		pings("H1", "10.4.0.2"), pings("H2", "10.4.0.1"), vtysh("spine", "Status: up", "show bfd peers"), vtysh("leaf1", "10.255.4.12", "show evpn vni 100"),
		// The sidecar's own VXLANs are not the router's.
		{"leaf1", "VNIs: 1", []string{"sh", "-c", `echo "VNIs: $(vtysh -c 'show evpn vni json' | grep -c '"vni":')"`}},
	},
}

// Labs of the kind that people publish go through random events, and then do what they are
// for; their nodes have no interface of the sidecar's.
func TestRandomEvents(t *testing.T) {
	long(t)
	lasts := 2 * time.Minute
	if text := os.Getenv(eventsEnv); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for name, expected := range eventLabs {
		t.Run(name, func(t *testing.T) {
			file, err := filepath.Abs(filepath.Join("testdata", name, "lab.clab.yml"))
			if err != nil {
				t.Fatal(err)
			}
			l := newLab(t, file, name)
			l.deploy(t)
			l.does(t, expected)
			seed := uint64(time.Now().UnixNano())
			rng := rand.New(rand.NewPCG(seed, 0))
			var log []string
			for end := time.Now().Add(lasts / time.Duration(len(eventLabs))); time.Now().Before(end); {
				log = append(log, l.event(t, rng))
			}
			t.Logf("seed %d: %s", seed, strings.Join(log, ", "))
			began := time.Now()
			l.ready(t)
			l.does(t, expected)
			t.Logf("all is well %s after the last event", time.Since(began).Round(100*time.Millisecond))
			if !t.Failed() {
				l.destroyed(t)
			}
		})
	}
}

// does checks what the lab is for.
func (l *lab) does(t *testing.T, expected []expect) {
	t.Helper()
	for _, e := range expected {
		l.eventually(t, e.node, e.text, e.argv...)
	}
	for _, n := range l.status(t).Nodes {
		if n.Image == "" { // a bridge
			continue
		}
		if out, err := l.in(t.Context(), n.Name, "ip", "-br", "link"); err != nil || strings.Contains(out, "c9s") {
			t.Errorf("the interfaces of %s: %s, %v", n.Name, out, err)
		}
	}
}

// downAndUp takes an interface down and up again. Routes that were added by hand are gone
// then, in any Linux: they come back as a network manager would have it.
const downAndUp = `routes=$(ip route show dev %[1]s proto boot)
ip link set %[1]s down; sleep %[2]d; ip link set %[1]s up
echo "$routes" | while read -r route; do test -z "$route" || ip route replace $route dev %[1]s; done`

// event causes one event in the lab and describes it.
func (l *lab) event(t *testing.T, rng *rand.Rand) string {
	t.Helper()
	var nodes []node
	testcluster.Eventually(t, patience, "nodes that run", func() error {
		s, err := l.tryStatus(t)
		if err != nil {
			return err
		}
		nodes = slices.DeleteFunc(s.Nodes, func(n node) bool { return n.Image == "" || n.State != "ready" })
		if len(nodes) == 0 {
			return fmt.Errorf("the lab is %s", s.State)
		}
		return nil
	})
	n := nodes[rng.IntN(len(nodes))]
	pod := l.pod(t, n.Pod)
	switch rng.IntN(6) {
	case 0:
		if err := l.Typed.CoreV1().Pods(l.ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}); err != nil {
			t.Fatal(err)
		}
		return "Pod of " + n.Name + " deleted"
	case 1:
		l.killed(t, n, "wire")
		return "sidecar of " + n.Name + " killed"
	case 2:
		l.killed(t, n, n.Pod)
		return "device " + n.Name + " killed"
	}
	// A device that ends meanwhile is an event too.
	ports, err := l.in(t.Context(), n.Name, "sh", "-c", "ls /sys/class/net | grep '^eth[1-9]'")
	names := strings.Fields(ports)
	if err != nil || len(names) == 0 {
		return n.Name + " has no links"
	}
	name := names[rng.IntN(len(names))]
	_, _ = l.in(t.Context(), n.Name, "sh", "-c", fmt.Sprintf(downAndUp, name, 1+rng.IntN(3)))
	return n.Name + ":" + name + " down and up"
}

// killed ends a container of a node, unless it has ended or its Pod is gone.
func (l *lab) killed(t *testing.T, n node, container string) {
	t.Helper()
	pod, err := l.tryPod(t, n.Pod)
	if err != nil {
		return
	}
	if _, err := l.TryKillContainer(t.Context(), pod, container); err != nil {
		t.Log(err)
	}
}
