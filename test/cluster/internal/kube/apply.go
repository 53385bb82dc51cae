package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// fieldManager owns the fields that this program applies.
const fieldManager = "c9s-cluster"

// Parse reads the objects of a stream of YAML or JSON documents; a List counts
// as its items.
func Parse(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}
		switch {
		case len(object.Object) == 0:
		case object.IsList():
			err := object.EachListItem(func(item runtime.Object) error {
				objects = append(objects, item.(*unstructured.Unstructured))
				return nil
			})
			if err != nil {
				return nil, err
			}
		default:
			objects = append(objects, object)
		}
	}
}

// Apply applies an object on the server. With dryRun the server checks it as if,
// and keeps nothing. A namespaced object without a namespace goes to the given one.
func (c *Client) Apply(ctx context.Context, namespace string, object *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	resource, err := c.resource(object, namespace)
	if err != nil {
		return nil, err
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return resource.Apply(ctx, object.GetName(), object, options)
}

func (c *Client) resource(object *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.Mapper.Reset() // its definition may be new
		mapping, err = c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.Dynamic.Resource(mapping.Resource), nil
	}
	if own := object.GetNamespace(); own != "" {
		namespace = own
	}
	return c.Dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}
