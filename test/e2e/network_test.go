package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

func TestPodsAcrossWorkersAtFullMTU(t *testing.T) {
	c := testcluster.Shared(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, onNode("a", c.Workers[0], hostImage, wait))
	c.Apply(t, ns, onNode("b", c.Workers[len(c.Workers)-1], hostImage, wait))
	b := c.WaitReady(t, ns, "a", "b")[1]

	for _, ip := range b.Status.PodIPs {
		headers := 28 // IPv4 and ICMP
		if strings.Contains(ip.IP, ":") {
			headers = 48
		}
		size := func(bytes int) []string { return []string{"-M", "do", "-s", fmt.Sprint(bytes - headers), ip.IP} }
		pings(t, c, ns, "a", size(c.MTU)...)
		if _, err := c.TryExec(t.Context(), ns, "a", "", append([]string{"ping", "-c", "1", "-W", "2"}, size(c.MTU+1)...)...); err == nil {
			t.Errorf("%s, packets of %d bytes pass, one more than the MTU", ip.IP, c.MTU+1)
		}
	}
}

func TestServices(t *testing.T) {
	c := testcluster.Shared(t)
	ns := c.Namespace(t)
	server := c.Workers[0]
	c.Apply(t, ns, onNode("server", server, hostImage, "exec start-services"))
	c.Apply(t, ns, onNode("client", c.Workers[1], hostImage, wait))
	c.Apply(t, ns, onNode("neighbour", server, hostImage, wait))
	c.Apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: server}, ports: [{port: 8080, targetPort: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {type: NodePort, selector: {app: server}, ports: [{port: 80}]}
`)
	c.WaitReady(t, ns, "server", "client", "neighbour")
	outside, err := c.Typed.CoreV1().Services(ns).Get(t.Context(), "outside", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodePort := fmt.Sprint(outside.Spec.Ports[0].NodePort)

	for _, client := range []string{"client", "neighbour"} {
		testcluster.Eventually(t, patience, "the Service by its name from "+client, func() error {
			_, err := c.TryExec(t.Context(), ns, client, "", "curl", "-sSf", "-m", "2", "http://web:8080/")
			return err
		})
	}
	for _, worker := range c.Workers {
		address := net.JoinHostPort(nodeAddress(t, c, worker), nodePort)
		answers(t, "the NodePort on "+worker, address)
	}
}

func nodeAddress(t *testing.T, c *testcluster.Cluster, name string) string {
	t.Helper()
	node, err := c.Typed.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	t.Fatalf("worker %s has no address", name)
	return ""
}

// Peers are found by a headless Service before they are ready, since readiness is
// about their links.
func TestHeadlessServiceOfPodsThatAreNotReady(t *testing.T) {
	c := testcluster.Shared(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, onNode("client", c.Workers[0], hostImage, wait))
	c.Apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: wire}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: never}, ports: [{port: 1, protocol: UDP}]}
---
apiVersion: v1
kind: Pod
metadata: {name: never, labels: {app: never}}
spec:
  hostname: never
  subdomain: wire
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: `+hostImage+`, command: [sleep, infinity], readinessProbe: {exec: {command: ["false"]}}}]
`)
	c.WaitReady(t, ns, "client")
	var want string
	testcluster.Eventually(t, patience, "an address of the Pod that is not ready", func() error {
		pod, err := c.Typed.CoreV1().Pods(ns).Get(t.Context(), "never", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if want = pod.Status.PodIP; want == "" {
			return fmt.Errorf("none yet")
		}
		return nil
	})
	for _, name := range []string{"wire", "never.wire"} {
		full := fmt.Sprintf("%s.%s.svc.cluster.local", name, ns)
		testcluster.Eventually(t, patience, "DNS for "+full, func() error {
			got, err := c.TryExec(t.Context(), ns, "client", "", "dig", "+short", "+time=2", "+tries=1", full, "A")
			if err == nil && strings.TrimSpace(got) != want {
				err = fmt.Errorf("got %q, want %q", got, want)
			}
			return err
		})
	}
}

// The cluster's CNI plugin enforces no NetworkPolicy: tests here show that a
// policy is accepted, never that it protects.
func TestNetworkPolicyIsNotEnforced(t *testing.T) {
	c := testcluster.Shared(t)
	ns := c.Namespace(t)
	c.Apply(t, ns, onNode("server", c.Workers[0], hostImage, wait))
	c.Apply(t, ns, onNode("client", c.Workers[1], hostImage, wait))
	c.Apply(t, ns, `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: nobody}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
`)
	server := c.WaitReady(t, ns, "server", "client")[0]
	// If none comes the policy seems to be enforced: say so in docs/guides/local-cluster.md, and test it.
	pings(t, c, ns, "client", server.Status.PodIP)
	t.Log("NetworkPolicy: accepted, not enforced")
}

func TestIPv6(t *testing.T) {
	c := testcluster.Shared(t)
	if !c.IPv6 {
		t.Skipf("cluster %s has no IPv6: start it with --ipv6", c.Name)
	}
	ns := c.Namespace(t)
	c.Apply(t, ns, onNode("server", c.Workers[0], hostImage, "exec start-services"))
	c.Apply(t, ns, onNode("client", c.Workers[1], hostImage, wait))
	c.Apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: server}, ipFamilyPolicy: SingleStack, ipFamilies: [IPv6], ports: [{port: 80}]}
`)
	server := c.WaitReady(t, ns, "server", "client")[0]
	if len(server.Status.PodIPs) != 2 {
		t.Fatalf("the Pod has the addresses %v, want two", server.Status.PodIPs)
	}
	pings(t, c, ns, "client", server.Status.PodIPs[1].IP)
	testcluster.Eventually(t, patience, "the IPv6 Service", func() error {
		_, err := c.TryExec(t.Context(), ns, "client", "", "curl", "-6", "-sSf", "-m", "2", "http://web/")
		return err
	})
}
