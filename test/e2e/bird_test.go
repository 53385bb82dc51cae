package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// birdImage is a name that public labs use; the cluster's bird stands in.
const birdImage = "ghcr.io/srl-labs/bird:latest"

// Two BIRD routers on different workers, joined by a VXLAN between their Pods,
// tell each other their loopbacks by BGP.
func TestBGPBetweenTwoBIRDPods(t *testing.T) {
	c := testcluster.Shared(t)
	c.Load(t, "bird")
	ns := c.Namespace(t)
	joinRouters(t, c, ns, birdRouter, "b1", "b2", 8, "10.1.0")
	began := time.Now()
	testcluster.Eventually(t, patience, "the route to b2's loopback by BGP", func() error {
		got, err := c.TryExec(t.Context(), ns, "b1", "", "ip", "route", "show", "10.1.0.2/32")
		if err == nil && !strings.Contains(got, "via 192.168.8.2 dev eth1 proto bird") {
			state, _ := c.TryExec(t.Context(), ns, "b1", "", "birdc", "show", "protocols")
			err = fmt.Errorf("route %q\n%s", got, state)
		}
		return err
	})
	t.Logf("route learned after %s", time.Since(began).Round(100*time.Millisecond))
	pings(t, c, ns, "b1", "-I", "10.1.0.1", "10.1.0.2") // b2 may learn its route later
	testcluster.Eventually(t, patience, "an established session in b2", func() error {
		got, err := c.TryExec(t.Context(), ns, "b2", "", "birdc", "show", "protocols", "peer")
		if err == nil && !strings.Contains(got, "Established") {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
}

// birdRouter's image starts itself: no command.
func birdRouter(name, node string, as, own, peer int) string {
	return strings.NewReplacer(
		"NAME", name, "NODE", node, "IMAGE", birdImage,
		"AS", fmt.Sprint(as), "OWN", fmt.Sprint(own), "PEER", fmt.Sprint(peer), "OTHER", fmt.Sprint(65000+peer),
	).Replace(`
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME}
data:
  bird.conf: |
    router id 10.1.0.OWN;
    protocol device { scan time 1; }
    protocol direct { ipv4; interface "lo"; }
    protocol kernel { ipv4 { export where source = RTS_BGP; }; }
    protocol bgp peer {
      local 192.168.8.OWN as AS;
      neighbor 192.168.8.PEER as OTHER;
      connect delay time 1;
      connect retry time 1;
      error wait time 1, 2;
      ipv4 { import all; export where source = RTS_DEVICE; };
    }
---
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 0
  volumes: [{name: config, configMap: {name: NAME}}]
  containers:
  - name: bird
    image: IMAGE
    securityContext: {privileged: true}
    readinessProbe: {exec: {command: [birdc, show, status]}, periodSeconds: 1}
    volumeMounts:
    - {name: config, mountPath: /etc/bird/bird.conf, subPath: bird.conf}
`)
}
