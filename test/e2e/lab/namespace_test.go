package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// The sidecar's network namespace. A bridge, which is in there, can be looked at. A device resolves the lab's names and the cluster's
// wherever its default route leads. What happens is printed by status -w at once. A Pod of which both holders of the namespace have ended
// is replaced: by the controller, and without one by the kubelet.
func TestNamespace(t *testing.T) {
	l := written(t, "netns", map[string]string{"lab.clab.yml": `name: netns
topology:
  defaults: {kind: linux, image: ghcr.io/srl-labs/network-multitool:latest}
  nodes:
    A:
      exec:
        - sh -c 'until test -e /tmp/go; do sleep 0.1; done; exit 3'
    B: {}
    br1: {kind: bridge}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
    - endpoints: ["A:eth2", "br1:port1"]
    - endpoints: ["B:eth2", "br1:port2"]
`})
	l.deploy(t)
	l.ready(t)
	t.Run("bridge", func(t *testing.T) {
		for _, do := range []string{"ip addr add 10.0.0.1/24 dev eth2", "ping -c 1 -w 5 10.0.0.9 || true"} {
			if out, err := l.in(t.Context(), "A", "sh", "-c", do); err != nil {
				t.Fatalf("%s: %v\n%s", do, err, out)
			}
		}
		l.eventually(t, "br1", " master br1 state forwarding ", "bridge", "link")
		l.eventually(t, "br1", " dev port1 master br1\n", "bridge", "fdb", "show")
		if out := l.c9s(t, "inspect", "netns", "-n", l.ns); !strings.Contains(out, "br1") {
			t.Errorf("inspect does not show the bridge:\n%s", out)
		}
		if out, err := l.in(t.Context(), "br1", "ip", "link"); err == nil {
			t.Errorf("a bridge runs any command: %s", out)
		}
	})
	t.Run("names", func(t *testing.T) {
		l.eventually(t, "A", "nameserver 172.20.20.1", "cat", "/etc/resolv.conf")
		for _, do := range []string{"ip route del default", "ip -6 route del default"} {
			if out, err := l.in(t.Context(), "A", "sh", "-c", do); err != nil {
				t.Fatalf("%s: %v\n%s", do, err, out)
			}
		}
		l.eventually(t, "A", "172.20.20.", "nslookup", "B.", "172.20.20.1")
		l.eventually(t, "A", "Address", "nslookup", "kubernetes.default.svc.cluster.local")
	})
	t.Run("news", func(t *testing.T) { news(t, l) })
	l.ready(t)
	t.Run("controller", func(t *testing.T) {
		l.losesNamespace(t, "a") // deleted too soon to be seen in the status
		events, err := l.Typed.CoreV1().Events(l.ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Reason == "PodReplaced" && e.InvolvedObject.Name == "a" {
				return
			}
		}
		t.Error("no Event says that the Pod was replaced")
	})
	t.Run("kubelet", func(t *testing.T) {
		long(t) // it looks at the volumes once a minute or so
		controllers := metav1.ListOptions{LabelSelector: "c9s.dev/component=controller"}
		if err := l.Typed.AppsV1().Deployments(l.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, controllers); err != nil {
			t.Fatal(err)
		}
		testcluster.Eventually(t, patience, "the controller to be gone", func() error {
			list, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), controllers)
			if err == nil && len(list.Items) > 0 {
				err = fmt.Errorf("%d Pods", len(list.Items))
			}
			return err
		})
		if !l.losesNamespace(t, "a") {
			t.Error("the status did not say that the namespace is lost")
		}
	})
}

// losesNamespace ends both holders in the Pod of a node, and waits for a Pod in its place
// and a lab that is ready. It returns whether the status named the cause meanwhile.
func (l *lab) losesNamespace(t *testing.T, node string) (said bool) {
	t.Helper()
	old := l.pod(t, node)
	began := time.Now()
	l.OnNode(t, old.Spec.NodeName, "sh", "-c", fmt.Sprintf(`
for p in /proc/[0-9]*; do
	case "$(tr '\0' ' ' <$p/cmdline 2>/dev/null)" in
	"/c9s/exec hold"*) grep -q %s $p/cgroup && helper=${p#/proc/} ;;
	*" wire ") grep -q %s $p/cgroup && supervisor=${p#/proc/} ;;
	esac
done
test -n "$helper" && test -n "$supervisor" && kill -9 $helper $supervisor`, containerID(t, old, node), containerID(t, old, "wire")))
	testcluster.Eventually(t, patience, "a Pod in place of "+old.Name, func() error {
		s, err := l.tryStatus(t, "--fresh")
		if err != nil {
			return err
		}
		n := s.node(strings.ToUpper(node))
		said = said || n.PodName == old.Name && strings.Contains(n.Reason, "lost its network namespace")
		if n.PodName == old.Name || n.PodName == "" {
			return fmt.Errorf("%s, in Pod %q: %s", n.State, n.PodName, n.Reason)
		}
		return nil
	})
	t.Logf("another Pod after %s", time.Since(began).Round(100*time.Millisecond))
	l.ready(t)
	t.Logf("ready after %s", time.Since(began).Round(100*time.Millisecond))
	return said
}

// containerID is the runtime's name of a Pod's container.
func containerID(t *testing.T, pod *corev1.Pod, name string) string {
	t.Helper()
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if _, id, ok := strings.Cut(s.ContainerID, "://"); ok && s.Name == name {
			return id
		}
	}
	t.Fatalf("Pod %s has no container %s", pod.Name, name)
	return ""
}
