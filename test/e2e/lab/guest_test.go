package lab

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A lab in a namespace that was there before it: the namespace and what others have in
// it stay. On the way: the server's dry run before there is a namespace, and an image
// that is corrected, of which the old Pod's failure is not the new one's.
func TestGuest(t *testing.T) {
	l := smallLab(t, "guest", "registry.example.net/no/such:image")
	out := l.deploy(t, "--dry-run=server")
	if !strings.Contains(out, "as if in namespace default") || !strings.Contains(out, "nothing was changed") {
		t.Errorf("the dry run says:\n%s", out)
	}
	if _, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the dry run left a namespace: %v", err)
	}

	l.namespace(t, nil)
	mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Data: map[string]string{"a": "b"}}
	if _, err := l.Typed.CoreV1().ConfigMaps(l.ns).Create(t.Context(), mine, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	l.refused(t, []string{"its image cannot be pulled"})
	text, err := os.ReadFile(l.topo)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.topo, []byte(strings.Replace(string(text), "registry.example.net/no/such:image", goodImage, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	l.deploy(t)
	l.ready(t)

	began := time.Now()
	l.c9s(t, "destroy", "guest", "-n", l.ns, "--yes")
	t.Logf("destroyed in %s", time.Since(began).Round(100*time.Millisecond))
	ns, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{})
	if err != nil || ns.DeletionTimestamp != nil || ns.Labels["app.kubernetes.io/managed-by"] != "" {
		t.Errorf("the namespace: %+v, %v", ns.ObjectMeta, err)
	}
	maps, err := l.Typed.CoreV1().ConfigMaps(l.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cm := range maps.Items {
		if cm.Name != "mine" && cm.Name != "kube-root-ca.crt" {
			t.Errorf("ConfigMap %s is left", cm.Name)
		}
	}
	if len(maps.Items) != 2 {
		t.Errorf("%d ConfigMaps are left", len(maps.Items))
	}
}
