package podnet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// oracleEnv is how long TestStatusAgainstTheKernel runs (time.ParseDuration).
const oracleEnv = "C9S_STATUS_ORACLE"

const (
	// newsWithin is how late the status may be.
	newsWithin = time.Second
	// sampleEvery is how often the kernel is asked, checkEvery how often the status is
	// compared.
	sampleEvery = 50 * time.Millisecond
	checkEvery  = 500 * time.Millisecond
)

// oracleNode is a node of the lab, and what the test has done to it.
type oracleNode struct {
	p    *pod
	stop context.CancelFunc
	// names are the present names of its interfaces.
	names map[string]string

	mu      sync.Mutex
	running bool
	began   time.Time
	cutAt   time.Time // zero for not cut
	answer  *api.Status
	at      time.Time
}

// oracleLink is a link, and what the kernel says of its ends now.
type oracleLink struct {
	id   contract.WireID
	ends [2]struct {
		node *oracleNode
		name string
	}
}

type oracle struct {
	t     *testing.T
	c     *cluster
	nodes []*oracleNode
	links []*oracleLink
	rng   *rand.Rand
	log   []string

	mu      sync.Mutex
	samples []sample
}

// sample is what the kernel says at a moment: a state for each link.
type sample struct {
	at    time.Time
	links []status.LinkState
}

// The status of a lab is compared with what the kernel says of it, while things happen to
// the lab: each half second it must be what was so within the last second, or be shown as
// older.
func TestStatusAgainstTheKernel(t *testing.T) {
	needRoot(t)
	lasts := 25 * time.Second
	if text := os.Getenv(oracleEnv); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	o := newOracle(t, seed)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { o.sample(ctx) })
	eventually(t, "the kernel has been asked", func() error {
		if len(o.window()) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	checks, events := 0, 0
	next := time.Now().Add(2 * time.Second)
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(checkEvery) {
		if time.Now().After(next) {
			o.happen()
			events++
			next = time.Now().Add(time.Duration(o.rng.IntN(2500)) * time.Millisecond)
		}
		if o.check(); t.Failed() {
			t.Logf("seed %d: %v", seed, o.log)
			return
		}
		checks++
	}
	t.Logf("%d events, %d comparisons", events, checks)
}

// newOracle is a ring of three nodes that run.
func newOracle(t *testing.T, seed uint64) *oracle {
	o := &oracle{t: t, c: newCluster(t), rng: rand.New(rand.NewPCG(seed, 0))}
	names := []string{"r1", "r2", "r3"}
	for n, name := range names {
		doc := mgmtDoc(11 + n)
		before, after := names[(n+2)%3], names[(n+1)%3]
		doc.Interfaces = append(doc.Interfaces, wired(iface(name, "eth1", 2*n+1), n+1, after), wired(iface(name, "eth2", 2*n+2), (n+2)%3+1, before))
		doc.Interfaces[0].Wire.PeerInterface = "eth2"
		o.nodes = append(o.nodes, &oracleNode{p: o.c.newPod(name, doc), names: map[string]string{"eth1": "eth1", "eth2": "eth2"}})
	}
	for n := range names {
		l := &oracleLink{id: contract.WireID(n + 1)}
		l.ends[0].node, l.ends[0].name = o.nodes[n], "eth1"
		l.ends[1].node, l.ends[1].name = o.nodes[(n+1)%3], "eth2"
		o.links = append(o.links, l)
	}
	o.c.startAll()
	for _, n := range o.nodes {
		eventually(t, n.p.name+" is ready", n.p.ready)
		o.follow(n)
	}
	t.Cleanup(func() {
		for _, n := range o.nodes {
			n.stop()
		}
	})
	return o
}

// follow keeps a node's answers, as the controller does.
func (o *oracle) follow(n *oracleNode) {
	ctx, stop := context.WithCancel(context.Background())
	n.mu.Lock()
	n.stop, n.running, n.began, n.answer = stop, true, time.Now(), nil
	n.mu.Unlock()
	at := netip.MustParseAddr(n.p.ip4)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialIn(o.c.name)}}
	go func() {
		tag := ""
		for ctx.Err() == nil {
			s, changed, err := api.Follow(ctx, client, at, tag, func() { n.heard(ctx, nil) })
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			if changed {
				tag = s.Tag()
				n.heard(ctx, &s)
			}
		}
	}()
}

func (n *oracleNode) heard(ctx context.Context, s *api.Status) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	n.at = time.Now()
	if s != nil {
		n.answer = s
	}
}

// sample asks the kernel again and again.
func (o *oracle) sample(ctx context.Context) {
	for ctx.Err() == nil {
		o.look()
		time.Sleep(sampleEvery)
	}
}

// look asks the kernel once.
func (o *oracle) look() {
	s := sample{at: time.Now()}
	for _, l := range o.links {
		s.links = append(s.links, l.truth())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.samples = append(o.samples, s)
	if len(o.samples) > 2000 {
		o.samples = o.samples[1000:]
	}
}

// truth is the link's state by the kernel's word.
func (l *oracleLink) truth() status.LinkState {
	up, down := 0, 0
	for _, e := range l.ends {
		switch carrier, runs := e.node.carrier(e.name); {
		case !runs:
			return status.LinkDown
		case carrier:
			up++
		default:
			down++
		}
	}
	switch {
	case down == 0:
		return status.LinkUp
	case up == 0:
		return status.LinkDown
	}
	return status.LinkDegraded
}

// carrier asks the kernel whether an interface of the node has its cable plugged in.
func (n *oracleNode) carrier(name string) (carrier, running bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.running {
		return false, false
	}
	h, err := netns.GetFromName(n.p.ns)
	if err != nil {
		return false, true
	}
	defer h.Close()
	nl, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE)
	if err != nil {
		return false, true
	}
	defer nl.Close()
	l, err := nl.LinkByName(n.names[name])
	return err == nil && l.Attrs().RawFlags&unix.IFF_UP != 0 && l.Attrs().RawFlags&unix.IFF_LOWER_UP != 0, true
}

// happen has one thing happen to a node.
func (o *oracle) happen() {
	n := o.nodes[o.rng.IntN(len(o.nodes))]
	name := []string{"eth1", "eth2"}[o.rng.IntN(2)]
	what := ""
	n.mu.Lock()
	running, cut := n.running, !n.cutAt.IsZero()
	n.mu.Unlock()
	port := fmt.Sprintf("v%s", n.p.ns[len(o.c.name)+1:])
	switch kind := o.rng.IntN(8); {
	case !running:
		what = "starts"
		n.p.plug()
		for _, m := range o.nodes {
			m.p.doc.Version = contract.LinksVersion
		}
		directory(o.c.pods...)
		n.p.start()
		n.mu.Lock()
		n.names = map[string]string{"eth1": "eth1", "eth2": "eth2"}
		n.mu.Unlock()
		o.follow(n)
	case cut:
		what = "is joined again"
		o.c.in("ip link set " + port + " up")
		n.mu.Lock()
		n.cutAt = time.Time{}
		n.mu.Unlock()
	case kind == 0:
		what = "stops"
		n.mu.Lock()
		n.running = false
		n.mu.Unlock()
		n.stop()
		n.p.unplug()
		n.p.forgetState()
	case kind == 1:
		what = "has its sidecar killed"
		_ = syscall.Kill(n.p.child(), syscall.SIGKILL)
	case kind == 2:
		what = "has its supervisor killed"
		n.p.kill()
		n.p.start()
	case kind == 3:
		what = "renames " + name
		n.mu.Lock()
		old, now := n.names[name], "x"+name
		if old == now {
			now = name
		}
		n.p.in("ip link set " + old + " down")
		n.p.in("ip link set " + old + " name " + now)
		n.names[name] = now
		n.mu.Unlock()
		o.look() // it is down for a moment
		n.p.in("ip link set " + now + " up")
	case kind == 4:
		what = "has " + name + " impaired"
		n.p.impair(name, &contract.Impairment{Loss: float64(o.rng.IntN(2) * 100)})
	case kind == 5:
		what = "is cut off"
		o.c.in("ip link set " + port + " down")
		n.mu.Lock()
		n.cutAt = time.Now()
		n.mu.Unlock()
	default:
		n.mu.Lock()
		what = "sets " + name + " down"
		way := "down"
		if nlUp(n.p.ns, n.names[name]) == false {
			what, way = "sets "+name+" up", "up"
		}
		n.p.in("ip link set " + n.names[name] + " " + way)
		n.mu.Unlock()
	}
	o.log = append(o.log, fmt.Sprintf("%s %s %s", time.Now().Format("05.000"), n.p.name, what))
}

func nlUp(ns, name string) bool {
	out, err := run("ip", "-n", ns, "-o", "link", "show", "dev", name, "up")
	return err == nil && out != ""
}

// status is what c9s says of the lab.
func (o *oracle) status() status.Lab {
	f := status.Facts{Name: "demo", Namespace: "test", Directory: contract.Directory{Lab: "demo"}, Sidecars: map[string]status.Answer{}, Asked: true, Links: []contract.TopologyLink{}}
	for _, l := range o.links {
		end := func(i int) contract.TopologyEnd {
			return contract.TopologyEnd{Node: l.ends[i].node.p.name, Interface: l.ends[i].name}
		}
		b := end(1)
		f.Links = append(f.Links, contract.TopologyLink{ID: l.id, Kind: "wire", A: end(0), B: &b})
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, n := range o.nodes {
		name := n.p.name
		f.Directory.Nodes = append(f.Directory.Nodes, contract.DirectoryNode{Name: name, Pod: name})
		n.mu.Lock()
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}}
		if n.running {
			d.Spec.Replicas = new(int32(1))
			f.Pods = append(f.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{contract.LabelPod: name}},
				Spec:       corev1.PodSpec{NodeName: "w1"},
				Status: corev1.PodStatus{
					Phase:                 corev1.PodRunning,
					InitContainerStatuses: []corev1.ContainerStatus{{Name: status.WireContainer, State: running, Started: new(true)}},
					ContainerStatuses:     []corev1.ContainerStatus{{Name: name, State: running}},
					Conditions:            []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
				},
			})
			if n.answer != nil && time.Since(n.at) < 15*time.Second {
				f.Sidecars[name] = status.Answer{Status: *n.answer, Age: time.Since(n.at)}
			}
		}
		f.Deployments = append(f.Deployments, d)
		n.mu.Unlock()
	}
	return status.Compute(f)
}

// window are the samples of the last second, or of longer where the machine itself was
// slower than that.
func (o *oracle) window() []sample {
	o.mu.Lock()
	defer o.mu.Unlock()
	stall := time.Duration(0)
	for i := len(o.samples) - 1; i > 0 && time.Since(o.samples[i].at) < 5*time.Second; i-- {
		stall = max(stall, o.samples[i].at.Sub(o.samples[i-1].at)-sampleEvery)
	}
	from := time.Now().Add(-newsWithin - 10*stall)
	i := slices.IndexFunc(o.samples, func(s sample) bool { return s.at.After(from) })
	if i < 0 {
		return nil
	}
	return slices.Clone(o.samples[max(i-1, 0):])
}

// check compares the status with the kernel's word.
func (o *oracle) check() {
	o.t.Helper()
	l := o.status()
	o.look() // the status may know what came after the last sample
	seen := o.window()
	for i, k := range l.Links {
		if status.Old(k.Age) {
			continue // and is shown so
		}
		if k.State == status.LinkUnknown && o.starts(o.links[i]) {
			continue
		}
		var was []status.LinkState
		for _, s := range seen {
			if len(was) == 0 || was[len(was)-1] != s.links[i] {
				was = append(was, s.links[i])
			}
		}
		// Between up and down the ends differ, for less than the time between samples.
		between := k.State == status.LinkDegraded && slices.Contains(was, status.LinkUp) && slices.Contains(was, status.LinkDown)
		if !slices.Contains(was, k.State) && !between {
			o.t.Errorf("%s link %d is %s (%s, age %.1f s); by the kernel it was %v", time.Now().Format("05.000"), k.ID, k.State, k.Reason, k.Age, was)
		}
	}
	ready, all := l.Ready()
	up, links := l.LinksUp()
	if whole := ready == all && up == links; all != len(o.nodes) || links != len(o.links) || whole != (l.State == status.LabReady) {
		o.t.Errorf("the lab is %s with %d of %d nodes and %d of %d links", l.State, ready, all, up, links)
	}
	for i, n := range o.nodes {
		n.mu.Lock()
		silent := !n.cutAt.IsZero() && time.Since(n.cutAt) > 5*time.Second+2*api.BeatStatus+newsWithin
		state, running := l.Nodes[i].State, n.running
		n.mu.Unlock()
		switch {
		case running == (state == status.StateStopped):
			o.t.Errorf("%s is %s, and runs: %v", n.p.name, state, running)
		case running && silent && state != status.StateDegraded:
			o.t.Errorf("%s is %s, and has been cut off for long", n.p.name, state)
		}
	}
}

// starts reports whether an end's sidecar has not answered yet.
func (o *oracle) starts(l *oracleLink) bool {
	for _, e := range l.ends {
		e.node.mu.Lock()
		waits := e.node.running && e.node.answer == nil
		e.node.mu.Unlock()
		if waits {
			return true
		}
	}
	return false
}
