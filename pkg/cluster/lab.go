package cluster

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/c9s-lab/c9s/pkg/render"
)

// Lab is a rendered lab on its way into a cluster.
type Lab struct {
	Name, Namespace string
	// namespace is the Namespace object, nil where none is rendered.
	namespace *unstructured.Unstructured
	objects   []*unstructured.Unstructured
}

// NewLab takes over what render made.
func NewLab(out *render.Output) (*Lab, error) {
	l := &Lab{Name: out.Lab, Namespace: out.Namespace}
	for i := range out.Objects {
		data, err := out.Objects[i].JSON()
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(data, &u.Object); err != nil {
			return nil, fmt.Errorf("reading back a rendered object: %w", err)
		}
		if u.GetKind() == "Namespace" {
			l.namespace = u
			continue
		}
		l.objects = append(l.objects, u)
	}
	return l, nil
}
