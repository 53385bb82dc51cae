package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/status"
)

// Unfinished are the nodes of which commands have failed or still run, with these
// commands. Only Pods that run any are asked.
func (c *Client) Unfinished(ctx context.Context, l Found) ([]status.Node, error) {
	facts, err := c.facts(ctx, l)
	if err != nil {
		return nil, err
	}
	var with []*corev1.Pod
	for _, pod := range facts.Pods {
		if runsCommands(pod) {
			with = append(with, pod)
		}
	}
	facts.Sidecars, _ = c.askSidecars(ctx, l.Namespace, with)
	var out []status.Node
	for _, n := range status.Compute(facts).Nodes {
		if n.Commands = n.Unfinished(); len(n.Commands) > 0 {
			out = append(out, n)
		}
	}
	return out, nil
}

// runsCommands reports whether a container of the Pod starts the exec helper.
func runsCommands(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		if l := pod.Spec.Containers[i].Lifecycle; l != nil && l.PostStart != nil {
			return true
		}
	}
	return false
}
