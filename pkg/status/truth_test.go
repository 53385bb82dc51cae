package status

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// TestStatusIsTheTruth has random things happen to a lab and compares its status, at
// every half second, with what is so: what the kernel would show, one second ago or now.
func TestStatusIsTheTruth(t *testing.T) {
	for seed := range uint64(150) {
		w := newTruth(t, seed)
		for range 120 {
			if w.rng.IntN(3) == 0 {
				w.happen()
			}
			w.pass(500 * time.Millisecond)
			w.check()
			if t.Failed() {
				t.Logf("seed %d after %v: %v", seed, w.now, w.log)
				return
			}
		}
	}
}

// truth is a lab as it is: a ring of nodes.
type truth struct {
	*testing.T
	rng   *rand.Rand
	now   time.Duration
	nodes []*trueNode
	links []*trueLink
	log   []string
}

// trueNode is one node. Times are when something began; -1 for never.
type trueNode struct {
	name    string
	wanted  bool // replicas
	removed bool // from the topology, not from the cluster
	pod     *truePod
	pods    int
	cut     bool // its worker
	// said is its sidecar's last answer, and when it was confirmed.
	said    *api.Status
	confirm time.Duration
}

type truePod struct {
	name     string
	began    time.Duration
	going    time.Duration
	crashed  time.Duration // when the device last ended
	restarts int32
	ready    bool
	wasReady bool
	changed  time.Duration // of its readiness
}

type trueLink struct {
	id       contract.WireID
	ends     [2]int
	names    [2]string
	impaired bool
	// up is since when it is so.
	up    bool
	since time.Duration
}

// How long things take in this lab.
const (
	podStarts  = 2 * time.Second // to the running device
	podBoots   = 4 * time.Second // to the ready one
	podEnds    = 3 * time.Second
	crashLasts = time.Second
	peerLost   = 800 * time.Millisecond
)

func newTruth(t *testing.T, seed uint64) *truth {
	w := &truth{T: t, rng: rand.New(rand.NewPCG(seed, 14)), now: time.Hour}
	for i := range 4 {
		w.nodes = append(w.nodes, &trueNode{name: fmt.Sprintf("R%d", i+1), wanted: true})
	}
	for i := range w.nodes {
		w.links = append(w.links, &trueLink{id: contract.WireID(i + 1), ends: [2]int{i, (i + 1) % 4}, names: [2]string{"eth1", "eth2"}})
	}
	return w
}

func (w *truth) happen() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	k := w.links[w.rng.IntN(len(w.links))]
	what := ""
	switch w.rng.IntN(9) {
	case 0, 1:
		n.wanted, what = !n.wanted, "stop or start "+n.name
	case 2:
		if n.pod != nil && n.pod.going < 0 && !n.cut {
			n.pod.going, what = w.now, "kill "+n.name
		}
	case 3:
		if n.pod != nil && w.boots(n.pod) && n.pod.going < 0 && !n.cut {
			n.pod.crashed, what = w.now, "crash "+n.name
			n.pod.restarts++
		}
	case 4:
		k.names[0], what = fmt.Sprintf("eth%d", 10+w.rng.IntN(90)), fmt.Sprintf("rename an end of link %d", k.id)
		k.id += 100 // a renamed interface is another wire
	case 5:
		k.impaired, what = !k.impaired, fmt.Sprintf("impair link %d", k.id)
	case 6, 7:
		n.cut, what = !n.cut, "cut off or heal "+n.name
	case 8:
		n.removed, what = !n.removed, "remove or bring back "+n.name
	}
	w.log = append(w.log, fmt.Sprintf("%v %s", w.now, what))
}

// boots reports whether a Pod's device has started.
func (w *truth) boots(p *truePod) bool { return w.now-p.began >= podStarts }

// wired reports whether a Pod's sidecar keeps its links.
func (n *trueNode) wired(w *truth) bool {
	return n.pod != nil && n.pod.going < 0 && w.boots(n.pod)
}

func (w *truth) pass(d time.Duration) {
	w.now += d
	for _, n := range w.nodes {
		switch p := n.pod; {
		case p == nil && n.wanted && !n.cut:
			n.pods++
			n.pod = &truePod{name: fmt.Sprintf("%s-%d", n.name, n.pods), began: w.now, going: -1, crashed: -time.Hour}
			n.said = nil
		case p != nil && p.going < 0 && !n.wanted:
			p.going = w.now
		case p != nil && p.going >= 0 && w.now-p.going >= podEnds && !n.cut:
			n.pod = nil
		}
	}
	for _, k := range w.links {
		a, b := w.nodes[k.ends[0]], w.nodes[k.ends[1]]
		if up := a.wired(w) && b.wired(w) && !a.cut && !b.cut; up != k.up {
			k.up, k.since = up, w.now
		}
	}
	for _, n := range w.nodes {
		w.kubelet(n)
		w.answer(n)
	}
}

// kubelet keeps the Pod's readiness, unless its worker is cut off.
func (w *truth) kubelet(n *trueNode) {
	p := n.pod
	if p == nil || n.cut {
		return
	}
	if ready := w.ready(n); ready != p.ready {
		p.ready, p.changed = ready, w.now
		p.wasReady = p.wasReady || ready
	}
}

// ready is the truth of the Pod's readiness probes: its device, and all its wires.
func (w *truth) ready(n *trueNode) bool {
	p := n.pod
	if p == nil || p.going >= 0 || w.now-p.began < podBoots || w.now-p.crashed < podBoots {
		return false
	}
	for _, k := range w.links {
		if (w.nodes[k.ends[0]] == n || w.nodes[k.ends[1]] == n) && !k.up && !w.removed(k) {
			return false
		}
	}
	return true
}

func (w *truth) removed(k *trueLink) bool {
	return w.nodes[k.ends[0]].removed || w.nodes[k.ends[1]].removed
}

// answer is what the node's sidecar says, heard at once unless its worker is cut off. It
// notices that a peer is lost after a while.
func (w *truth) answer(n *trueNode) {
	if n.pod == nil || n.cut || w.now-n.pod.began < podStarts/2 {
		return
	}
	s := api.Status{Pod: n.name}
	for _, k := range w.links {
		for i := range 2 {
			if w.nodes[k.ends[i]] != n {
				continue
			}
			in := api.Interface{Node: n.name, Name: k.names[i], Kind: "wire", Wire: k.id, State: api.StateMade, Carrier: true}
			up := k.up || w.now-k.since < peerLost && k.since > n.pod.began
			ws := wire.WireStatus{ID: k.id, Up: up, Datapath: "udp"}
			if !up {
				ws.Reason = "the peer is lost"
			}
			if k.impaired {
				ws.Impairment = &contract.Impairment{Loss: 100}
			}
			s.Interfaces, s.Fabric.Wires = append(s.Interfaces, in), append(s.Fabric.Wires, ws)
		}
	}
	n.said, n.confirm = &s, w.now
}

func (w *truth) clock(d time.Duration) metav1.Time { return metav1.NewTime(created.Add(d)) }

// facts are what the API server and the sidecars say.
func (w *truth) facts() Facts {
	f := Facts{Name: "lab", Asked: true, Sidecars: map[string]Answer{}, Links: []contract.TopologyLink{}}
	for _, n := range w.nodes {
		if !n.removed {
			f.Directory.Nodes = append(f.Directory.Nodes, contract.DirectoryNode{Name: n.name, Pod: n.name})
		}
		replicas := int32(0)
		if n.wanted {
			replicas = 1
		}
		f.Deployments = append(f.Deployments, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: n.name, Annotations: map[string]string{contract.AnnotationNodeName: n.name}}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}})
		if n.pod != nil {
			f.Pods = append(f.Pods, w.object(n))
			if n.said != nil && n.pod.going < 0 {
				f.Sidecars[n.name] = Answer{Status: *n.said, Age: w.now - n.confirm}
			}
		}
	}
	for _, k := range w.links {
		if w.removed(k) {
			continue
		}
		f.Links = append(f.Links, contract.TopologyLink{ID: k.id, Kind: "wire", A: contract.TopologyEnd{Node: w.nodes[k.ends[0]].name, Interface: k.names[0]},
			B: &contract.TopologyEnd{Node: w.nodes[k.ends[1]].name, Interface: k.names[1]}})
	}
	return f
}

// object is the Pod as the API server has it.
func (w *truth) object(n *trueNode) *corev1.Pod {
	p := n.pod
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: map[string]string{contract.LabelPod: n.name}, CreationTimestamp: w.clock(p.began)}, Spec: corev1.PodSpec{NodeName: "w1"}}
	if p.going >= 0 {
		pod.DeletionTimestamp = new(w.clock(p.going))
	}
	state := func(name string, from time.Duration) corev1.ContainerStatus {
		s := running(name)
		s.State.Running.StartedAt = w.clock(from)
		return s
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: w.clock(p.began)}}
	if !w.boots(p) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{prepared, notStarted(state(WireContainer, p.began))}
		return pod
	}
	started := p.began + podStarts
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{prepared, state(WireContainer, p.began)}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: w.clock(started)})
	device := state("device", started)
	device.RestartCount = p.restarts
	if p.restarts > 0 {
		device.State.Running.StartedAt = w.clock(p.crashed + crashLasts)
		if w.now-p.crashed < crashLasts && !n.cut {
			device = again(p.restarts, over("device", 0, "Completed", ""))
			device.State.Terminated.StartedAt, device.State.Terminated.FinishedAt = w.clock(started), w.clock(started+time.Hour)
		}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{device}
	if p.changed > 0 {
		pod.Status.Conditions[0].LastTransitionTime = w.clock(p.changed)
	}
	if p.ready {
		pod.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	return pod
}

// check compares the status with the truth.
func (w *truth) check() {
	l := Compute(w.facts())
	wrong := func(format string, args ...any) { w.Errorf("%v: %s", w.now, fmt.Sprintf(format, args...)) }
	nodes := map[string]Node{}
	for _, n := range l.Nodes {
		nodes[n.Name] = n
	}
	leftover := map[string]bool{}
	for _, left := range l.Leftover {
		leftover[left.Pod] = true
	}
	for _, n := range w.nodes {
		got, listed := nodes[n.name]
		if listed == n.removed || leftover[n.name] != n.removed {
			wrong("%s: listed %v, left over %v, and removed %v", n.name, listed, leftover[n.name], n.removed)
		}
		if n.removed {
			continue
		}
		switch p := n.pod; {
		case !n.wanted && got.State != StateStopped && got.State != StateTerminating, n.wanted && got.State == StateStopped:
			wrong("%s is %s, and wanted %v", n.name, got.State, n.wanted)
		case p != nil && p.wasReady && p.going < 0 && (got.State == StateBooting || got.State == StateStarting || got.State == StateWiring):
			wrong("%s was ready and is %s", n.name, got.State)
		case got.State == StateReady && !n.cut && !w.ready(n):
			wrong("%s is ready, and is not", n.name)
		case got.State == StateReady && n.cut && w.now-n.confirm > silentAfter:
			wrong("%s is ready, and nobody has heard of it for %v", n.name, w.now-n.confirm)
		case n.cut && got.State == StateReady && got.Age != nil && *got.Age < (w.now-n.confirm).Seconds():
			wrong("%s is said to be seen %v s ago", n.name, *got.Age)
		}
	}
	var want int
	for _, k := range w.links {
		if w.removed(k) {
			continue
		}
		want++
		i := slices.IndexFunc(l.Links, func(s Link) bool { return s.ID == k.id })
		if i < 0 {
			wrong("link %d is not listed", k.id)
			continue
		}
		w.checkLink(wrong, k, l.Links[i])
	}
	if _, all := l.LinksUp(); all != want {
		wrong("%d links of %d", all, want)
	}
	w.checkWord(wrong, l)
}

func (w *truth) checkLink(wrong func(string, ...any), k *trueLink, got Link) {
	if got.A.Interface != k.names[0] || got.B.Interface != k.names[1] {
		wrong("link %d is listed as %s and %s", k.id, got.A.Interface, got.B.Interface)
	}
	settled := w.now-k.since >= time.Second
	cut := 0
	for _, end := range k.ends {
		n := w.nodes[end]
		if n.cut {
			cut++
		}
		if gone := n.pod == nil || n.pod.going >= 0 || !n.wanted; gone && got.State != LinkDown {
			wrong("link %d is %s, and %s does not run", k.id, got.State, n.name)
		}
	}
	switch {
	case got.State == LinkUp && got.Age <= fresh.Seconds() && !k.up && settled && cut < 2:
		wrong("link %d is up, and is not", k.id)
	case got.State != LinkUp && k.up && settled:
		wrong("link %d is %s (%s), and is up", k.id, got.State, got.Reason)
	case got.State == LinkDegraded && !k.up && w.now-k.since > fresh+time.Second && cut < 2: // the last word of an end that was cut off is fresh for a while
		wrong("link %d is degraded, and is down", k.id)
	case got.State == LinkUp && k.up && k.impaired && got.Reason == "":
		wrong("link %d loses everything, and nothing is said of it", k.id)
	}
}

// checkWord holds the lab's word against its parts.
func (w *truth) checkWord(wrong func(string, ...any), l Lab) {
	ready, nodes := l.Ready()
	up, links := l.LinksUp()
	count := map[State]int{}
	for _, n := range l.Nodes {
		count[n.State]++
	}
	if all := ready == nodes && up == links; (l.State == LabReady) != (all && count[StateFailed] == 0) && nodes > 0 && !(nodes == count[StateStopped]) {
		wrong("the lab is %s; %d of %d nodes, %d of %d links", l.State, ready, nodes, up, links)
	}
	if (l.State == LabStopped) != (nodes > 0 && count[StateStopped] == nodes) {
		wrong("the lab is %s, and %d of %d nodes are stopped", l.State, count[StateStopped], nodes)
	}
}
