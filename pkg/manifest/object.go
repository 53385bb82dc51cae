// Package manifest converts Kubernetes objects to and from their written form: a
// stream of YAML or JSON, a folder with a kustomization, and a kustomize overlay on
// such a folder. Only WriteFolder and ApplyOverlay touch the disk.
package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// Object is one Kubernetes object.
type Object struct {
	// Group is the file of a rendered folder that the object belongs to, such as
	// GroupLab or NodeGroup of a Pod.
	Group string
	// Object is a typed API object; after an overlay it may be unstructured.
	Object runtime.Object
	// Source is the line that the object comes from, "topo.clab.yml:17". A stream has it
	// in a comment.
	Source string
	// Comments are written above keys in YAML, by their path ("spec.template.spec").
	Comments map[string]string
	// Pos and Node are the place in the topology and the node, "" for objects of the
	// whole lab, for diagnostics about the object.
	Pos  diag.Pos
	Node string
	// Secret means that the object must not be committed.
	Secret bool

	// json is the object's canonical JSON: see encode.
	json []byte
}

// Encode encodes the object once, for all later uses of its JSON.
func (o *Object) Encode() error {
	data, err := encode(o.Object)
	o.json = data
	return err
}

// JSON returns the object in canonical JSON: apiVersion, kind and metadata first,
// other keys sorted, without the empty fields that the API's types write (status,
// creationTimestamp). The caller must not change the bytes.
func (o *Object) JSON() ([]byte, error) {
	if o.json != nil {
		return o.json, nil
	}
	return encode(o.Object)
}

// Kind returns the kind that the object is written with.
func (o *Object) Kind() string {
	return o.Object.GetObjectKind().GroupVersionKind().Kind
}

// IsSecret reports whether o is a Secret.
func IsSecret(o runtime.Object) bool {
	_, ok := o.(*corev1.Secret)
	return ok
}
