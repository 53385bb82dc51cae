package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Node is a node of a lab in a cluster.
type Node struct {
	// Name is as the topology writes it.
	Name string
	// Deployment is the name of its Pod's objects; nodes may share one.
	Deployment string
	// Containers are the node's own, the first one its main.
	Containers []string
	// Labels are the topology's.
	Labels map[string]string
	// Kind is the node's kind. Nodes that share a Pod have that of its primary node.
	Kind string
	// Image is that of its main container.
	Image string
	// Login is the node's own, nil for that of its kind.
	Login *contract.Login
	// Given is the login that the main container gets, as launchers of virtual machines do:
	// by its arguments, or else by its environment. It is empty for other containers.
	Given lab.Credentials
	// Launcher reports whether the arguments have that login.
	Launcher bool
	// Claim is the claim with the data of the node's Pod, "" for none.
	Claim string
	// Stopped reports whether the node has been stopped.
	Stopped bool
}

// Nodes are all nodes of a lab, sorted by name.
func (c *Client) Nodes(ctx context.Context, found Found) ([]Node, error) {
	list, err := c.Typed.AppsV1().Deployments(found.Namespace).List(ctx, metav1.ListOptions{LabelSelector: nodeSelector(found.Name)})
	if err != nil {
		return nil, fmt.Errorf("reading lab %s: %w", found.Name, err)
	}
	var out []Node
	for i := range list.Items {
		out = append(out, nodesOf(&list.Items[i])...)
	}
	slices.SortFunc(out, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// nodeSelector meets the Deployments and Pods of a lab's nodes.
func nodeSelector(lab string) string {
	return labels.Set{contract.LabelLab: contract.LabelValue(lab), contract.LabelComponent: contract.ComponentNode}.String()
}

// nodesOf reads the nodes of one Deployment from its annotations and its Pod's.
func nodesOf(d *appsv1.Deployment) []Node {
	var containers map[string][]string
	_ = json.Unmarshal([]byte(d.Spec.Template.Annotations[contract.AnnotationContainers]), &containers)
	var topologyLabels map[string]map[string]string
	_ = json.Unmarshal([]byte(d.Annotations[contract.AnnotationTopologyLabels]), &topologyLabels)
	var logins map[string]*contract.Login
	_ = json.Unmarshal([]byte(d.Annotations[contract.AnnotationLogins]), &logins)
	var out []Node
	for _, name := range strings.Split(d.Annotations[contract.AnnotationNodeName], ",") {
		if name != "" {
			given, launcher := givenLogin(containerOf(d, containers[name]))
			out = append(out, Node{
				Name: name, Deployment: d.Name, Containers: containers[name], Labels: topologyLabels[name],
				Kind: d.Labels[contract.LabelKind], Image: containerOf(d, containers[name]).Image, Stopped: d.Spec.Replicas != nil && *d.Spec.Replicas == 0,
				Login: logins[name], Given: given, Launcher: launcher, Claim: claimOf(d),
			})
		}
	}
	return out
}

// containerOf returns a node's main container, empty if it has none.
func containerOf(d *appsv1.Deployment, containers []string) corev1.Container {
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; len(containers) > 0 && c.Name == containers[0] {
			return *c
		}
	}
	return corev1.Container{}
}

// givenLogin finds the login that a container gets for its device, and reports whether its
// arguments have it.
func givenLogin(c corev1.Container) (login lab.Credentials, launcher bool) {
	for _, e := range c.Env {
		switch e.Name {
		case "USERNAME":
			login.Username = e.Value
		case "PASSWORD":
			login.Password = e.Value
		}
	}
	words := slices.Concat(c.Command, c.Args)
	for i, word := range words[:max(len(words)-1, 0)] {
		switch word {
		case "--username":
			login.Username, launcher = words[i+1], true
		case "--password":
			login.Password = words[i+1]
		}
	}
	return login, launcher
}

// claimOf returns the claim of a Deployment's own Pod. A claim that several Pods share is the
// user's.
func claimOf(d *appsv1.Deployment) string {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && v.Name != contract.SharedVolume {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// Select finds nodes by name: as the topology writes it or as Kubernetes carries
// it, and "NODE/SLOT" for one container of a chassis. All that is unknown is reported.
func Select(nodes []Node, names []string) ([]Node, error) {
	var out []Node
	var unknown []string
	for _, name := range names {
		if n, ok := selectOne(nodes, name); ok {
			out = append(out, n)
		} else {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return out, nil
	}
	var all []string
	for _, n := range nodes {
		all = append(all, n.Name)
	}
	return nil, fmt.Errorf("no node %s in the lab; there are: %s", strings.Join(unknown, ", "), strings.Join(all, ", "))
}

// selectOne prefers the name as written: another node may be carried under it.
func selectOne(nodes []Node, name string) (Node, bool) {
	base, slot, chassis := strings.Cut(name, "/")
	i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == base })
	if i < 0 {
		i = slices.IndexFunc(nodes, func(n Node) bool { return n.carriedAs(base) })
	}
	if i < 0 {
		return Node{}, false
	}
	n := nodes[i]
	if !chassis {
		return n, true
	}
	for _, container := range n.Containers {
		if strings.HasSuffix(container, "-"+strings.ToLower(slot)) {
			n.Containers = []string{container}
			return n, true
		}
	}
	return Node{}, false
}

// carriedAs reports whether Kubernetes has the node under a name: its container's,
// or its Deployment's if it is the primary.
func (n Node) carriedAs(name string) bool {
	if len(n.Containers) == 0 {
		return n.Deployment == name
	}
	main := n.Containers[0]
	return main == name || n.Deployment == name && strings.HasPrefix(main, n.Deployment+"-")
}

// Pod is the present Pod of a Deployment, one that runs if there is any.
func (c *Client) Pod(ctx context.Context, namespace, deployment string) (*corev1.Pod, error) {
	list, err := c.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelPod + "=" + deployment})
	if err != nil {
		return nil, err
	}
	var pod *corev1.Pod
	for i := range list.Items {
		if pod == nil || status.Newer(&list.Items[i], pod) {
			pod = &list.Items[i]
		}
	}
	if pod == nil {
		return nil, fmt.Errorf("%s %w: it has no Pod; see 'c9s status'", deployment, access.ErrAway)
	}
	return pod, nil
}

// Restart replaces the Pods of Deployments.
func (c *Client) Restart(ctx context.Context, namespace, deployment string) error {
	err := c.Typed.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: contract.LabelPod + "=" + deployment})
	if err != nil {
		return fmt.Errorf("restarting %s: %w", deployment, err)
	}
	return nil
}

// RestartRunning is Restart of a Deployment that has Pods to replace.
func (c *Client) RestartRunning(ctx context.Context, namespace, deployment string) error {
	d, err := c.Typed.AppsV1().Deployments(namespace).Get(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("restarting %s: %w", deployment, err)
	}
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return fmt.Errorf("%s is stopped; start it with 'c9s start %[1]s'", deployment)
	}
	return c.Restart(ctx, namespace, deployment)
}

// Scale starts (1) or stops (0) a Deployment's Pod.
func (c *Client) Scale(ctx context.Context, namespace, deployment string, replicas int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}},"spec":{"replicas":%d}}`, annotationPaused, replicas)
	_, err := c.Typed.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("scaling %s: %w", deployment, err)
	}
	return nil
}

// WaitNoPod waits until a Deployment has no Pod but such as have ended: Kubernetes keeps
// one that was evicted.
func (c *Client) WaitNoPod(ctx context.Context, namespace, deployment string) error {
	for {
		list, err := c.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelPod + "=" + deployment})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err == nil && !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return !status.Ended(&p) }) {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to stop: %w", deployment, ctx.Err())
		}
	}
}
