package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// Version names the shape of Lab in JSON.
const Version = "c9s.dev/lab-status/v1"

// The states of a lab. The first that applies is used, so that it never contradicts the
// states of its parts.
const (
	LabFailed    = "failed"    // a node cannot become ready without help
	LabStopped   = "stopped"   // every node is stopped
	LabDeploying = "deploying" // a node is starting for the first time, or its old Pod is terminating
	LabDegraded  = "degraded"  // a node is degraded or stopped, or a link is not up
	LabReady     = "ready"     // every node is ready and every link up
)

// Lab is the state of a whole lab.
type Lab struct {
	Version   string `json:"version"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	State     string `json:"state"`
	// Source is where the facts on links come from: "controller" or "pods".
	Source string `json:"source,omitempty"`
	Nodes  []Node `json:"nodes"`
	// Links are all of the topology's.
	Links []Link `json:"links"`
	// Leftover holds the Pods of nodes that are no longer in the topology.
	Leftover []Leftover `json:"leftover,omitempty"`
}

// Leftover describes what a removed node left in the cluster.
type Leftover struct {
	// Nodes holds the names as the topology writes them; Pod is the name of the objects.
	Nodes   string `json:"nodes,omitempty"`
	Pod     string `json:"pod"`
	PodName string `json:"podName,omitempty"`
}

// Node is the state of one node.
type Node struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`
	Image string `json:"image,omitempty"`
	State State  `json:"state"`
	// Reason explains to a person why the node is not ready.
	Reason   string     `json:"reason,omitempty"`
	Restarts int        `json:"restarts"`
	Worker   string     `json:"worker,omitempty"`
	Pod      string     `json:"pod"`
	PodName  string     `json:"podName,omitempty"`
	IPv4     netip.Addr `json:"ipv4,omitzero"`
	IPv6     netip.Addr `json:"ipv6,omitzero"`
	// Exposed is the address for access from outside: that of the load balancer, or of
	// the Service itself.
	Exposed string `json:"exposed,omitempty"`
	// ExposedPorts are the node's ports behind the lab's shared load balancer.
	ExposedPorts []ExposedPort `json:"exposedPorts,omitempty"`
	// Started is when the Pod was scheduled, by the control plane's clock.
	Started time.Time `json:"started,omitzero"`
	// Age is the age of the sidecar's last answer in seconds; nil if it has not answered.
	Age *float64 `json:"ageSeconds,omitempty"`
	// Mesh is the state of the node's end of the management network, up or down; "" for a
	// node without one.
	Mesh string `json:"mesh,omitempty"`
	// MeshPeers is the number of its peers on the management network; MeshLost holds the
	// Pods of the lost ones.
	MeshPeers int      `json:"meshPeers,omitempty"`
	MeshLost  []string `json:"meshLost,omitempty"`
	// Late is set while the node has not received an edit of its links: the kubelet delivers
	// ConfigMaps some time later.
	Late bool `json:"late,omitempty"`
	// Commands holds the commands of the topology, and those of the kind that failed or
	// are still running.
	Commands []Command `json:"commands,omitempty"`
	Source   string    `json:"source,omitempty"`
	// Config is the state of the node's configuration: saved, unsaved, "never saved",
	// unknown or "-" for a node without one; "" if it was not asked for.
	Config string `json:"config,omitempty"`
}

// ExposedPort is a port of a node, and At which port of the load balancer it is.
type ExposedPort struct {
	Port     uint16 `json:"port"`
	Protocol string `json:"protocol"`
	At       uint16 `json:"at"`
}

// String writes the port as Docker does: 11000->22/tcp.
func (p ExposedPort) String() string {
	return fmt.Sprintf("%d->%d/%s", p.At, p.Port, strings.ToLower(p.Protocol))
}

// Facts are the input of Compute.
type Facts struct {
	Name, Namespace string
	// Directory lists every node of the lab.
	Directory contract.Directory
	// Deployments is nil if they cannot be read; nodes without a Pod then have no
	// reason.
	Deployments []*appsv1.Deployment
	Pods        []*corev1.Pod
	Services    []*corev1.Service
	// Events holds warnings by the name of the Pod, the latest last.
	Events map[string][]corev1.Event
	// Links holds the links of the topology; nil if the cluster has no list of them.
	Links []contract.TopologyLink
	// LinksDigests holds the digests of the Pods' links, by the name of the Pod's objects.
	LinksDigests map[string]string
	// Sidecars holds answers by the name of the Pod's objects. Asked is set if every
	// sidecar was asked, so that a missing one has not answered.
	Sidecars map[string]Answer
	Asked    bool
}

// Compute returns the state of the lab that the facts describe.
func Compute(f Facts) Lab {
	f.Sidecars = ownWords(f.Directory, f.Sidecars)
	l := Lab{Version: Version, Name: f.Name, Namespace: f.Namespace, Nodes: []Node{}, Links: Links(f.Links, f.Sidecars)}
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
	services := map[string]*corev1.Service{}
	var shared *corev1.Service
	for _, s := range f.Services {
		switch s.Name {
		case s.Labels[contract.LabelNode]:
			services[s.Annotations[contract.AnnotationNodeName]] = s
		case contract.SharedService:
			shared = s
		}
	}
	for _, n := range f.Directory.Nodes {
		l.Nodes = append(l.Nodes, node(f, n, deployments[n.Pod], pods[n.Pod], services[n.Name]))
		l.Nodes[len(l.Nodes)-1].share(shared, pods[n.Pod])
	}
	l.Leftover = leftover(f, pods, deployments)
	l.Settle()
	return l
}

// ownWords removes from each sidecar's answer what it reports about nodes of other Pods.
func ownWords(d contract.Directory, sidecars map[string]Answer) map[string]Answer {
	pods := map[string]string{}
	for _, n := range d.Nodes {
		pods[n.Name] = n.Pod
	}
	out := make(map[string]Answer, len(sidecars))
	for pod, a := range sidecars {
		a.Status.Interfaces = slices.DeleteFunc(slices.Clone(a.Status.Interfaces), func(in api.Interface) bool { return pods[in.Node] != pod })
		a.Status.Programs = slices.DeleteFunc(slices.Clone(a.Status.Programs), func(p api.Program) bool { return pods[p.Node] != pod })
		out[pod] = a
	}
	return out
}

// leftover returns the Deployments and Pods that belong to no node of the directory. A Pod
// whose Deployment is gone will terminate by itself.
func leftover(f Facts, pods map[string]*corev1.Pod, deployments map[string]*appsv1.Deployment) []Leftover {
	known := map[string]bool{}
	for _, n := range f.Directory.Nodes {
		known[n.Pod] = true
	}
	var out []Leftover
	for name, d := range deployments {
		if known[name] || name == "" {
			continue
		}
		left := Leftover{Nodes: d.Annotations[contract.AnnotationNodeName], Pod: name}
		if p := pods[name]; p != nil {
			left.PodName = p.Name
		}
		out = append(out, left)
	}
	for name, p := range pods {
		if !known[name] && deployments[name] == nil && p.DeletionTimestamp == nil && !Ended(p) {
			out = append(out, Leftover{Pod: name, PodName: p.Name})
		}
	}
	slices.SortFunc(out, func(a, b Leftover) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// Newer reports whether a is to be preferred to b: Pods that do not terminate come first,
// then the younger one.
func Newer(a, b *corev1.Pod) bool {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		return a.DeletionTimestamp == nil
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

func node(f Facts, n contract.DirectoryNode, d *appsv1.Deployment, pod *corev1.Pod, service *corev1.Service) Node {
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
	if n.Kind != "" {
		out.Kind = n.Kind
	}
	out.Exposed = exposed(service)
	if pod == nil {
		return out
	}
	out.PodName, out.Worker = pod.Name, pod.Spec.NodeName
	if out.Kind == "" {
		out.Kind = pod.Labels[contract.LabelKind]
	}
	if pod.Status.StartTime != nil {
		out.Started = placed(pod)
	}
	var containers map[string][]string
	_ = json.Unmarshal([]byte(pod.Annotations[contract.AnnotationContainers]), &containers)
	for _, c := range pod.Spec.Containers {
		if names := containers[n.Name]; len(names) > 0 && c.Name == names[0] {
			out.Image = c.Image
		}
	}
	answer, ok := f.Sidecars[n.Pod]
	out.heard(answer.Age, ok, f.Asked)
	if !ok {
		return out
	}
	side := answer.Status
	if want := f.LinksDigests[n.Pod]; want != "" && side.Links != "" && side.Links != want {
		out.Late, out.Reason = true, cmp.Or(out.Reason, lateReason)
	}
	out.Age = new(answer.Age.Seconds())
	if m := side.Mgmt; m != nil {
		out.Mesh = "down"
		if m.Made {
			out.Mesh = "up"
		}
		out.MeshPeers = len(m.Peers)
		for _, p := range m.Peers {
			if !p.Up {
				out.MeshLost = append(out.MeshLost, p.Pod)
			}
		}
	}
	for _, program := range side.Programs {
		if program.Node == n.Name {
			out.Commands = append(out.Commands, commands(program)...)
		}
	}
	if out.Reason == "" && out.State == StateWiring {
		out.Reason = side.StartupReason
	}
	if out.Reason == "" && (out.State == StateBooting || out.State == StateDegraded) {
		out.Reason = side.ReadyReason
	}
	if out.Reason == "" && out.State == StateDegraded {
		out.Reason = unready(pod)
	}
	return out
}

// lateReason is the reason of a node that has not received an edit of its links.
const lateReason = "its links were edited, and the kubelet has not delivered the edit yet, which takes up to two minutes without a controller"

// silentAfter is how long a sidecar may leave requests unanswered before its node is
// degraded. On a worker with booting devices an answer can take seconds.
const silentAfter = 5 * time.Second

// heard marks a ready node as degraded if its sidecar does not answer, for example
// because its worker is cut off.
func (n *Node) heard(age time.Duration, answered, asked bool) {
	switch {
	case n.State != StateReady || !asked:
	case !answered:
		n.State, n.Reason = StateDegraded, "its sidecar does not answer"
	case age > silentAfter:
		n.State, n.Reason = StateDegraded, "its sidecar is silent"
	}
}

// unready returns the kubelet's reason why a Pod is no longer ready.
func unready(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if s.RestartCount > 0 && !s.Ready {
			return "its container " + s.Name + " restarted and is not ready yet"
		}
	}
	if c := condition(pod, corev1.PodReady); c != nil {
		return c.Message
	}
	return ""
}

// share adds the node's ports behind the lab's shared load balancer.
func (n *Node) share(s *corev1.Service, pod *corev1.Pod) {
	if s == nil || pod == nil {
		return
	}
	var containers map[string][]string
	_ = json.Unmarshal([]byte(pod.Annotations[contract.AnnotationContainers]), &containers)
	for _, c := range pod.Spec.Containers {
		if !slices.Contains(containers[n.Name], c.Name) {
			continue
		}
		for _, p := range c.Ports {
			if at, ok := contract.SharedPort(p.Name); ok {
				n.ExposedPorts = append(n.ExposedPorts, ExposedPort{uint16(p.ContainerPort), string(p.Protocol), at})
			}
		}
	}
	if len(n.ExposedPorts) > 0 {
		n.Exposed = exposed(s)
	}
}

// exposed returns the address of a Service for access from outside.
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

// verdict returns the state of the lab.
func verdict(l Lab) string {
	count := map[State]int{}
	late := false
	for _, n := range l.Nodes {
		count[n.State]++
		late = late || n.Late
	}
	ready, nodes := l.Ready()
	up, links := l.LinksUp()
	switch {
	case count[StateFailed] > 0:
		return LabFailed
	case nodes > 0 && count[StateStopped] == nodes:
		return LabStopped
	case ready+count[StateDegraded]+count[StateStopped] < nodes, late:
		return LabDeploying
	case ready < nodes || up < links:
		return LabDegraded
	}
	return LabReady
}

// Ready returns the number of ready nodes and of all nodes.
func (l Lab) Ready() (ready, all int) {
	for _, n := range l.Nodes {
		if n.State == StateReady {
			ready++
		}
	}
	return ready, len(l.Nodes)
}

// LinksUp returns the number of links that are up and of all links.
func (l Lab) LinksUp() (up, all int) {
	for _, k := range l.Links {
		if k.State == LinkUp {
			up++
		}
	}
	return up, len(l.Links)
}

// Settle updates the states of the links and of the lab from those of the nodes.
func (l *Lab) Settle() {
	nodes := map[string]*Node{}
	for i := range l.Nodes {
		nodes[l.Nodes[i].Name] = &l.Nodes[i]
	}
	for i := range l.Links {
		l.Links[i].place(nodes)
	}
	l.State = verdict(*l)
}

// Explain copies what only sidecars report from an earlier report: the outcomes of
// commands, and why a node is waiting.
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
		n.Commands, n.Age, n.Late = r.Commands, r.Age, r.Late
		n.Mesh, n.MeshPeers, n.MeshLost = r.Mesh, r.MeshPeers, r.MeshLost
		if r.State == StateDegraded && (r.Age == nil || *r.Age > silentAfter.Seconds()) && n.State == StateReady {
			n.State = StateDegraded // the reporter asked its sidecar, and this status did not
		}
		if n.Reason == "" && n.State == r.State {
			n.Reason = r.Reason
		}
	}
}

// shortOutput is the maximum length of a command's output in the ConfigMap, in bytes.
const shortOutput = 200

// Short returns the status without the output of commands that succeeded, and with only
// the end of the output of others.
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
