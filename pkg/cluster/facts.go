package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/controller"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// Status returns the state of a lab. The state of links comes from the controller that leads;
// without one, or with fresh set, it asks the Pods. The status that a controller wrote last
// may be old, so it counts only if no Pod can be asked.
func (c *Client) Status(ctx context.Context, l Found, fresh bool) (status.Lab, error) {
	facts, err := c.facts(ctx, l)
	if err != nil {
		return status.Lab{}, err
	}
	var reported *status.Lab
	if !fresh {
		reported, err = c.reported(ctx, l)
	}
	if reported == nil {
		if !apierrors.IsForbidden(err) {
			facts.Sidecars, facts.Asked = c.askSidecars(ctx, l.Namespace, facts.Pods)
		}
		if !fresh && len(facts.Sidecars) == 0 {
			reported = c.stored(ctx, l)
			facts.Asked = facts.Asked && reported == nil
		}
	}
	out := status.Compute(facts)
	out.Source = "pods"
	if reported != nil {
		out.Source = "controller"
		out.Links = status.Adopt(facts.Links, reported.Links)
		out.Explain(reported.Nodes)
		out.Settle()
	}
	return out, nil
}

// facts reads what the API server knows.
func (c *Client) facts(ctx context.Context, l Found) (status.Facts, error) {
	f := status.Facts{Name: l.Name, Namespace: l.Namespace, Events: map[string][]corev1.Event{}}
	nodes := metav1.ListOptions{LabelSelector: nodeSelector(l.Name)}
	var errs [6]error
	var wg sync.WaitGroup
	for i, read := range []func() error{
		func() (err error) { f.Directory, err = controller.Directory(ctx, c.Typed, l.Namespace); return err },
		func() error {
			t, err := controller.Topology(ctx, c.Typed, l.Namespace)
			f.Links, f.LinksDigests = t.Links, t.Pods
			return err
		},
		func() error {
			list, err := c.Typed.AppsV1().Deployments(l.Namespace).List(ctx, nodes)
			if err == nil {
				f.Deployments = pointers[appsv1.Deployment](list.Items)
			}
			return err
		},
		func() error {
			list, err := c.Typed.CoreV1().Pods(l.Namespace).List(ctx, nodes)
			if err == nil {
				f.Pods = pointers[corev1.Pod](list.Items)
			}
			return err
		},
		func() error {
			list, err := c.Typed.CoreV1().Services(l.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelOf(l.Name)})
			if err == nil {
				f.Services = pointers[corev1.Service](list.Items)
			}
			return err
		},
		func() error {
			list, err := c.Typed.CoreV1().Events(l.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
			if apierrors.IsForbidden(err) {
				return nil // they only explain
			}
			if err == nil {
				slices.SortFunc(list.Items, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
				for _, e := range list.Items {
					f.Events[e.InvolvedObject.Name] = append(f.Events[e.InvolvedObject.Name], e)
				}
			}
			return err
		},
	} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = read()
		}()
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return f, fmt.Errorf("reading lab %s in namespace %s: %w", l.Name, l.Namespace, err)
	}
	return f, nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// controllers returns the Pods of the lab's controller that run.
func (c *Client) controllers(ctx context.Context, l Found) ([]corev1.Pod, error) {
	pods, err := c.Typed.CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelComponent + "=" + contract.ComponentController})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning
	}), nil
}

// reported returns the status of the controller that leads, nil if none answers: while
// controllers replace each other, none leads for some seconds.
func (c *Client) reported(ctx context.Context, l Found) (*status.Lab, error) {
	pods, err := c.controllers(ctx, l)
	for i := range pods {
		var data []byte
		if data, err = c.proxy(ctx, l.Namespace, pods[i].Name, contract.ControllerPort, controller.PathStatus, foreign.MaxLab); err != nil {
			continue
		}
		var out status.Lab
		if out, err = status.Parse(data); err == nil && out.Version == status.Version {
			return &out, nil
		}
	}
	return nil, err
}

// stored returns the status as the controller last wrote it, nil if none runs.
func (c *Client) stored(ctx context.Context, l Found) *status.Lab {
	if pods, err := c.controllers(ctx, l); err != nil || len(pods) == 0 {
		return nil
	}
	cm, err := c.Typed.CoreV1().ConfigMaps(l.Namespace).Get(ctx, contract.StatusConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	out, err := status.Stored(cm)
	if err != nil || out.Version != status.Version {
		return nil
	}
	return &out
}

// LinksUp counts the links of a lab that are up, of all that its topology has: by the
// controller's word, or by that of the Pods in a lab without a controller. known is false
// where nobody answers, such as a controller that is starting.
func (c *Client) LinksUp(ctx context.Context, l *Lab) (up, all int, known bool) {
	found := Found{Name: l.Name, Namespace: l.Namespace}
	if l.hasController() {
		s, err := c.reported(ctx, found)
		if err != nil || s == nil {
			return 0, 0, false
		}
		up, all = s.LinksUp()
		return up, all, true
	}
	s, err := c.Status(ctx, found, true)
	if err != nil {
		return 0, 0, false
	}
	up, all = s.LinksUp()
	return up, all, true
}

// How sidecars are asked.
const (
	askAtOnce  = 32
	askTimeout = 5 * time.Second
)

// askSidecars asks each running Pod's sidecar. One that does not answer is left
// out: its links are unknown. asked is false where the user may not ask.
func (c *Client) askSidecars(ctx context.Context, namespace string, pods []*corev1.Pod) (out map[string]status.Answer, asked bool) {
	out, asked = map[string]status.Answer{}, true
	var mu sync.Mutex
	bounded.Each(len(pods), askAtOnce, func(i int) {
		pod := pods[i]
		if status.Ended(pod) || pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			return
		}
		data, err := c.proxy(ctx, namespace, pod.Name, contract.StatusPort, api.PathStatus, foreign.MaxStatus)
		var s api.Status
		bad := err
		if bad == nil {
			bad = foreign.JSON(data, foreign.MaxElements, &s)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case apierrors.IsForbidden(err):
			asked = false
		case bad == nil:
			out[pod.Labels[contract.LabelPod]] = status.Answer{Status: s}
		}
	})
	return out, asked
}
