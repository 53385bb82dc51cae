package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// Action is what a deploy does to a node.
type Action string

// The actions, from the least to the most.
const (
	ActionNone     Action = "nothing"
	ActionLive     Action = "live"     // links, services, names: the device continues
	ActionRestart  Action = "restart"  // a new Pod, since the kind takes its links at its start
	ActionRecreate Action = "recreate" // a new Pod, since what it runs has changed
	ActionStart    Action = "start"    // it was stopped
	ActionCreate   Action = "create"
	ActionDelete   Action = "delete"
)

// disrupts reports whether a device that runs is stopped by it.
func (a Action) disrupts() bool {
	return a == ActionRestart || a == ActionRecreate || a == ActionDelete
}

// NodeDiff is what a deploy would do to one Pod.
type NodeDiff struct {
	Pod    string   `json:"pod"`
	Nodes  []string `json:"nodes"`
	Action Action   `json:"action"`
	// Why are the objects that change, in words: "links", "image", "files".
	Why []string `json:"why,omitempty"`

	// links reports whether links.json changes, or that its last change is still to reach
	// the device; mode how the kind takes that.
	links bool
	mode  string
	// replaced reports whether the Deployment's template changes, and so its Pod.
	replaced bool
	// due reports whether an earlier deploy noted a restart.
	due bool
}

// ObjectDiff is one object that a deploy would change; Live is nil for a new one,
// Merged for one that goes.
type ObjectDiff struct {
	Object string
	Live   map[string]any
	Merged map[string]any
}

// Diff is what a deploy would do.
type Diff struct {
	Nodes   []NodeDiff
	Objects []ObjectDiff
	// Prune are the objects that the lab no longer has and that go, Foreign those that
	// stay, since c9s did not apply them.
	Prune   []Prune
	Foreign []Foreign
	// Lab reports whether objects of the lab as a whole change (directory, secrets,
	// controller); no device notices.
	Lab bool
	// names reports whether the lab's directory changes.
	names bool
}

// Disruptive are the nodes whose devices would stop.
func (d Diff) Disruptive() []NodeDiff {
	return slices.DeleteFunc(slices.Clone(d.Nodes), func(n NodeDiff) bool { return !n.Action.disrupts() })
}

// Diff asks the API server what an apply would make of each object (a server-side
// dry-run), and compares.
func (c *Client) Diff(ctx context.Context, l *Lab) (Diff, error) {
	live, err := c.live(ctx, l)
	if err != nil {
		return Diff{}, err
	}
	dropFaults(live, time.Now())
	objects := make([]ObjectDiff, len(l.objects))
	errs := make([]error, len(l.objects))
	bounded.Each(len(l.objects), requestsAtOnce, func(i int) {
		u := l.objects[i]
		key := objectKey(u)
		objects[i].Object = key
		there := live[key]
		if there == nil {
			objects[i].Merged = clean(u)
			return
		}
		objects[i].Live = clean(there)
		merged, err := c.applyObject(ctx, l.Namespace, u, true)
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", key, err)
			return
		}
		objects[i].Merged = clean(merged)
	})
	if err := errors.Join(errs...); err != nil {
		return Diff{}, err
	}
	prune, foreign := leftover(l, live)
	for _, p := range prune {
		objects = append(objects, ObjectDiff{Object: p.Object, Live: clean(live[p.Object])})
	}
	d := judgeDiff(objects)
	d.Prune, d.Foreign = prune, foreign
	return d, nil
}

func objectKey(u *unstructured.Unstructured) string { return u.GetKind() + "/" + u.GetName() }

// incidental are annotations that say where an object comes from, and change
// without anything else: a line more above a node moves them.
var incidental = []string{
	contract.AnnotationSource, contract.AnnotationPlanner, contract.AnnotationVersion, "deployment.kubernetes.io/revision",
	"config.k8s.io/owning-inventory", // of earlier versions of c9s
}

// clean omits what the API server keeps for itself.
func clean(u *unstructured.Unstructured) map[string]any {
	o := u.DeepCopy().Object
	delete(o, "status")
	meta, _ := o["metadata"].(map[string]any)
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		delete(meta, field)
	}
	if annotations, ok := meta["annotations"].(map[string]any); ok {
		for _, name := range incidental {
			delete(annotations, name)
		}
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
	return o
}

// judgeDiff finds each node's action from what changes of its objects.
func judgeDiff(objects []ObjectDiff) Diff {
	var d Diff
	nodes := map[string]*NodeDiff{}
	for _, o := range objects {
		labels := objectLabels(o)
		pod := labels[contract.LabelPod]
		if pod == "" {
			if !reflect.DeepEqual(o.Live, o.Merged) {
				d.Lab = true
				d.names = d.names || strings.HasPrefix(o.Object, "ConfigMap/"+contract.DirectoryConfigMap)
				d.Objects = append(d.Objects, o)
			}
			continue
		}
		n := nodes[pod]
		if n == nil {
			n = &NodeDiff{Pod: pod, Action: ActionNone}
			nodes[pod] = n
		}
		kind, name, _ := strings.Cut(o.Object, "/")
		if kind == "Deployment" && name == pod {
			n.Nodes = strings.Split(annotation(o, contract.AnnotationNodeName), ",")
			n.mode = annotation(o, contract.AnnotationLinkApply)
			n.due = (&unstructured.Unstructured{Object: o.Live}).GetAnnotations()[AnnotationRestartDue] != ""
			n.links = n.links || n.due
		}
		if reflect.DeepEqual(o.Live, o.Merged) {
			continue
		}
		d.Objects = append(d.Objects, o)
		n.note(o, kind, name)
	}
	for _, pod := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[pod]
		if n.Nodes == nil { // objects of a node that is half there
			n.Nodes = []string{pod}
		}
		if n.links {
			action := linkActions[n.mode]
			if action == "" {
				action = ActionLive
			}
			n.raise(action, "links")
		}
		slices.Sort(n.Why)
		n.Why = slices.Compact(n.Why)
		d.Nodes = append(d.Nodes, *n)
	}
	return d
}

func objectLabels(o ObjectDiff) map[string]string {
	m := o.Merged
	if m == nil {
		m = o.Live
	}
	return (&unstructured.Unstructured{Object: m}).GetLabels()
}

// AnnotationRestartDue is on a Deployment between the change of its links and the restart
// of a device that takes them at its start, so that a deploy which was interrupted
// there is caught up with by the next.
const AnnotationRestartDue = "c9s.dev/restart-due"

func annotation(o ObjectDiff, name string) string {
	m := o.Merged
	if m == nil {
		m = o.Live
	}
	return (&unstructured.Unstructured{Object: m}).GetAnnotations()[name]
}

// rank orders actions: the greatest of a Pod's objects is its own.
var rank = map[Action]int{ActionNone: 0, ActionLive: 1, ActionStart: 2, ActionRestart: 3, ActionRecreate: 4, ActionCreate: 5, ActionDelete: 5}

func (n *NodeDiff) raise(a Action, why string) {
	if rank[a] > rank[n.Action] {
		n.Action = a
	}
	n.Why = append(n.Why, why)
}

// note takes one changed object of the Pod into account.
func (n *NodeDiff) note(o ObjectDiff, kind, name string) {
	switch {
	case kind == "Deployment" && o.Live == nil:
		n.raise(ActionCreate, "new")
	case kind == "Deployment" && o.Merged == nil:
		n.raise(ActionDelete, "removed from the topology")
	case kind == "Deployment":
		n.deployment(o)
	case kind == "ConfigMap" && name == n.Pod+"-links":
		if o.Live != nil && o.Merged != nil {
			n.links = true
		}
	case kind == "Service":
		n.raise(ActionLive, "services")
	case kind == "Secret" && strings.HasSuffix(name, "-tls"):
		n.raise(ActionLive, "certificate")
	}
	// Files and plans are known by their digest: the Deployment names them.
}

// linkActions are the actions that a change of links asks for, by the mode on the
// Deployment.
var linkActions = map[string]Action{"restart": ActionRestart, "recreate": ActionRecreate}

func (n *NodeDiff) deployment(o ObjectDiff) {
	before, after := template(o.Live), template(o.Merged)
	switch {
	case replicas(o.Live) == 0 && replicas(o.Merged) > 0: // no device to stop
		n.raise(ActionStart, "it was stopped")
		return
	case !reflect.DeepEqual(before, after):
		n.replaced = true
		n.raise(ActionRecreate, strings.Join(whatChanged(before, after), ", "))
		return
	}
	n.raise(ActionLive, "metadata")
}

func template(o map[string]any) map[string]any {
	t, _, _ := unstructured.NestedMap(o, "spec", "template")
	return t
}

func replicas(o map[string]any) int64 {
	n, _, _ := unstructured.NestedInt64(o, "spec", "replicas")
	return n
}

// whatChanged names which part of a Pod's template is different.
func whatChanged(before, after map[string]any) []string {
	var out []string
	staged := func(t map[string]any) string {
		s, _, _ := unstructured.NestedString(t, "metadata", "annotations", contract.AnnotationStaged)
		return s
	}
	if staged(before) != staged(after) {
		out = append(out, "files or commands")
	}
	for _, part := range []struct{ field, word string }{{"image", "image"}, {"env", "env"}, {"resources", "resources"}, {"volumeMounts", "mounts"}, {"command", "command"}, {"args", "command"}} {
		if !reflect.DeepEqual(containerFields(before, part.field), containerFields(after, part.field)) {
			out = append(out, part.word)
		}
	}
	if len(out) == 0 {
		out = append(out, "Pod")
	}
	return slices.Compact(out)
}

func containerFields(t map[string]any, field string) string {
	var all []any
	for _, list := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(t, "spec", list)
		for _, c := range containers {
			if m, ok := c.(map[string]any); ok {
				all = append(all, m["name"], m[field])
			}
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return ""
	}
	return string(data)
}
