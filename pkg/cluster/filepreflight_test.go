package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
)

// TestMissingFiles: what Pods mount of the namespace is in it, in the lab, optional, or
// reported.
func TestMissingFiles(t *testing.T) {
	object := func(kind, name string, volumes ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetKind(kind)
		u.SetName(name)
		if len(volumes) > 0 {
			_ = unstructured.SetNestedSlice(u.Object, volumes, "spec", "template", "spec", "volumes")
		}
		return u
	}
	secret := func(name string, more map[string]any) map[string]any {
		source := map[string]any{"secretName": name}
		for k, v := range more {
			source[k] = v
		}
		return map[string]any{"name": name, "secret": source}
	}
	key := func(key string) map[string]any {
		return map[string]any{"items": []any{map[string]any{"key": key, "path": key}}}
	}
	l := &Lab{Name: "demo", Namespace: "demo", objects: []*unstructured.Unstructured{
		object("Deployment", "r1", secret("tokens", key("a")), secret("own", nil), secret("optional", map[string]any{"optional": true}), secret("gone", nil)),
		object("Deployment", "r2", secret("tokens", key("b")), map[string]any{"name": "c", "configMap": map[string]any{"name": "conf"}}),
		object("Secret", "own"),
	}}
	c := &Client{Typed: fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tokens", Namespace: "demo"}, Data: map[string][]byte{"a": nil}})}
	holders, err := l.fileHolders()
	if err != nil || len(holders) != 3 {
		t.Errorf("%d objects are looked for, %v", len(holders), err)
	}
	text := func(e Existing) string {
		errs, err := c.missingFiles(t.Context(), l, e, holders)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, e := range errs {
			b.WriteString(e.Error() + "\n")
		}
		return b.String()
	}
	const want = `namespace demo has no ConfigMap conf, of which r2 mounts files (files or probes of the policy): create it with 'kubectl -n demo create configmap conf --from-file=FOLDER'
namespace demo has no Secret gone, of which r1 mounts files (files or probes of the policy): create it with 'kubectl -n demo create secret generic gone --from-file=FOLDER'
Secret tokens in namespace demo has no key b, which r2 mounts (files or probes of the policy): add it, or correct the key
`
	if got := text(Existing{}); got != want {
		t.Errorf("got:\n%s", got)
	}
	if got := text(Existing{Fresh: true}); !strings.Contains(got, "no Secret tokens, of which r1 mounts files (files or probes of the policy): create it with 'kubectl -n demo create secret generic tokens --from-file=a=FILE --from-file=b=FILE'") {
		t.Errorf("new namespace:\n%s", got)
	}
}
