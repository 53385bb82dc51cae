package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/pkg/status"
)

// eventWriter writes Events about what has changed for the worse, and its end, on
// the Deployment of the node, with the node's own name in the text. The first
// start of a lab is no event: it would be one for every link.
type eventWriter struct {
	client    kubernetes.Interface
	namespace string
	// up are links that were up once, by their name; failed and commands are
	// nodes that had that event.
	links  map[string]linkState
	failed map[string]string
	budget *budget
}

type linkState struct{ seenUp, told bool }

// The budget of Events. One that it has no room for is not written.
const (
	eventBurst      = 100
	eventsPerMinute = 30
)

func newEventWriter(client kubernetes.Interface, namespace string) *eventWriter {
	return &eventWriter{client: client, namespace: namespace, links: map[string]linkState{}, failed: map[string]string{}, budget: newBudget(eventBurst, time.Minute/eventsPerMinute)}
}

// know takes over what an earlier leader had seen.
func (e *eventWriter) know(l status.Lab) {
	for _, k := range l.Links {
		e.links[linkName(k)] = linkState{seenUp: k.Up}
	}
	for _, n := range l.Nodes {
		if n.State == status.StateFailed {
			e.failed[n.Name] = n.Reason
		}
	}
}

func linkName(k status.Link) string {
	return k.A.Node + ":" + k.A.Interface + " to " + k.B.Node + ":" + k.B.Interface
}

func (e *eventWriter) tell(ctx context.Context, l status.Lab) error {
	pods := map[string]string{}
	settled := map[string]bool{} // nodes whose links say something of the line
	for _, n := range l.Nodes {
		pods[n.Name] = n.Pod
		settled[n.Name] = n.State == status.StateReady || n.State == status.StateBooting || n.State == status.StateDegraded
	}
	var errs []error
	for _, n := range l.Nodes {
		switch old, was := e.failed[n.Name]; {
		case n.State == status.StateFailed && (!was || old != n.Reason):
			e.failed[n.Name] = n.Reason
			errs = append(errs, e.write(ctx, n.Pod, corev1.EventTypeWarning, "NodeFailed", fmt.Sprintf("node %s: %s", n.Name, n.Reason)))
		case was && n.State == status.StateReady:
			delete(e.failed, n.Name)
			errs = append(errs, e.write(ctx, n.Pod, corev1.EventTypeNormal, "NodeReady", fmt.Sprintf("node %s is ready again", n.Name)))
		}
	}
	for _, k := range l.Links {
		name := linkName(k)
		s := e.links[name]
		switch {
		case k.Up && s.told:
			errs = append(errs, e.write(ctx, pods[k.A.Node], corev1.EventTypeNormal, "LinkUp", fmt.Sprintf("link %s is up again", name)))
			s.told = false
		case !k.Up && s.seenUp && !s.told && settled[k.A.Node]:
			errs = append(errs, e.write(ctx, pods[k.A.Node], corev1.EventTypeWarning, "LinkDown", fmt.Sprintf("link %s is %s: %s", name, k.State, k.Reason)))
			s.told = true
		}
		s.seenUp = s.seenUp || k.Up
		e.links[name] = s
	}
	return errors.Join(errs...)
}

func (e *eventWriter) write(ctx context.Context, pod, kind, reason, message string) error {
	if pod == "" || e.budget.take() > 0 {
		return nil
	}
	now := metav1.Now()
	_, err := e.client.CoreV1().Events(e.namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: e.namespace, GenerateName: pod + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: e.namespace, Name: pod},
		Reason:         reason, Message: message, Type: kind, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: fieldManager},
	}, metav1.CreateOptions{})
	return err
}
