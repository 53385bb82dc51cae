package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// neighbours are the BGP peers of each router of testdata/isp.
var neighbours = map[string]int{"R1": 2, "R2": 3, "R3": 3, "R4": 3, "R5": 3, "R6": 2}

var customers = map[string]string{"PC1": "192.168.1.10", "PC2": "192.168.2.10", "PC3": "192.168.5.10", "PC4": "192.168.6.10"}

// works checks that testdata/isp does what it is for: sessions, and every
// customer reaches every other.
func (l *lab) works(t *testing.T) {
	t.Helper()
	for router, n := range neighbours {
		l.eventually(t, router, fmt.Sprintf("Displayed neighbors %d", n), "sh", "-c",
			`echo "Displayed neighbors $(vtysh -c 'show bgp summary json' | grep -c '"state":"Established"')"`)
		l.eventually(t, router, "Full neighbors 2", "sh", "-c",
			`echo "Full neighbors $(vtysh -c 'show ip ospf neighbor' | grep -c Full)"`)
	}
	for from := range customers {
		for to, address := range customers {
			if from != to {
				l.reaches(t, from, address)
			}
		}
	}
}

func TestDeploy(t *testing.T) {
	l := newLab(t, testdata("isp"), "isp")
	l.allWorkers(t)
	began := time.Now()
	out := l.deploy(t)
	t.Logf("deployed in %s", time.Since(began).Round(100*time.Millisecond))
	if !strings.Contains(out, "lab isp is ready") {
		t.Errorf("c9s deploy printed\n%s", out)
	}
	l.ready(t)
	l.works(t)
	t.Logf("all sessions up and customers connected after %s", time.Since(began).Round(100*time.Millisecond))

	var s state
	testcluster.Eventually(t, patience, "the controller's word that all is ready", func() (err error) {
		if s, err = l.tryStatus(t); err == nil && s.State != "ready" {
			err = fmt.Errorf("the lab is %s: %+v", s.State, s)
		}
		return err
	})
	if len(s.Nodes) != 10 || len(s.Links) != 12 {
		t.Errorf("status: %d nodes, %d links", len(s.Nodes), len(s.Links))
	}
	workers := map[string]bool{}
	for _, n := range s.Nodes {
		workers[n.Worker] = true
		if n.IPv4 == "" || n.IPv6 == "" {
			t.Errorf("node %s has no management address", n.Name)
		}
		for _, c := range n.Commands {
			if c.ExitCode == 0 && c.Error == "" {
				continue
			}
			if c.Running || c.ExitCode != 0 || c.Error != "" {
				t.Errorf("node %s: command failed: %+v", n.Name, c)
			}
		}
	}
	if len(workers) != 3 {
		t.Errorf("the lab runs on %d workers, want 3", len(workers))
	}
	for _, to := range []string{s.Nodes[9].IPv4, s.Nodes[9].IPv6, "R6", "clab-isp-R6", "R6.isp.io"} {
		l.reaches(t, "R1", to)
	}
	if out, err := l.in(t.Context(), "R1", "hostname"); err != nil || strings.TrimSpace(out) != "R1" {
		t.Errorf("hostname of R1: %q, %v", out, err)
	}
	if out, err := l.in(t.Context(), "r1", "sh", "-c", "exit 7"); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("exit code of c9s exec: %v\n%s", err, out)
	}
	if out := l.c9s(t, "exec", "--label", "as=65002", "--lab", "isp", "-n", l.ns, "--", "hostname"); strings.Count(out, "exit code 0") != 3 {
		t.Errorf("exec by label:\n%s", out)
	}
	if out := l.c9s(t, "diff", l.topo, "-n", l.ns, "--planner", planner, "--exit-code"); strings.Count(out, "nothing") != 10 {
		t.Errorf("diff of an unchanged lab:\n%s", out)
	}

	t.Run("faults", func(t *testing.T) { faults(t, l) })
	if !t.Failed() {
		l.destroyed(t)
	}
}

// The objects alone make the lab: no deploy, no controller.
func TestRenderedManifests(t *testing.T) {
	l := newLab(t, testdata("isp"), "isp")
	stream, err := l.output(t, "render", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner, "--no-controller", "--with-secrets")
	if err != nil {
		t.Fatal(err)
	}
	l.Apply(t, l.ns, string(stream))
	l.ready(t)
	l.works(t)
	if out := l.c9s(t, "status", "isp", "-n", l.ns); !strings.Contains(out, "from the Pods") {
		t.Errorf("status without a controller:\n%s", out)
	}
	l.destroyed(t)
}

// A folder in Git, with kustomize, is the same.
func TestGitFolder(t *testing.T) {
	long(t)
	l := newLab(t, testdata("isp"), "isp")
	dir := t.TempDir()
	l.c9s(t, "render", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner, "-o", dir)
	l.kustomize(t, dir+"/secrets")
	l.kustomize(t, dir)
	l.ready(t)
	l.works(t)
	l.destroyed(t)
}

// kustomize applies a rendered folder, as `kubectl apply -k` does.
func (l *lab) kustomize(t *testing.T, folder string) {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	l.Apply(t, l.ns, string(text))
}
