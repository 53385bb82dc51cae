package cluster

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// What is written for a node's links: a note before the apply, and a new Pod and no
// note after it.
func TestSettle(t *testing.T) {
	node := func(a Action, change func(*NodeDiff)) NodeDiff {
		n := NodeDiff{Pod: "r1", Nodes: []string{"R1"}, Action: a, links: true, mode: "restart"}
		if change != nil {
			change(&n)
		}
		return n
	}
	due := func(n *NodeDiff) { n.due = true }
	pulls := func(p *corev1.Pod) {}
	runs := func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }
	none := func(p *corev1.Pod) { p.Labels = nil }
	for name, c := range map[string]struct {
		node            NodeDiff
		names           bool
		pod             func(*corev1.Pod)
		refused         bool
		prepare, settle string
	}{
		"links, at the start":        {node: node(ActionRestart, nil), pod: runs, prepare: "patch deployments", settle: "delete-collection pods, patch deployments"},
		"links, noted before":        {node: node(ActionRestart, due), pod: runs, settle: "delete-collection pods, patch deployments"},
		"links of a new Pod":         {node: node(ActionRecreate, func(n *NodeDiff) { n.mode = "recreate" }), pod: runs, prepare: "patch deployments", settle: "delete-collection pods, patch deployments"},
		"links and labels":           {node: node(ActionRecreate, func(n *NodeDiff) { n.mode, n.Why = "recreate", []string{"links", "metadata"} }), pod: runs, prepare: "patch deployments", settle: "delete-collection pods, patch deployments"},
		"links and image":            {node: node(ActionRecreate, func(n *NodeDiff) { n.replaced = true }), pod: runs},
		"links and image, noted":     {node: node(ActionRecreate, func(n *NodeDiff) { n.replaced, n.due = true, true }), pod: runs, settle: "patch deployments"},
		"links, live":                {node: node(ActionLive, nil), pod: runs, settle: "patch pods/status"},
		"nothing":                    {node: node(ActionNone, func(n *NodeDiff) { n.links = false }), pod: runs},
		"names":                      {node: node(ActionNone, func(n *NodeDiff) { n.links = false }), names: true, pod: runs, settle: "patch pods/status"},
		"nothing, but it pulls":      {node: node(ActionNone, func(n *NodeDiff) { n.links = false }), pod: pulls, settle: "delete-collection pods"},
		"nothing, but it is refused": {node: node(ActionNone, func(n *NodeDiff) { n.links = false }), pod: none, refused: true, settle: "patch deployments"},
		"another image, as it pulls": {node: node(ActionRecreate, func(n *NodeDiff) { n.links, n.replaced = false, true }), pod: pulls},
	} {
		d, pod := r1()
		c.pod(pod)
		if c.refused {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue}}
		}
		typed := fake.NewClientset(d, pod)
		client := &Client{Typed: typed}
		writes := func() string {
			var out []string
			for _, a := range typed.Actions() {
				if v := a.GetVerb(); v != "list" && v != "get" {
					resource := a.GetResource().Resource
					if sub := a.GetSubresource(); sub != "" {
						resource += "/" + sub
					}
					out = append(out, v+" "+resource)
				}
			}
			typed.ClearActions()
			slices.Sort(out)
			return strings.Join(out, ", ")
		}
		diff := Diff{Nodes: []NodeDiff{c.node}, names: c.names}
		l := &Lab{Name: "mine", Namespace: "demo"}
		if err := client.Prepare(t.Context(), l, diff); err != nil {
			t.Fatal(err)
		}
		if got := writes(); got != c.prepare {
			t.Errorf("%s: before the apply %q, want %q", name, got, c.prepare)
		}
		if err := client.Settle(t.Context(), l, diff); err != nil {
			t.Fatal(err)
		}
		if got := writes(); got != c.settle {
			t.Errorf("%s: after the apply %q, want %q", name, got, c.settle)
		}
		after, err := typed.AppsV1().Deployments("demo").Get(t.Context(), "r1", metav1.GetOptions{})
		if err != nil || after.Annotations[AnnotationRestartDue] != "" {
			t.Errorf("%s: a restart is still due: %v, %v", name, after.Annotations, err)
		}
	}
}

// A deploy that ended between the links' change and the restart is caught up with.
func TestDiffRestartDue(t *testing.T) {
	noted := deploymentOf("restart", "frr:1", 1)
	noted["metadata"].(map[string]any)["annotations"].(map[string]any)[AnnotationRestartDue] = "links"
	d := judgeDiff([]ObjectDiff{{"Deployment/r1", noted, noted}})
	if n := d.Nodes[0]; n.Action != ActionRestart || strings.Join(n.Why, ",") != "links" || !n.restarts() {
		t.Errorf("%+v", n)
	}
}

// A Pod that goes while it is touched needs it no more.
func TestTouchGoing(t *testing.T) {
	d, pod := r1()
	typed := fake.NewClientset(d, pod)
	typed.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), "r1-x")
	})
	if err := (&Client{Typed: typed}).touch(t.Context(), "demo", "r1"); err != nil {
		t.Error(err)
	}
}

// Objects of others are found in whatever way the user may look.
func TestInTheWay(t *testing.T) {
	u := func(kind, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetKind(kind)
		o.SetName(name)
		return o
	}
	l := &Lab{Name: "mine", Namespace: "demo", objects: []*unstructured.Unstructured{u("Service", "r1"), u("ConfigMap", "r1-links"), u("ConfigMap", "r2-links")}}
	for name, c := range map[string]struct {
		forbidden []string
		errs      string
	}{
		"may list":      {nil, "Service r1"},
		"may not list":  {[]string{"list"}, "may not list configmaps|may not list services"},
		"may only list": {[]string{"get"}, "Service r1"},
	} {
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		client := metadatafake.NewSimpleMetadataClient(scheme, metaOf("Service", "r1", ""), metaOf("ConfigMap", "r1-links", "mine"))
		for _, verb := range c.forbidden {
			forbid(&client.Fake, verb, "*")
		}
		var got []string
		for _, err := range inTheWay(t.Context(), client, l) {
			got = append(got, err.Error())
		}
		want := strings.Split(c.errs, "|")
		if len(got) != len(want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], want[i])
			}
		}
	}
}
