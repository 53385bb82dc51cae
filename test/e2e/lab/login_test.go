package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// TestSSHProbe: a node is ready once the login of its SSH probe succeeds, with a password of the
// policy or of a Secret.
func TestSSHProbe(t *testing.T) {
	server := `mkdir -p /run/sshd; ssh-keygen -A; echo root:%s | chpasswd; sed -i "s/.*PermitRootLogin.*/PermitRootLogin yes/" /etc/ssh/sshd_config; $(command -v sshd || echo /usr/sbin/sshd) -o PasswordAuthentication=yes -o PermitRootLogin=yes`
	var topo strings.Builder
	topo.WriteString("name: login\ntopology:\n  defaults: {kind: linux, image: \"ghcr.io/srl-labs/network-multitool:latest\"}\n  nodes:\n")
	for node, password := range map[string]string{"a": "first", "b": "second", "c": "other"} {
		fmt.Fprintf(&topo, "    %s:\n      exec:\n        - sh -c '%s'\n", node, fmt.Sprintf(server, password))
	}
	l := written(t, "login", map[string]string{"lab.clab.yml": topo.String(), "c9s.yaml": `apiVersion: c9s.dev/v1
kind: Policy
profiles:
  - {name: secret, priority: 1, match: {names: [b]}, set: {probes: {ssh: {username: root, secret: logins, key: b}}}}
  - {name: policy, priority: 2, set: {probes: {ssh: {username: root, password: first}}}}
`})
	l.namespace(t, nil)
	if _, err := l.Typed.CoreV1().Secrets(l.ns).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "logins"}, StringData: map[string]string{"b": "second\n"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	l.deploy(t, "--wait=false")
	ready := func(pod string) bool {
		p, err := l.tryPod(t, pod)
		if err != nil {
			return false
		}
		states := p.Status.ContainerStatuses
		return len(states) > 0 && !slices.ContainsFunc(states, func(s corev1.ContainerStatus) bool { return !s.Ready })
	}
	testcluster.Eventually(t, patience, "logins to succeed", func() error {
		if !ready("a") || !ready("b") {
			return fmt.Errorf("a is ready: %t, b: %t", ready("a"), ready("b"))
		}
		return nil
	})
	testcluster.Eventually(t, patience, "the event of a failed login", func() error {
		events, err := l.Typed.CoreV1().Events(l.ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if strings.Contains(e.Message, "first") || strings.Contains(e.Message, "second") {
				t.Errorf("an event has a password: %s", e.Message)
			}
			if e.Reason == "Unhealthy" && strings.HasPrefix(e.InvolvedObject.Name, "c-") && strings.Contains(e.Message, "ssh: port 22, user root: ") {
				return nil
			}
		}
		return fmt.Errorf("%d other events", len(events.Items))
	})
	if ready("c") {
		t.Error("c is ready, and its password is another one")
	}
	if _, err := l.in(t.Context(), "c", "sh", "-c", "echo root:first | chpasswd"); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, patience, "c to be ready", func() error {
		if !ready("c") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	l.c9s(t, "destroy", l.name, "-n", l.ns, "--yes") // the namespace stays: the lab did not create it
}
