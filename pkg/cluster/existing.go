package cluster

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/render"
)

// Existing is what a namespace has of a lab that the next render keeps.
type Existing struct {
	// Lab is the name of the lab that is there, "" for none.
	Lab string
	// Namespace is nil where it does not exist, or may not be seen.
	Namespace *corev1.Namespace
	// Fresh reports whether it does not exist.
	Fresh bool
	// Version is the c9s that rendered the lab, and Image the c9s image that it runs.
	Version, Image string
	Allocations    *lab.Allocations
	WireKey        []byte
	// CA is the lab's certificate authority, Certificates those of nodes, by the
	// name of their Secret.
	CA *render.Certificate
	// Expires is when the lab expires, the zero value for never, and expiry the UID of the
	// object that owns the others. Owner is the user who deployed it.
	Expires      time.Time
	expiry       types.UID
	Owner        string
	Certificates map[string]render.Certificate
}

// Same reports whether a lab is rendered with the same allocations and keys from both.
func (e Existing) Same(other Existing) bool {
	return e.Lab == other.Lab && e.Image == other.Image && e.Version == other.Version && bytes.Equal(e.WireKey, other.WireKey) &&
		e.Expires.Equal(other.Expires) && e.expiry == other.expiry && reflect.DeepEqual(e.Allocations, other.Allocations) && reflect.DeepEqual(e.CA, other.CA) && reflect.DeepEqual(e.Certificates, other.Certificates)
}

// Existing reads a namespace. One that does not exist is empty.
func (c *Client) Existing(ctx context.Context, namespace string) (Existing, error) {
	out := Existing{Certificates: map[string]render.Certificate{}}
	ns, err := c.Typed.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		out.Fresh = true
		return out, nil
	case apierrors.IsForbidden(err): // a user of one namespace: go by what is in it
	case err != nil:
		return out, fmt.Errorf("reading namespace %s: %w", namespace, err)
	default:
		out.Namespace = ns
	}
	configMaps, err := c.labConfigMaps(ctx, namespace)
	if err != nil {
		return out, err
	}
	for _, cm := range configMaps {
		if name := cm.Annotations[contract.AnnotationLabName]; name != "" {
			out.Lab, out.Version = name, cm.Annotations[contract.AnnotationVersion]
		}
		switch cm.Name {
		case contract.ExpiryConfigMap:
			if cm.DeletionTimestamp != nil { // the next one has another UID
				continue
			}
			out.Expires, out.expiry = contract.ParseExpiry(cm.Annotations[contract.AnnotationExpires]), cm.UID
		case contract.DirectoryConfigMap:
			out.Owner = cm.Annotations[contract.AnnotationOwner]
		}
	}
	if out.Allocations, err = joinAllocations(namespace, configMaps); err != nil {
		return out, err
	}
	if out.Lab != "" {
		if out.Image, err = c.sidecarImage(ctx, namespace); err != nil {
			return out, err
		}
	}
	return out, c.readSecrets(ctx, namespace, &out)
}

// Terminating reports whether the namespace is being deleted.
func (e Existing) Terminating() bool {
	return e.Namespace != nil && e.Namespace.Status.Phase == corev1.NamespaceTerminating
}

// ExistingAfter reads a namespace when it is not, or no longer, being deleted. If that takes
// longer than patience, it is read as it is.
func (c *Client) ExistingAfter(ctx context.Context, namespace string, patience time.Duration) (Existing, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.namespaceGone(waiting, namespace); err != nil && waiting.Err() == nil {
		return Existing{}, err
	}
	return c.Existing(ctx, namespace)
}

// labConfigMaps lists the ConfigMaps of the whole lab in a namespace.
func (c *Client) labConfigMaps(ctx context.Context, namespace string) ([]corev1.ConfigMap, error) {
	list, err := c.Typed.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelComponent + "=" + contract.ComponentLab})
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// joinAllocations returns the allocations in the ConfigMaps of a namespace, nil for none.
func joinAllocations(namespace string, configMaps []corev1.ConfigMap) (*lab.Allocations, error) {
	parts := map[string][]byte{}
	for _, cm := range configMaps {
		if strings.HasPrefix(cm.Name, contract.AllocationsName(0)) {
			for _, text := range cm.Data {
				parts[cm.Name] = []byte(text)
			}
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	var all [][]byte
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, parts[name])
	}
	a, err := lab.JoinAllocations(all...)
	if err != nil {
		return nil, fmt.Errorf("reading the allocations in namespace %s: %w", namespace, err)
	}
	return &a, nil
}

// Allocations returns the addresses and ids of a lab, nil if they are not in the cluster.
func (c *Client) Allocations(ctx context.Context, namespace string) (*lab.Allocations, error) {
	configMaps, err := c.labConfigMaps(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return joinAllocations(namespace, configMaps)
}

// sidecarImage returns the c9s image of the lab's nodes, "" if it has none with a sidecar.
func (c *Client) sidecarImage(ctx context.Context, namespace string) (string, error) {
	list, err := c.Typed.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: contract.LabelComponent + "=" + contract.ComponentNode, Limit: 1,
	})
	if err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	for _, d := range list.Items {
		for _, container := range d.Spec.Template.Spec.InitContainers {
			if container.Name == contract.WireContainer {
				return container.Image, nil
			}
		}
	}
	return "", nil
}

// KVMWorkers reports whether some worker says by a label that it has KVM. A user without
// the right to list workers gets false.
func (c *Client) KVMWorkers(ctx context.Context) (bool, error) {
	for _, label := range contract.KVMLabels {
		list, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label + "=true", Limit: 1})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("looking for workers with KVM: %w", err)
		}
		if len(list.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// readSecrets reads the wire key and certificates.
func (c *Client) readSecrets(ctx context.Context, namespace string, out *Existing) error {
	secrets, err := c.Typed.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelLab})
	if err != nil {
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("reading the Secrets of namespace %s, which hold the wire key of the lab: %w", namespace, err)
		}
		return err
	}
	for _, s := range secrets.Items {
		cert := render.Certificate{CA: s.Data["ca.crt"], Cert: s.Data[corev1.TLSCertKey], Key: s.Data[corev1.TLSPrivateKeyKey]}
		switch {
		case s.Name == contract.WireKeySecret:
			out.WireKey = s.Data["key"]
		case s.Name == contract.CASecret:
			out.CA = &cert
		case s.Type == corev1.SecretTypeTLS:
			out.Certificates[s.Name] = cert
		}
	}
	return nil
}
