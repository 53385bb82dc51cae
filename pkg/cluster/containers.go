package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Container is a node of a lab in the way that Docker's users see it.
type Container struct {
	Node
	Lab Found
	// LongName is containerlab's name of the container: clab-LAB-NODE, or what the topology's
	// prefix makes of it.
	LongName string
	// ID is that of the runtime; one that is derived from the names while there is no container.
	ID string
	// Source is the topology file.
	Source string
	// Directory has the addresses and names of the node.
	Directory contract.DirectoryNode
	// Pod is nil for a node that has none.
	Pod *corev1.Pod
	// State is nil while the container has not been made.
	State *corev1.ContainerStatus
}

// Running reports whether the container runs.
func (c *Container) Running() bool { return c.State != nil && c.State.State.Running != nil }

// Containers returns the nodes of a lab that have a container, sorted by name.
func (c *Client) Containers(ctx context.Context, lab Found) ([]Container, error) {
	deployments, err := c.Typed.AppsV1().Deployments(lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: nodeSelector(lab.Name)})
	if err != nil {
		return nil, fmt.Errorf("reading lab %s: %w", lab.Name, err)
	}
	pods, err := c.Typed.CoreV1().Pods(lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: nodeSelector(lab.Name)})
	if err != nil {
		return nil, fmt.Errorf("reading the Pods of lab %s: %w", lab.Name, err)
	}
	directory, err := c.Directory(ctx, lab)
	if err != nil {
		return nil, err
	}
	present := map[string]*corev1.Pod{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if old := present[pod.Labels[contract.LabelPod]]; old == nil || status.Newer(pod, old) {
			present[pod.Labels[contract.LabelPod]] = pod
		}
	}
	var out []Container
	for i := range deployments.Items {
		d := &deployments.Items[i]
		for _, n := range nodesOf(d) {
			if len(n.Containers) > 0 {
				out = append(out, NewContainer(lab, n, d.Annotations[contract.AnnotationSource], directory, present[d.Name]))
			}
		}
	}
	slices.SortFunc(out, func(a, b Container) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// NewContainer describes a node with its Pod, nil for none.
func NewContainer(lab Found, n Node, source string, directory contract.Directory, pod *corev1.Pod) Container {
	source, _, _ = strings.Cut(source, ":")
	out := Container{Node: n, Lab: lab, Source: source, Pod: pod}
	for _, d := range directory.Nodes {
		if d.Name == n.Name {
			out.Directory = d
			if d.Kind != "" {
				out.Kind = d.Kind
			}
		}
	}
	out.LongName = longName(lab.Name, n.Name, out.Directory.Names)
	sum := sha256.Sum256([]byte(lab.Namespace + "/" + lab.Name + "/" + n.Name))
	out.ID = hex.EncodeToString(sum[:])
	if pod == nil {
		return out
	}
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == n.Containers[0] {
			out.State = s
			if _, id, found := strings.Cut(s.ContainerID, "://"); found {
				out.ID = id
			}
		}
	}
	return out
}

// longName finds the name of the container among those that lead to a node: it ends in the
// node's, after the topology's prefix.
func longName(lab, node string, names []string) string {
	usual := "clab-" + lab + "-" + node
	if slices.Contains(names, usual) {
		return usual
	}
	for _, name := range names {
		if name != node && strings.HasSuffix(name, "-"+node) {
			return name
		}
	}
	if slices.Contains(names, node) { // the prefix is empty
		return node
	}
	return usual
}
