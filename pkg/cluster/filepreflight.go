package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fileHolder is a Secret or ConfigMap that Pods of the lab mount and that is no object of the
// lab.
type fileHolder struct {
	kind, name string
	// keys are those that Pods need, each with a Deployment that does; "" needs the object.
	keys map[string]string
}

// fileHolders returns what the Pods mount of the namespace, sorted. A Pod without it does not
// start.
func (l *Lab) fileHolders() ([]fileHolder, error) {
	own := map[string]bool{}
	for _, u := range l.objects {
		own[u.GetKind()+" "+u.GetName()] = true
	}
	found := map[string]fileHolder{}
	for _, u := range l.objects {
		if u.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
			return nil, fmt.Errorf("reading Deployment %s: %w", u.GetName(), err)
		}
		add := func(kind, name string, optional *bool, keys ...string) {
			if own[kind+" "+name] || name == "" || optional != nil && *optional {
				return
			}
			h, ok := found[kind+" "+name]
			if !ok {
				h = fileHolder{kind, name, map[string]string{}}
				found[kind+" "+name] = h
			}
			for _, key := range append(keys, "") {
				h.keys[key] = cmp.Or(h.keys[key], u.GetName())
			}
		}
		for _, v := range d.Spec.Template.Spec.Volumes {
			var keys []string
			switch {
			case v.Secret != nil:
				for _, item := range v.Secret.Items {
					keys = append(keys, item.Key)
				}
				add("Secret", v.Secret.SecretName, v.Secret.Optional, keys...)
			case v.ConfigMap != nil:
				for _, item := range v.ConfigMap.Items {
					keys = append(keys, item.Key)
				}
				add("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Optional, keys...)
			}
		}
	}
	out := make([]fileHolder, 0, len(found))
	for _, h := range found {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b fileHolder) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return out, nil
}

// missingFiles finds Secrets, ConfigMaps and keys of them that the Pods mount and that the
// namespace does not have.
func (c *Client) missingFiles(ctx context.Context, l *Lab, existing Existing, holders []fileHolder) ([]error, error) {
	var errs []error
	for _, h := range holders {
		have, found := map[string]bool{}, !existing.Fresh
		if found {
			var err error
			if have, err = c.keysOf(ctx, l.Namespace, h); apierrors.IsNotFound(err) {
				found = false
			} else if apierrors.IsForbidden(err) {
				continue // reported elsewhere
			} else if err != nil {
				return nil, fmt.Errorf("reading %s %s in namespace %s: %w", h.kind, h.name, l.Namespace, err)
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("namespace %s has no %s %s, of which %s mounts files (files or probes of the policy): create it with '%s'", l.Namespace, h.kind, h.name, h.keys[""], existing.create(l, h.what())))
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(h.keys)) {
			if key != "" && !have[key] {
				errs = append(errs, fmt.Errorf("%s %s in namespace %s has no key %s, which %s mounts (files or probes of the policy): add it, or correct the key", h.kind, h.name, l.Namespace, key, h.keys[key]))
			}
		}
	}
	return errs, nil
}

// keysOf reads the names of the files that an object holds.
func (c *Client) keysOf(ctx context.Context, namespace string, h fileHolder) (map[string]bool, error) {
	keys := map[string]bool{}
	if h.kind == "Secret" {
		s, err := c.Typed.CoreV1().Secrets(namespace).Get(ctx, h.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for key := range s.Data {
			keys[key] = true
		}
		return keys, nil
	}
	m, err := c.Typed.CoreV1().ConfigMaps(namespace).Get(ctx, h.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for key := range m.Data {
		keys[key] = true
	}
	for key := range m.BinaryData {
		keys[key] = true
	}
	return keys, nil
}

// what is the object with what it needs to have, for kubectl create.
func (h fileHolder) what() string {
	what := "configmap " + h.name
	if h.kind == "Secret" {
		what = "secret generic " + h.name
	}
	for _, key := range slices.Sorted(maps.Keys(h.keys)) {
		if key != "" {
			what += fmt.Sprintf(" --from-file=%s=FILE", key)
		}
	}
	if len(h.keys) == 1 {
		what += " --from-file=FOLDER"
	}
	return what
}
