package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const networksTopology = `name: networks
topology:
  defaults: {kind: linux, image: 'ghcr.io/srl-labs/network-multitool:latest'}
  nodes:
    r1: {group: routers}
    h1: {group: hosts, labels: {segment: lan}}
    h2: {group: hosts, labels: {segment: lan}}
`

// networksPolicy is the policy of the lab, with more of the segment and of the rest.
func networksPolicy(segment, more string) string {
	return "apiVersion: c9s.dev/v1\nkind: Policy\nsegments:\n- {name: lan, subnet: 10.20.0.0/24, gateway: 'r1:eth2', members: {match: {labels: {segment: lan}}, interface: eth1}" + segment + "}\n" + more
}

// TestNetworks: members of a segment reach each other and its gateway, and rules of the
// management network hold for one direction. Then the segment is isolated, another node joins
// by its label, other rules hold, and no Pod was replaced.
func TestNetworks(t *testing.T) {
	l := written(t, "networks", map[string]string{
		"lab.clab.yml": networksTopology,
		"c9s.yaml":     networksPolicy("", "management: [{from: {names: [h1]}, to: {names: [h2]}, allow: false}]\n"),
	})
	began := time.Now()
	l.deploy(t)
	// reachesNot waits until pings have no answer.
	reachesNot := func(from, to string) {
		t.Helper()
		l.eventually(t, from, "100% packet loss", "sh", "-c", "ping -c 1 -W 1 "+to+"; true")
	}
	lan := func(node string) string {
		t.Helper()
		out, err := l.in(t.Context(), node, "ip", "-4", "-o", "addr", "show", "eth1")
		m := regexp.MustCompile(`inet (10\.20\.0\.\d+)/24`).FindStringSubmatch(out)
		if err != nil || m == nil {
			t.Fatalf("%s has no address in the segment: %v: %s", node, err, out)
		}
		return m[1]
	}
	l.reaches(t, "h1", "10.20.0.1")
	l.reaches(t, "h1", lan("h2"))
	l.reaches(t, "h2", "h1")
	l.reaches(t, "h1", "r1")
	reachesNot("h1", "h2")
	t.Logf("checked %s after the start of deploy", time.Since(began).Round(100*time.Millisecond))

	pods := map[string]types.UID{}
	addresses := map[string]string{}
	for _, name := range []string{"r1", "h1", "h2", "lan"} {
		pods[name] = l.pod(t, name).UID
	}
	for _, name := range []string{"h1", "h2"} {
		addresses[name] = lan(name)
	}
	for name, text := range map[string]string{
		"lab.clab.yml": networksTopology + "    h3: {group: hosts, labels: {segment: lan}}\n",
		"c9s.yaml": networksPolicy(", isolate: true", `management:
- {from: {names: [h2]}, to: {names: [h1]}, allow: false}
external: [{prefixes: [0.0.0.0/0, "::/0"], allow: false}]
`),
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(l.topo), name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(l.diff(t)); got != "map[h1:live h2:live h3:create lan:live r1:live]" {
		t.Errorf("diff: %s", got)
	}
	l.deploy(t)
	l.reaches(t, "h3", "10.20.0.1")
	l.reaches(t, "h1", "10.20.0.1")
	l.reaches(t, "h1", "h2")
	reachesNot("h2", "h1")
	reachesNot("h1", lan("h2"))
	reachesNot("h3", lan("h1"))
	reachesNot("h1", l.pod(t, "h2").Status.PodIP)
	for name, uid := range pods {
		if now := l.pod(t, name).UID; now != uid {
			t.Errorf("the Pod of %s was replaced", name)
		}
	}
	for name, a := range addresses {
		if now := lan(name); now != a {
			t.Errorf("%s has %s in the segment, and %s before", name, now, a)
		}
	}
	testcluster.Eventually(t, patience, "pools to have the segment", func() error {
		out := l.c9s(t, "pools", l.name, "-n", l.ns)
		if !regexp.MustCompile(`(?m)^segment/lan +\S+ +4 `).MatchString(out) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}
