package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"

	"github.com/c9s-lab/c9s/pkg/render"
	"github.com/c9s-lab/c9s/pkg/render/own"
)

// DestroyOptions are Destroy's.
type DestroyOptions struct {
	// KeepData leaves PersistentVolumeClaims, and with them the namespace and the
	// allocations, so that the next deploy finds its devices' data.
	KeepData bool
	// Wait waits until everything is gone.
	Wait bool
	Tell func(Change)
}

// kept with the data: what the next deploy reads back.
func kept(kind, name string) bool {
	return kind == "PersistentVolumeClaim" || kind == "Secret" ||
		kind == "ConfigMap" && (name == InventoryName || len(name) >= len(render.AllocationsName(0)) && name[:len(render.AllocationsName(0))] == render.AllocationsName(0))
}

// deleteOrder takes the controller and the Pods first, so that nothing starts
// anew, and what they mount last.
var deleteOrder = []string{
	"Deployment", "Service", "NetworkPolicy", "RoleBinding", "Role", "ServiceAccount", "Secret", "ConfigMap", "PersistentVolumeClaim",
}

// Destroy removes a lab's objects, however they were applied, and its namespace
// where the lab made it and nobody else has anything in it.
func (c *Client) Destroy(ctx context.Context, namespace, lab string, o DestroyOptions) error {
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	l := &Lab{Name: lab, Namespace: namespace}
	var errs []error
	for _, kind := range deleteOrder {
		resource := client.Resource(resources[kind]).Namespace(namespace)
		list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{"app.kubernetes.io/managed-by": "c9s"}.String()})
		if err != nil {
			errs = append(errs, fmt.Errorf("listing %s: %w", resources[kind].Resource, err))
			continue
		}
		var going []*metav1.PartialObjectMetadata
		for i := range list.Items {
			if live := &list.Items[i]; owns(l, live) && !(o.KeepData && kept(kind, live.Name)) {
				going = append(going, live)
			}
		}
		for i, err := range deleteAll(ctx, resource, going) {
			change := Change{Action: "deleted", Object: kind + "/" + going[i].Name, Source: going[i].Annotations[own.AnnotationSource], Err: err}
			if err != nil {
				errs = append(errs, change.error())
			}
			if o.Tell != nil {
				o.Tell(change)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if o.Wait {
		if err := c.waitGone(ctx, l); err != nil {
			return err
		}
	}
	if o.KeepData {
		return nil
	}
	return c.deleteNamespace(ctx, l, o)
}

// deletesAtOnce bounds the requests that are under way.
const deletesAtOnce = 16

// deleteAll deletes objects of one resource, in the foreground: a Deployment is gone
// when its Pods are. What is gone already is no error.
func deleteAll(ctx context.Context, resource metadata.ResourceInterface, going []*metav1.PartialObjectMetadata) []error {
	foreground := metav1.DeletePropagationForeground
	errs := make([]error, len(going))
	var wg sync.WaitGroup
	slots := make(chan struct{}, deletesAtOnce)
	for i, live := range going {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			err := resource.Delete(ctx, live.Name, metav1.DeleteOptions{
				PropagationPolicy: &foreground,
				Preconditions:     &metav1.Preconditions{UID: &live.UID},
			})
			if !apierrors.IsNotFound(err) {
				errs[i] = err
			}
		}()
	}
	wg.Wait()
	return errs
}

// waitGone waits until no Pod and no Deployment of the lab is left. A Deployment
// goes a moment after its Pods, and what is applied to it until then goes with it.
func (c *Client) waitGone(ctx context.Context, l *Lab) error {
	for {
		left, err := c.left(ctx, l)
		if err != nil || left == "" {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the end of %s: %w", left, ctx.Err())
		}
	}
}

// left names a Pod of the lab, or else a Deployment; "" when there is neither.
func (c *Client) left(ctx context.Context, l *Lab) (string, error) {
	options := metav1.ListOptions{LabelSelector: own.LabelLab + "=" + render.LabelValue(l.Name), Limit: 1}
	pods, err := c.Typed.CoreV1().Pods(l.Namespace).List(ctx, options)
	if err != nil {
		return "", err
	}
	if len(pods.Items) > 0 {
		return "Pod " + pods.Items[0].Name, nil
	}
	deployments, err := c.Typed.AppsV1().Deployments(l.Namespace).List(ctx, options)
	if err != nil || len(deployments.Items) == 0 {
		return "", err
	}
	return "Deployment " + deployments.Items[0].Name, nil
}

// deleteNamespace removes a namespace that the lab's deploy made, if nothing of
// anybody else is in it.
func (c *Client) deleteNamespace(ctx context.Context, l *Lab, o DestroyOptions) error {
	ns, err := c.Typed.CoreV1().Namespaces().Get(ctx, l.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if ns.Labels["app.kubernetes.io/managed-by"] != "c9s" || ns.Annotations[own.AnnotationLabName] != l.Name {
		return nil
	}
	busy, err := c.othersIn(ctx, l)
	if err != nil {
		return err
	}
	if busy != "" {
		if o.Tell != nil {
			o.Tell(Change{Action: "kept", Object: "Namespace/" + l.Namespace + " (it holds " + busy + ")"})
		}
		return nil
	}
	err = c.Typed.CoreV1().Namespaces().Delete(ctx, l.Namespace, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ns.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("namespace %s: %w", l.Namespace, err)
	}
	if o.Tell != nil {
		o.Tell(Change{Action: "deleted", Object: "Namespace/" + l.Namespace})
	}
	for o.Wait {
		_, err := c.Typed.CoreV1().Namespaces().Get(ctx, l.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the end of namespace %s: %w", l.Namespace, ctx.Err())
		}
	}
	return nil
}

// othersIn names an object in the namespace that is neither the lab's nor
// Kubernetes' own.
func (c *Client) othersIn(ctx context.Context, l *Lab) (string, error) {
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	for _, kind := range deleteOrder {
		list, err := client.Resource(resources[kind]).Namespace(l.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			item := &list.Items[i]
			if kind == "ConfigMap" && item.Name == "kube-root-ca.crt" || kind == "ServiceAccount" && item.Name == "default" {
				continue
			}
			if !owns(l, item) && item.DeletionTimestamp == nil {
				return kind + " " + item.Name, nil
			}
		}
	}
	return "", nil
}
