package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/render"
)

// Lab is a rendered lab on its way into a cluster.
type Lab struct {
	Name, Namespace string
	// namespace is the Namespace object, nil where none is rendered.
	namespace *unstructured.Unstructured
	objects   []*unstructured.Unstructured
	// lines are the lines of the topology that objects come from, by kind and name.
	lines map[string]string
}

// NewLab takes over what render made.
func NewLab(out *render.Output) (*Lab, error) {
	l := &Lab{Name: out.Lab, Namespace: out.Namespace, lines: map[string]string{}}
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
		l.lines[objectKey(u)] = out.Objects[i].Source
	}
	return l, nil
}

// Line returns the line of the topology that an object ("Deployment/r1") comes from, and
// otherwise what the cluster has noted of it.
func (l *Lab) Line(object, noted string) string { return cmp.Or(l.lines[object], noted) }

func (l *Lab) line(u *unstructured.Unstructured) string {
	return l.Line(objectKey(u), u.GetAnnotations()[contract.AnnotationSource])
}
