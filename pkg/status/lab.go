package status

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// Version names the shape of Lab in JSON.
const Version = "c9s.dev/lab-status/v1"

// The one word for a lab.
const (
	LabReady     = "ready"     // every node is ready and every link up
	LabDeploying = "deploying" // some node is on its way
	LabDegraded  = "degraded"  // all nodes run, and some link is down or some node unready
	LabFailed    = "failed"    // some node will not get ready by itself
	LabStopped   = "stopped"   // every node is stopped
)

// Lab is the state of a whole lab.
type Lab struct {
	Version   string `json:"version"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	State     string `json:"state"`
	// Source tells where the facts on links come from: "controller" or "pods".
	Source string `json:"source,omitempty"`
	Nodes  []Node `json:"nodes"`
	Links  []Link `json:"links"`
}

// Node is the state of one node.
type Node struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`
	Image string `json:"image,omitempty"`
	State State  `json:"state"`
	// Reason is why it is not ready, in words for people.
	Reason   string     `json:"reason,omitempty"`
	Restarts int        `json:"restarts"`
	Worker   string     `json:"worker,omitempty"`
	Pod      string     `json:"pod"`
	PodName  string     `json:"podName,omitempty"`
	IPv4     netip.Addr `json:"ipv4,omitzero"`
	IPv6     netip.Addr `json:"ipv6,omitzero"`
	// Exposed is the address for people outside: the load balancer's, or the
	// Service's own.
	Exposed string    `json:"exposed,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Commands are the topology's own, and those of the kind that have failed or
	// still run.
	Commands []Command `json:"commands,omitempty"`
	Source   string    `json:"source,omitempty"`
}

// Command is the outcome of a step.
type Command struct {
	Step int `json:"step"`
	// Command is the step's name: of the topology's own, the command as written.
	Command string `json:"command,omitempty"`
	// User tells that it is the topology's own.
	User     bool   `json:"user,omitempty"`
	Running  bool   `json:"running,omitempty"`
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error,omitempty"`
	Output   string `json:"output,omitempty"`
}

// End is one end of a link.
type End struct {
	Node      string `json:"node"`
	Interface string `json:"interface"`
	// Known tells that its sidecar answers; without it the rest says nothing.
	Known   bool   `json:"known"`
	Carrier bool   `json:"carrier"`
	State   string `json:"state,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Link is the state of one link.
type Link struct {
	// ID is the wire's number; 0 for a link that has no far end in the lab.
	ID       lab.WireID `json:"id,omitempty"`
	Kind     string     `json:"kind"`
	A        End        `json:"a"`
	B        End        `json:"b,omitzero"`
	Up       bool       `json:"up"`
	Reason   string     `json:"reason,omitempty"`
	Datapath string     `json:"datapath,omitempty"`
	RTT      float64    `json:"rttMs,omitempty"`
	// Drops are frames that either end could not carry; frames that an
	// impairment lost are not among them.
	Drops   uint64 `json:"drops"`
	TxBytes uint64 `json:"txBytes"` // from A to B
	RxBytes uint64 `json:"rxBytes"`
}

// Facts are what Compute goes by.
type Facts struct {
	Name, Namespace string
	// Directory has every node of the lab.
	Directory contract.Directory
	// Deployments are nil where they cannot be read; nodes without a Pod then
	// have no reason.
	Deployments []*appsv1.Deployment
	Pods        []*corev1.Pod
	Services    []*corev1.Service
	// Events are warnings by the name of the Pod, the latest last.
	Events map[string][]corev1.Event
	// Sidecars are by the name of the Pod's objects.
	Sidecars map[string]api.Status
}

// Compute puts the facts together.
func Compute(f Facts) Lab {
	l := Lab{Version: Version, Name: f.Name, Namespace: f.Namespace, Nodes: []Node{}, Links: Links(f.Sidecars)}
	pods := map[string]*corev1.Pod{}
	for _, p := range f.Pods {
		name := p.Labels[contract.LabelPod]
		if pods[name] == nil || Newer(p, pods[name]) {
			pods[name] = p
		}
	}
	deployments := map[string]*appsv1.Deployment{}
	for _, d := range f.Deployments {
		deployments[d.Name] = d
	}
	services := map[string]nodeServices{}
	for _, s := range f.Services {
		name := s.Annotations[contract.AnnotationNodeName]
		of := services[name]
		of.any = s
		if s.Name == s.Labels[contract.LabelNode] {
			of.expose = s
		}
		services[name] = of
	}
	for _, n := range f.Directory.Nodes {
		l.Nodes = append(l.Nodes, node(f, n, deployments[n.Pod], pods[n.Pod], services[n.Name]))
	}
	l.State = verdict(l)
	return l
}

// Newer prefers a Pod that is not going, and then the younger one.
func Newer(a, b *corev1.Pod) bool {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		return a.DeletionTimestamp == nil
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

// nodeServices are a node's own: the one for people, and any that has the node's
// labels, which the Pod has of its primary only.
type nodeServices struct{ expose, any *corev1.Service }

func node(f Facts, n contract.DirectoryNode, d *appsv1.Deployment, pod *corev1.Pod, services nodeServices) Node {
	out := Node{Name: n.Name, Pod: n.Pod, IPv4: n.IPv4, IPv6: n.IPv6}
	var events []corev1.Event
	if pod != nil {
		events = f.Events[pod.Name]
	}
	p := Of(d, pod, events)
	out.State, out.Restarts, out.Reason = p.State, p.Restarts, p.Cause()
	if d != nil {
		out.Kind, out.Source = d.Labels[contract.LabelKind], d.Annotations[contract.AnnotationSource]
	}
	if s := services.any; s != nil {
		out.Kind, out.Source = s.Labels[contract.LabelKind], s.Annotations[contract.AnnotationSource]
	}
	out.Exposed = exposed(services.expose)
	if pod == nil {
		return out
	}
	out.PodName, out.Worker = pod.Name, pod.Spec.NodeName
	if out.Kind == "" {
		out.Kind = pod.Labels[contract.LabelKind]
	}
	if pod.Status.StartTime != nil {
		out.Started = pod.Status.StartTime.Time
	}
	var containers map[string][]string
	_ = json.Unmarshal([]byte(pod.Annotations[contract.AnnotationContainers]), &containers)
	for _, c := range pod.Spec.Containers {
		if names := containers[n.Name]; len(names) > 0 && c.Name == names[0] {
			out.Image = c.Image
		}
	}
	side, ok := f.Sidecars[n.Pod]
	if !ok {
		return out
	}
	for _, program := range side.Programs {
		if program.Node == n.Name {
			out.Commands = append(out.Commands, commands(program)...)
		}
	}
	if out.Reason == "" && out.State == StateWiring {
		out.Reason = side.StartupReason
	}
	if out.Reason == "" && out.State == StateBooting {
		out.Reason = side.ReadyReason
	}
	return out
}

// exposed is the address of a Service for people.
func exposed(s *corev1.Service) string {
	if s == nil {
		return ""
	}
	for _, in := range s.Status.LoadBalancer.Ingress {
		if in.IP != "" {
			return in.IP
		}
		if in.Hostname != "" {
			return in.Hostname
		}
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		return ""
	}
	return s.Spec.ClusterIP
}

func commands(p api.Program) []Command {
	var out []Command
	for _, s := range p.Result.Steps {
		c := Command{Step: s.Index + 1, Command: s.Name, User: s.User, Running: s.Running, ExitCode: s.ExitCode, Error: s.Error, Output: strings.TrimSpace(s.Output)}
		if s.User || !c.OK() {
			out = append(out, c)
		}
	}
	return out
}

// OK tells that the command has ended well.
func (c Command) OK() bool { return !c.Running && c.ExitCode == 0 && c.Error == "" }

// Unfinished are the node's commands that have failed or still run.
func (n Node) Unfinished() []Command {
	var out []Command
	for _, c := range n.Commands {
		if !c.OK() {
			out = append(out, c)
		}
	}
	return out
}

// String says what became of the command, on one line but for its output.
func (c Command) String() string {
	name := fmt.Sprintf("step %d", c.Step)
	if c.Command != "" {
		name = strconv.Quote(c.Command)
	}
	switch {
	case c.OK():
		return name + " succeeded"
	case c.Running && c.Error == "":
		return name + " is running"
	case c.Running:
		return name + ": " + c.Error
	}
	text := fmt.Sprintf("%s failed with exit code %d", name, c.ExitCode)
	// The error of a command that ran says the exit code once more.
	for _, more := range []string{c.Error, c.Output} {
		if more != "" && more != fmt.Sprintf("exit status %d", c.ExitCode) {
			text += ": " + more
		}
	}
	return text
}

// verdict is the lab's one word.
func verdict(l Lab) string {
	count := map[State]int{}
	for _, n := range l.Nodes {
		count[n.State]++
	}
	total := len(l.Nodes)
	switch {
	case count[StateFailed] > 0:
		return LabFailed
	case total > 0 && count[StateStopped] == total:
		return LabStopped
	case count[StatePending]+count[StatePulling]+count[StatePreparing]+count[StateWiring]+count[StateStarting]+count[StateTerminating] > 0:
		return LabDeploying
	case count[StateBooting] > 0:
		return LabDegraded
	}
	for _, link := range l.Links {
		if !link.Up {
			return LabDegraded
		}
	}
	return LabReady
}

// Links joins what the sidecars say of both ends.
func Links(sidecars map[string]api.Status) []Link {
	out := []Link{}
	byID := map[lab.WireID]int{}
	pods := make([]string, 0, len(sidecars))
	for pod := range sidecars {
		pods = append(pods, pod)
	}
	slices.Sort(pods)
	for _, pod := range pods {
		s := sidecars[pod]
		wires := map[lab.WireID]int{}
		for i := range s.Fabric.Wires {
			wires[s.Fabric.Wires[i].ID] = i
		}
		for _, in := range s.Interfaces {
			own := End{Node: in.Node, Interface: in.Name, Known: true, Carrier: in.Carrier, State: in.State, Error: in.Error}
			if at, ok := byID[in.Wire]; ok && in.Wire != 0 {
				out[at].join(own)
				if i, ok := wires[in.Wire]; ok {
					out[at].add(s.Fabric.Wires[i].Drops)
				}
				continue
			}
			link := Link{ID: in.Wire, Kind: in.Kind, A: own, B: End{Node: in.PeerNode, Interface: in.PeerInterface}}
			link.Up, link.Reason = in.State != api.StateFailed && in.State != api.StateHeld, in.Error
			if in.Kind == "local" {
				link.Datapath = "kernel"
			}
			if i, ok := wires[in.Wire]; ok && in.Wire != 0 {
				w := s.Fabric.Wires[i]
				link.Up, link.Reason, link.Datapath, link.RTT = w.Up, w.Reason, w.Datapath, w.RTT
				link.TxBytes, link.RxBytes = w.TxBytes, w.RxBytes
				link.add(w.Drops)
			}
			if in.Wire != 0 {
				byID[in.Wire] = len(out)
			}
			out = append(out, link)
		}
	}
	slices.SortStableFunc(out, func(a, b Link) int {
		return strings.Compare(a.A.Node+"\x00"+a.A.Interface, b.A.Node+"\x00"+b.A.Interface)
	})
	return out
}

// join adds what the far end says of itself.
func (l *Link) join(far End) {
	l.B = far
	if far.State == api.StateFailed || far.State == api.StateHeld {
		l.Up, l.Reason = false, far.Error
	}
}

// add counts drops, but for those that are wanted.
func (l *Link) add(drops map[string]uint64) {
	for reason, n := range drops {
		if !strings.Contains(reason, "impair") {
			l.Drops += n
		}
	}
}

// Settle finds the lab's word again, after its links were set.
func (l *Lab) Settle() { l.State = verdict(*l) }

// Explain takes over what only the sidecars know of nodes, from an earlier report:
// outcomes of commands, and why a node waits.
func (l *Lab) Explain(reported []Node) {
	by := map[string]*Node{}
	for i := range reported {
		by[reported[i].Name] = &reported[i]
	}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		r := by[n.Name]
		if r == nil || r.PodName != n.PodName {
			continue
		}
		n.Commands = r.Commands
		if n.Reason == "" && n.State == r.State {
			n.Reason = r.Reason
		}
	}
}

// shortOutput is how much of a command's output is kept in the ConfigMap.
const shortOutput = 200

// Short leaves out of the status what commands printed that ended well, and most
// of what others did.
func (l Lab) Short() Lab {
	l.Nodes = slices.Clone(l.Nodes)
	for i := range l.Nodes {
		n := &l.Nodes[i]
		n.Commands = slices.Clone(n.Commands)
		for j := range n.Commands {
			c := &n.Commands[j]
			if c.OK() {
				c.Output = ""
			} else if over := len(c.Output) - shortOutput; over > 0 {
				c.Output = strings.ToValidUTF8(c.Output[over:], "")
			}
		}
	}
	return l
}
