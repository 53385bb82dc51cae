package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// Outages of the cluster itself, on a lab that runs.
func TestOutages(t *testing.T) {
	long(t)
	l := newLab(t, testdata("isp"), "isp")
	l.deploy(t)
	l.works(t)
	t.Run("API server stopped for a minute", func(t *testing.T) { stopAPIServer(t, l) })
	t.Run("partition between two workers", func(t *testing.T) { partition(t, l) })
	t.Run("worker killed", func(t *testing.T) { killWorker(t, l) })
	if !t.Failed() {
		l.destroyed(t)
	}
}

// Without an API server traffic continues, and nothing restarts when it is back.
func stopAPIServer(t *testing.T, l *lab) {
	before := restarts(t, l)
	flows := l.traffic(t, "PC1", customers["PC4"])
	began := time.Now()
	l.OnNode(t, "control", "sh", "-c", "kill -STOP $(pidof kube-apiserver)")
	goOn := func() {
		// Not through the test's context, which may be over.
		l.OnNode(t, "control", "sh", "-c", "kill -CONT $(pidof kube-apiserver)")
	}
	select {
	case <-time.After(time.Minute):
		goOn()
	case <-t.Context().Done():
		goOn()
	}
	testcluster.Eventually(t, patience, "the API server to answer", func() error {
		_, err := l.in(t.Context(), "PC1", "true")
		return err
	})
	flows.wentOn(t, began)
	l.ready(t)
	after := restarts(t, l)
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s: was %s, is %s", name, was, after[name])
		}
	}
}

// Two workers that do not reach each other: the links between them go down, OSPF and
// BGP go around or not at all, and all comes back by itself.
func partition(t *testing.T, l *lab) {
	before := restarts(t, l)
	a, b := l.Workers[0], l.Workers[1]
	families := []string{"-4"}
	if l.IPv6 { // wires take the addresses that work
		families = append(families, "-6")
	}
	rule := func(do, on, other string) {
		for _, family := range families {
			address := strings.TrimSpace(l.OnNode(t, other, "sh", "-c", "ip "+family+" -o addr show eth0 scope global | awk '{print $4}' | cut -d/ -f1"))
			// Pods of other workers come routed by them.
			subnet := strings.TrimSpace(l.OnNode(t, on, "sh", "-c", "ip "+family+" route | awk '$3==\""+address+"\" {print $1}' | head -1"))
			l.OnNode(t, on, "ip", family, "rule", do, "to", subnet, "prohibit")
			l.OnNode(t, on, "ip", family, "rule", do, "from", subnet, "prohibit")
		}
	}
	// Two nodes that talk over the management network.
	from, to := device(l.status(t), a), device(l.status(t), b)
	l.eventually(t, from.Name, " 0% packet loss", "ping", "-c", "1", "-W", "1", to.IPv4)
	rule("add", a, b)
	rule("add", b, a)
	began := time.Now()
	healed := false
	heal := func() {
		if !healed {
			rule("del", a, b)
			rule("del", b, a)
			healed = true
		}
	}
	defer heal()
	across := crossing(l.status(t, "--fresh"), a, b)
	if across == 0 {
		t.Skip("no link of the lab runs between the two workers")
	}
	testcluster.Eventually(t, patience, "the links across to be down", func() error {
		s, err := l.tryStatus(t, "--fresh")
		if down := downLinks(s); err == nil && down != across {
			err = fmt.Errorf("%d links are down, want %d", down, across)
		}
		return err
	})
	t.Logf("%d links down %s after the partition", across, time.Since(began).Round(100*time.Millisecond))
	meshLost := func(lost bool) {
		t.Helper()
		testcluster.Eventually(t, patience, "the management network to be cut, and whole again", func() error {
			s, err := l.tryStatus(t, "--fresh") // the controller may be on the other side
			if n := s.node(from.Name); err == nil && slices.Contains(n.MeshLost, to.Pod) != lost {
				err = fmt.Errorf("%s has lost %v of %d peers", n.Name, n.MeshLost, n.MeshPeers)
			}
			return err
		})
	}
	meshLost(true)
	if wide, err := l.output(t, append(l.args("status"), "--fresh", "-o", "wide")...); err != nil || !strings.Contains(string(wide), "MESH") {
		t.Errorf("status -o wide: %v\n%s", err, wide)
	} else {
		t.Logf("during the partition:\n%s", wide)
	}
	heal()
	began = time.Now()
	l.ready(t)
	meshLost(false)
	t.Logf("all links up %s after its end", time.Since(began).Round(100*time.Millisecond))
	l.works(t)
	after := restarts(t, l)
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s: was %s, is %s", name, was, after[name])
		}
	}
}

// device is a node with a container on a worker.
func device(s state, worker string) node {
	i := slices.IndexFunc(s.Nodes, func(n node) bool { return n.Worker == worker && n.Image != "" && n.IPv4 != "" })
	if i < 0 {
		return node{}
	}
	return s.Nodes[i]
}

func downLinks(s state) int {
	n := 0
	for _, k := range s.Links {
		if !k.Up {
			n++
		}
	}
	return n
}

// crossing counts the links between two workers.
func crossing(s state, a, b string) int {
	worker := map[string]string{}
	for _, n := range s.Nodes {
		worker[n.Name] = n.Worker
	}
	n := 0
	for _, k := range s.Links {
		x, y := worker[k.A.Node], worker[k.B.Node]
		if x == a && y == b || x == b && y == a {
			n++
		}
	}
	return n
}

// A worker that is lost with all its Pods: they come up elsewhere.
func killWorker(t *testing.T, l *lab) {
	lost := l.pod(t, "r4").Spec.NodeName
	before := restarts(t, l)
	onLost := map[string]bool{}
	for name := range before {
		onLost[name] = l.pod(t, name).Spec.NodeName == lost
	}
	began := time.Now()
	l.StopWorker(t, lost)
	testcluster.Eventually(t, 2*patience, "all Pods of "+lost+" on other workers", func() error {
		for name := range onLost {
			pod, err := l.tryPod(t, name)
			if err != nil {
				return err
			}
			if pod.Spec.NodeName == lost || pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is on %q", name, pod.Spec.NodeName)
			}
		}
		return nil
	})
	t.Logf("Pods of the lost worker run elsewhere after %s", time.Since(began).Round(100*time.Millisecond))
	var touched []string
	for name, was := range onLost {
		if was {
			touched = append(touched, name)
		}
	}
	l.healed(t, touched, began)
	l.works(t)
	t.Logf("all sessions back after %s", time.Since(began).Round(100*time.Millisecond))
	after := restarts(t, l)
	for name, was := range before {
		if !onLost[name] && after[name] != was {
			t.Errorf("%s restarted as well: it was %s and is %s", name, was, after[name])
		}
	}
	l.StartWorker(t, lost)
}
