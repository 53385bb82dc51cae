package apicheck

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/c9s-lab/c9s/pkg/manifest"
)

// objectKey names an object as the API server does.
type objectKey struct {
	group, kind, namespace, name string
}

func keyOf(o *manifest.Object) objectKey {
	gvk := o.Object.GetObjectKind().GroupVersionKind()
	key := objectKey{group: gvk.Group, kind: gvk.Kind}
	if meta, ok := o.Object.(metav1.Object); ok {
		key.namespace, key.name = meta.GetNamespace(), meta.GetName()
	}
	return key
}

// objectIndex holds the first object of each name.
type objectIndex map[objectKey]*manifest.Object

func indexObjects(objs []manifest.Object) objectIndex {
	index := make(objectIndex, len(objs))
	for i := range objs {
		key := keyOf(&objs[i])
		if index[key] == nil {
			index[key] = &objs[i]
		}
	}
	return index
}

func (x objectIndex) has(kind, namespace, name string) bool {
	return x[objectKey{kind: kind, namespace: namespace, name: name}] != nil
}

// hasAccount reports whether a ServiceAccount is there; every namespace has the
// one called default.
func (x objectIndex) hasAccount(namespace, name string) bool {
	return name == "" || name == "default" || x.has("ServiceAccount", namespace, name)
}

// missingKeys are the keys that a volume picks from a ConfigMap or Secret which
// is there but does not have them.
func (x objectIndex) missingKeys(kind, namespace, name string, items []corev1.KeyToPath) []string {
	o := x[objectKey{kind: kind, namespace: namespace, name: name}]
	if o == nil {
		return nil
	}
	var out []string
	for _, item := range items {
		has := false
		switch obj := o.Object.(type) {
		case *corev1.ConfigMap:
			_, text := obj.Data[item.Key]
			_, binary := obj.BinaryData[item.Key]
			has = text || binary
		case *corev1.Secret:
			_, data := obj.Data[item.Key]
			_, text := obj.StringData[item.Key]
			has = data || text
		}
		if !has {
			out = append(out, item.Key)
		}
	}
	return out
}

// known are labels, keys and images of which the legality is known: most objects
// have the same ones.
type known struct {
	labels map[[2]string]bool
	keys   map[string]bool
	images map[string]bool
}

func newKnown() known {
	return known{labels: map[[2]string]bool{}, keys: map[string]bool{}, images: map[string]bool{}}
}

// legalImage is LegalImage; the API takes any text as an image, and the Pod would
// then never start.
func (k known) legalImage(ref string) bool {
	legal, have := k.images[ref]
	if !have {
		legal = LegalImage(ref)
		k.images[ref] = legal
	}
	return legal
}

// LegalImage reports whether an image is a reference that a runtime can parse.
func LegalImage(ref string) bool {
	_, err := name.ParseReference(ref)
	return err == nil
}

// imageHint returns the hint for a malformed image reference.
func imageHint(ref string) string {
	if strings.Contains(ref, "$") {
		return "set the environment variable, or give it a default: ${NAME:-value}"
	}
	return "write [registry/]name[:tag] with the name in lower case, or replace it with --map-image"
}

func (k known) legalKey(key string) bool {
	if !k.keys[key] {
		k.keys[key] = len(validation.IsQualifiedName(key)) == 0
	}
	return k.keys[key]
}

func (k known) legalLabel(key, text string) bool {
	pair := [2]string{key, text}
	if !k.labels[pair] {
		k.labels[pair] = k.legalKey(key) && len(validation.IsValidLabelValue(text)) == 0
	}
	return k.labels[pair]
}
