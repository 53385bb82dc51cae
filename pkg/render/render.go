// Package render turns a lab and the plans of its nodes into plain Kubernetes
// objects: typed, in a fixed order, the same objects for the same input. It is pure:
// it reads and writes nothing.
package render

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c9s-lab/c9s/internal/inorder"
	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// Options are what the caller decides about the output.
type Options struct {
	// Image is the c9s image: prepare, wire, exec and the controller.
	Image string
	// Version is c9s' own version, for the record in annotations.
	Version string
	// NoController leaves the controller and its rights out.
	NoController bool
	// Only limits the output to the Pods of these nodes (names or IDs) and the
	// objects of the lab as a whole; empty means all.
	Only []string
	// MapImage rewrites image references; the first rule that matches wins.
	MapImage []ImageRule
	// WireKey asks for the Secret c9s-wire-key with this key in it. It is never
	// made up here: rendering the same lab twice must give the same bytes.
	WireKey []byte
	// CA asks for the Secret c9s-ca of an authority that was made for the lab (CA
	// of the Certificate is not set); the topology's own comes first.
	CA *Certificate
	// RequireKVM keeps nodes that need KVM on workers whose labels say that they have it.
	// It is for clusters in which some worker has such a label.
	RequireKVM bool
	// Expires is when the lab's controller removes it; the zero value for never.
	Expires time.Time
	// Owner is the user who deploys the lab, "" for nobody in particular.
	Owner string
	// Certificates asks for the Secret <id>-tls of these nodes (by name).
	Certificates map[string]Certificate
}

// Certificate is a node's issued certificate, all parts in PEM.
type Certificate struct {
	CA, Cert, Key []byte
}

// Output is a rendered lab.
type Output struct {
	// Lab is the lab's name as written, Source its topology file's base name.
	Lab       string
	Source    string
	Namespace string
	// Planner names the planners of the nodes ("builtin/0.79.0, hooks/0.79.0"), and
	// Version the c9s that made the output.
	Planner string
	Version string
	Objects []manifest.Object
}

// apiObject is a typed object with metadata.
type apiObject interface {
	runtime.Object
	metav1.Object
}

// Render renders l. plans are by node name and hold every node that is rendered. The Output
// is nil where a diagnostic is an error. The planner's own diagnostics are not
// repeated.
func Render(l *lab.Lab, plans map[string]*plan.Plan, opts Options) (*Output, []diag.Diagnostic) {
	var diags diag.List
	x := newIndex(l, plans, opts, &diags)
	pods := x.selectedPods(&diags)
	out := &Output{Lab: l.Name, Source: l.Source, Namespace: l.Namespace, Planner: x.planners, Version: opts.Version}
	if diags.HasErrors() {
		return nil, diags.All()
	}
	views := x.view(pods, &diags)
	shared := map[string]bool{} // ConfigMaps with large files, which several Pods may have
	type rendered struct {
		objects []manifest.Object
		diags   []diag.Diagnostic
	}
	_ = inorder.Do(1+len(pods), func(i int) (rendered, error) { // neither side fails
		var diags diag.List
		var objects []manifest.Object
		if i == 0 {
			objects = (&labBuilder{index: x, diags: &diags}).labObjects()
		} else {
			objects = (&podBuilder{index: x, pod: views[i-1], diags: &diags}).render()
		}
		for j := range objects {
			if err := objects[j].Encode(); err != nil {
				diags.Errorf(apicheck.CodeEncode, objects[j].Pos, "", "writing %T: %v", objects[j].Object, err)
			}
		}
		return rendered{objects, diags.All()}, nil
	}, func(done rendered) error {
		for _, o := range done.objects {
			if cm, ok := o.Object.(*corev1.ConfigMap); ok && cm.Labels[contract.LabelComponent] == contract.ComponentFiles {
				if shared[cm.Name] {
					continue
				}
				shared[cm.Name] = true
			}
			out.Objects = append(out.Objects, o)
		}
		diags.Append(done.diags)
		return nil
	})
	diags.Append(apicheck.Check(out.Objects))
	if diags.HasErrors() {
		return nil, diags.All()
	}
	return out, diags.All()
}

// file returns the topology's name as other diagnostics give it.
func file(l *lab.Lab) string {
	if len(l.Nodes) == 0 || l.Nodes[0].Pos.File == "" {
		return l.Source
	}
	return l.Nodes[0].Pos.File
}

// index is a lab with its nodes, Pods and plans by name. All builders share it, and
// nothing changes it once it is made.
type index struct {
	lab   *lab.Lab
	plans map[string]*plan.Plan
	opts  Options
	// image is the c9s image after the image map.
	image    string
	labLabel string
	// planners names the planners of the nodes.
	planners string
	nodes    map[string]*lab.Node
	podOf    map[string]*lab.Pod
	// waited holds the stages that other nodes wait for, by node.
	waited map[string]map[lab.StageName]bool
	// aliases are the Service names of each node's aliases.
	aliases map[string][]string
	// links are the texts of links.json, by the name of the Pod.
	links map[string]string
	// shared are the named volumes on the lab's shared claim.
	shared map[string]bool
}

func newIndex(l *lab.Lab, plans map[string]*plan.Plan, opts Options, diags *diag.List) *index {
	x := &index{
		lab:      l,
		plans:    plans,
		opts:     opts,
		image:    MapImage(opts.MapImage, opts.Image),
		labLabel: contract.LabelValue(l.Name),
		nodes:    make(map[string]*lab.Node, len(l.Nodes)),
		podOf:    make(map[string]*lab.Pod, len(l.Nodes)),
		waited:   map[string]map[lab.StageName]bool{},
		aliases:  aliasServices(l, diags),
		planners: planners(plans),
	}
	for _, n := range l.Nodes {
		x.nodes[n.Name] = n
		for _, stage := range n.Stages {
			for _, w := range stage.WaitFor {
				if x.waited[w.Node] == nil {
					x.waited[w.Node] = map[lab.StageName]bool{}
				}
				x.waited[w.Node][w.Stage] = true
			}
		}
	}
	for i := range l.Pods {
		for _, name := range l.Pods[i].Nodes {
			x.podOf[name] = &l.Pods[i]
		}
	}
	x.shared = x.sharedVolumes()
	return x
}

// view looks at all Pods and writes their links, of which the lab's objects have digests.
func (x *index) view(pods []*lab.Pod, diags *diag.List) []*podView {
	type viewed struct {
		pod   *podView
		links string
		diags []diag.Diagnostic
	}
	var out []*podView
	x.links = make(map[string]string, len(pods))
	_ = inorder.Do(len(pods), func(i int) (viewed, error) { // neither side fails
		v := viewed{pod: newPodView(x, pods[i])}
		if !v.pod.hostNetwork {
			var diags diag.List
			v.links = manifest.PrettyJSON((&linksBuilder{index: x, pod: v.pod, diags: &diags}).document(), 2)
			v.diags = diags.All()
		}
		return v, nil
	}, func(v viewed) error {
		out = append(out, v.pod)
		if v.links != "" {
			x.links[v.pod.name] = v.links
		}
		diags.Append(v.diags)
		return nil
	})
	return out
}

// sharedVolumes are the named volumes, if the lab has a claim for them: all of them, so that
// a volume stays where it is when another node gets it.
func (x *index) sharedVolumes() map[string]bool {
	out := map[string]bool{}
	if x.lab.SharedClaim == "" {
		return out
	}
	for _, n := range x.lab.Nodes {
		for _, m := range n.Mounts {
			if m.Volume != "" {
				out[m.Volume] = true
			}
		}
	}
	return out
}

// selectedPods returns the Pods to render. It checks that each has its plans.
func (x *index) selectedPods(diags *diag.List) []*lab.Pod {
	only := map[string]bool{}
	for _, name := range x.opts.Only {
		n := x.findNode(name)
		if n == nil {
			diags.Errorf(CodeUnknownNode, diag.Pos{File: file(x.lab)}, x.onlyHint(),
				"the lab has no node %q", name)
			continue
		}
		only[x.podOf[n.Name].Name] = true
	}
	var pods []*lab.Pod
	for i := range x.lab.Pods {
		pod := &x.lab.Pods[i]
		if x.skipPod(pod) || len(x.opts.Only) > 0 && !only[pod.Name] {
			continue
		}
		for _, name := range pod.Nodes {
			if x.plans[name] == nil {
				diags.Errorf(CodePlanMissing, x.nodes[name].Pos, "report this to c9s", "node %q has no plan", name)
			}
		}
		pods = append(pods, pod)
	}
	return pods
}

// onlyHint says which nodes there are, where that is short.
func (x *index) onlyHint() string {
	if len(x.lab.Nodes) > 12 {
		return "list the nodes with c9s graph"
	}
	names := make([]string, 0, len(x.lab.Nodes))
	for _, n := range x.lab.Nodes {
		names = append(names, n.Name)
	}
	return "name a node of the topology: " + strings.Join(names, ", ")
}

// findNode finds a node by its name or its ID.
func (x *index) findNode(name string) *lab.Node {
	if n := x.nodes[name]; n != nil {
		return n
	}
	if i := slices.IndexFunc(x.lab.Nodes, func(n *lab.Node) bool { return n.ID == name }); i >= 0 {
		return x.lab.Nodes[i]
	}
	return nil
}

// skipPod reports whether nothing runs for a Pod: a node of kind host is the worker
// itself, and its links are the other end's.
func (x *index) skipPod(pod *lab.Pod) bool {
	primary := x.nodes[pod.Nodes[0]]
	return primary.RootNamespace && primary.Kind == "host"
}
