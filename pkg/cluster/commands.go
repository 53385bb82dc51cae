package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Unfinished are the nodes of which commands have failed or still run, with these
// commands. Only Pods that run any are asked.
func (c *Client) Unfinished(ctx context.Context, l *Lab) ([]status.Node, error) {
	idle := l.withoutCommands()
	if len(idle) == l.pods() {
		return nil, nil
	}
	facts, err := c.facts(ctx, Found{Name: l.Name, Namespace: l.Namespace})
	if err != nil {
		return nil, err
	}
	busy := slices.DeleteFunc(slices.Clone(facts.Pods), func(pod *corev1.Pod) bool { return idle[pod.Labels[contract.LabelPod]] })
	facts.Sidecars, _ = c.askSidecars(ctx, l.Namespace, busy)
	var out []status.Node
	for _, n := range status.Compute(facts).Nodes {
		if n.Commands = n.Unfinished(); len(n.Commands) > 0 {
			out = append(out, n)
		}
	}
	return out, nil
}

// withoutCommands are the Pods whose manifests have no command, by their names in the lab.
func (l *Lab) withoutCommands() map[string]bool {
	out := map[string]bool{}
	for _, u := range l.objects {
		if u.GetKind() != "ConfigMap" {
			continue
		}
		text, ok, err := unstructured.NestedString(u.Object, "data", contract.ManifestFile)
		if err != nil || !ok {
			continue
		}
		if m, err := contract.ParseManifest([]byte(text)); err == nil && !m.HasSteps() {
			out[m.Pod] = true
		}
	}
	return out
}
