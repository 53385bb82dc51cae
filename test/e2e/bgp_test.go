package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// Two FRR routers on different workers, as public labs run them, joined by a
// VXLAN between their Pods.
func TestBGPBetweenTwoFRRPods(t *testing.T) {
	c := testcluster.Shared(t)
	ns := c.Namespace(t)
	joinRouters(t, c, ns, router, "r1", "r2", 7, "10.0.0")
	began := time.Now()
	testcluster.Eventually(t, patience, "the route to r2's loopback by BGP", func() error {
		got, err := c.TryExec(t.Context(), ns, "r1", "", "vtysh", "-c", "show ip route 10.0.0.2/32")
		if err == nil && !strings.Contains(got, `Known via "bgp"`) {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
	t.Logf("route learned after %s", time.Since(began).Round(100*time.Millisecond))
	pings(t, c, ns, "r1", "-I", "10.0.0.1", "10.0.0.2") // r2 may learn its route later
}

// patience is how long a test waits for what must come. It is no measure of speed.
const patience = 3 * time.Minute

// pings waits until a ping from a Pod is answered.
func pings(t *testing.T, c *testcluster.Cluster, ns, pod string, args ...string) {
	t.Helper()
	testcluster.Eventually(t, patience, "an answer to ping "+strings.Join(args, " ")+" from "+pod, func() error {
		_, err := c.TryExec(t.Context(), ns, pod, "", append([]string{"ping", "-c", "1", "-W", "2"}, args...)...)
		return err
	})
}

// joinRouters starts two routers, made by make, on different workers, and joins them
// by a VXLAN between their Pods: eth1 has 192.168.<net>.1 and .2, lo has .1 and .2 of
// the loopbacks.
func joinRouters(t *testing.T, c *testcluster.Cluster, ns string, make func(name, node string, as, own, peer int) string, first, second string, net int, loopbacks string) {
	t.Helper()
	c.Apply(t, ns, make(first, c.Workers[0], 65001, 1, 2))
	c.Apply(t, ns, make(second, c.Workers[1], 65002, 2, 1))
	pods := c.WaitReady(t, ns, first, second)
	for i, pod := range pods {
		c.Exec(t, ns, pod.Name, "", "sh", "-c", fmt.Sprintf(
			"ip link add eth1 mtu 1450 type vxlan id %[1]d dstport 14999 remote %[2]s && ip addr add 192.168.%[1]d.%[3]d/24 dev eth1 && ip link set eth1 up && ip addr add %[4]s.%[3]d/32 dev lo",
			net, pods[1-i].Status.PodIP, i+1, loopbacks))
	}
}

// router's image starts itself: no command.
func router(name, node string, as, own, peer int) string {
	return strings.NewReplacer(
		"NAME", name, "NODE", node, "IMAGE", frrImage,
		"AS", fmt.Sprint(as), "OWN", fmt.Sprint(own), "PEER", fmt.Sprint(peer), "OTHER", fmt.Sprint(65000+peer),
	).Replace(`
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME}
data:
  daemons: |
    bgpd=yes
    vtysh_enable=yes
    zebra_options="-A 127.0.0.1"
    bgpd_options="-A 127.0.0.1"
  frr.conf: |
    hostname NAME
    router bgp AS
     bgp router-id 10.0.0.OWN
     no bgp ebgp-requires-policy
     neighbor 192.168.7.PEER remote-as OTHER
     neighbor 192.168.7.PEER timers 1 3
     neighbor 192.168.7.PEER timers connect 1
     address-family ipv4 unicast
      network 10.0.0.OWN/32
     exit-address-family
---
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 0
  volumes: [{name: config, configMap: {name: NAME}}]
  containers:
  - name: frr
    image: IMAGE
    securityContext: {privileged: true}
    readinessProbe: {exec: {command: [vtysh, -c, show bgp summary]}, periodSeconds: 1}
    volumeMounts:
    - {name: config, mountPath: /etc/frr/daemons, subPath: daemons}
    - {name: config, mountPath: /etc/frr/frr.conf, subPath: frr.conf}
`)
}
