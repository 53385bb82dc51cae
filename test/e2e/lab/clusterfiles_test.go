package lab

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClusterFiles: deploy refuses what a policy mounts and the namespace does not have, and
// applies nothing; once all of it is there, the device has the files.
func TestClusterFiles(t *testing.T) {
	l := written(t, "held", map[string]string{
		"lab.clab.yml": "name: held\ntopology:\n  nodes:\n    a: {kind: linux, image: \"ghcr.io/srl-labs/network-multitool:latest\"}\n",
		"c9s.yaml": `apiVersion: c9s.dev/v1
kind: Policy
profiles:
  - name: held
    set:
      files:
        - {path: /etc/app/token, secret: tokens, key: a}
        - {path: /opt/check.sh, configMap: scripts, key: check.sh, mode: execute}
        - {path: /etc/app/conf.d, configMap: scripts}
`,
	})
	l.namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	if out, err := l.try(t.Context(), l.deployArgs()...); err == nil || !strings.Contains(out, "has no Secret tokens") || !strings.Contains(out, "has no ConfigMap scripts") {
		t.Errorf("deploy without the objects: %v: %s", err, out)
	}
	if n := l.objects(t); n != 0 {
		t.Errorf("%d objects were applied", n)
	}
	core := l.Typed.CoreV1()
	if _, err := core.Secrets(l.ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tokens"}, StringData: map[string]string{"b": "other"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.ConfigMaps(l.ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "scripts"}, Data: map[string]string{"check.sh": "#!/bin/sh\necho checked\n", "app.conf": "level=1\n"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if out, err := l.try(t.Context(), l.deployArgs()...); err == nil || !strings.Contains(out, "has no key a") {
		t.Errorf("deploy without the key: %v: %s", err, out)
	}
	if _, err := core.Secrets(l.ns).Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tokens"}, StringData: map[string]string{"a": "mine"}}, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	l.deploy(t)
	l.ready(t)
	for command, want := range map[string]string{
		"cat /etc/app/token":                   "mine",
		"/opt/check.sh":                        "checked",
		"cat /etc/app/conf.d/app.conf":         "level=1",
		"touch /etc/app/token || echo refused": "refused",
	} {
		if out, err := l.in(t.Context(), "a", "sh", "-c", command); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v: %s", command, err, out)
		}
	}
}
