package podnet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/link"
)

// moment is the sidecar's state at one moment.
type moment struct {
	view
	gate     *gate
	fabric   Fabric
	failed   error
	failedAt time.Time
}

func (s *sidecar) look() moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return moment{view: s.now, gate: s.gate, fabric: s.fabric, failed: s.failed, failedAt: s.when}
}

// orFailed returns the last failure, or a default if there was none.
func (m moment) orFailed(other string) string {
	if m.failed != nil {
		return m.failed.Error()
	}
	return other
}

// startup reports whether devices may start: the interfaces exist and there is nothing to
// wait for.
func (s *sidecar) startup() (bool, string) {
	if s.begins.Load() {
		return true, ""
	}
	ok, why := s.startupNow()
	if ok {
		// What has begun stays so: a stage that is over does not come back.
		s.begins.Store(true)
	}
	return ok, why
}

func (s *sidecar) startupNow() (bool, string) {
	v := s.look()
	switch {
	case !v.applied || v.gate == nil:
		return false, v.orFailed("links.json has not been applied yet")
	case !v.mgmtMade:
		return false, v.complaint
	case v.fabric == nil:
		return false, v.orFailed("the wires have not started")
	}
	open, linksOpen, waiting := v.gate.state()
	if !open {
		return false, waiting
	}
	// Interfaces that wait for other nodes do not hold the device.
	if linksOpen && !v.complete {
		if v.complaint != "" {
			return false, v.complaint
		}
		return false, "interfaces are being made"
	}
	return true, ""
}

func (s *sidecar) started() bool {
	ok, _ := s.startup()
	return ok
}

// ready is the truth about the links: all are made, and every wire whose both
// ends are up carries frames.
func (s *sidecar) ready() (bool, string) {
	v := s.look()
	switch {
	case !v.applied:
		return false, v.orFailed("links.json has not been applied yet")
	case v.held:
		return false, "interfaces wait for other nodes"
	case v.fabric == nil:
		return false, v.orFailed("the wires have not started")
	case v.doc.Mgmt != nil && !v.mgmtMade:
		return false, v.complaint
	}
	for _, st := range v.states {
		if st.Err != nil {
			return false, st.Err.Error()
		}
	}
	names := map[string]string{}
	for _, st := range v.states {
		names[st.Leg] = st.Key.Node + ":" + st.Key.Name
	}
	for _, w := range v.fabric.Status().Wires {
		if down, why := faulty(w); down {
			return false, fmt.Sprintf("wire %d, %s: %s", w.ID, names[w.Leg], why)
		}
	}
	return true, ""
}

// faulty reports whether a wire should carry frames and does not. An end that its
// device has shut down is no fault, as long as the peer is heard; nor is a link that an
// impairment takes down.
func faulty(w wire.WireStatus) (bool, string) {
	if w.Up {
		return false, ""
	}
	if w.PeerPod != "" && w.PeerEpoch == 0 {
		return true, reason(w, "no session with "+w.PeerPod)
	}
	cut := w.Impairment.Cuts() || w.ReverseImpairment.Cuts()
	if w.LocalCarrier && w.RemoteCarrier && !cut {
		return true, reason(w, "down")
	}
	return false, ""
}

func reason(w wire.WireStatus, other string) string {
	if w.Reason != "" {
		return w.Reason
	}
	return other
}

// live fails only where the loop is stuck.
func (s *sidecar) live() (bool, string) {
	at := s.passAt.Load()
	if at == 0 {
		return true, ""
	}
	if took := time.Since(s.begun) - time.Duration(at); took > stuckAfter {
		return false, fmt.Sprintf("the loop is stuck since %s", took.Round(time.Second))
	}
	return true, ""
}

func (s *sidecar) status() api.Status {
	v := s.look()
	st := api.Status{
		Version: api.Version, Sidecar: s.cfg.Version,
		PodName: s.cfg.PodName, Namespace: s.cfg.Namespace, Worker: s.cfg.NodeName, Addresses: s.cfg.PodIPs,
		Started: s.begun, Restarts: s.boot.Restarts, Links: v.digest, Programs: s.programs(), Interfaces: []api.Interface{},
	}
	st.Startup, st.StartupReason = s.startup()
	st.Ready, st.ReadyReason = s.ready()
	if v.gate != nil {
		st.Boot = v.gate.turn.status()
	}
	if v.failed != nil {
		st.LastError, st.LastErrorAt = v.failed.Error(), v.failedAt
	}
	if v.fabric != nil {
		st.Fabric = v.fabric.Status()
	}
	if v.doc == nil {
		return st
	}
	st.Lab, st.Pod = v.doc.Lab, v.doc.Pod
	if m := v.doc.Mgmt; m != nil {
		st.Mgmt = &api.Mgmt{Interface: m.Interface, IPv4: m.IPv4, IPv6: m.IPv6, Made: v.mgmtMade, Peers: s.peerList()}
	}
	if v.held {
		for i := range v.doc.Interfaces {
			st.Interfaces = append(st.Interfaces, heldInterface(&v.doc.Interfaces[i]))
		}
	}
	for _, i := range v.states {
		st.Interfaces = append(st.Interfaces, madeInterface(i))
	}
	nameFarEnds(st.Interfaces, v.doc.Interfaces)
	s.count(st.Interfaces)
	st.Fabric.Wires = keptWires(st.Fabric.Wires, st.Interfaces)
	return st
}

// keptWires are the wires with those that have not started, or have only just: the device
// keeps the carrier that an earlier process left it.
func keptWires(wires []wire.WireStatus, interfaces []api.Interface) []wire.WireStatus {
	started, carrier := map[contract.WireID]bool{}, map[string]bool{}
	for _, w := range wires {
		started[w.ID] = true
	}
	for _, i := range interfaces {
		if i.Wire == 0 || i.State != api.StateMade {
			continue
		}
		carrier[i.Leg] = i.Carrier
		if i.Kind == "wire" && !started[i.Wire] {
			wires = append(wires, wire.WireStatus{ID: i.Wire, Leg: i.Leg, Reason: wire.ReasonStarting, Datapath: wire.DatapathUDP})
		}
	}
	for n := range wires {
		w := &wires[n]
		w.Up = w.Up || w.Reason == wire.ReasonStarting && carrier[w.Leg]
	}
	return wires
}

// nameFarEnds adds what links.json says of the other ends.
func nameFarEnds(out []api.Interface, want []contract.Interface) {
	type key struct{ node, name string }
	by := map[key]*contract.Interface{}
	for i := range want {
		by[key{want[i].Node, want[i].Name}] = &want[i]
	}
	for i := range out {
		w := by[key{out[i].Node, out[i].Name}]
		switch {
		case w == nil:
		case w.Wire != nil:
			out[i].Wire, out[i].PeerNode, out[i].PeerInterface = w.Wire.ID, w.Wire.PeerNode, w.Wire.PeerInterface
		case w.Local != nil:
			out[i].Wire, out[i].PeerNode, out[i].PeerInterface = w.Local.ID, w.Local.PeerNode, w.Local.PeerInterface
		}
	}
}

func heldInterface(i *contract.Interface) api.Interface {
	return api.Interface{Node: i.Node, Name: i.Name, State: api.StateHeld, MAC: i.MAC, MTU: i.MTU}
}

func madeInterface(i link.State) api.Interface {
	out := api.Interface{
		Node: i.Key.Node, Name: i.Key.Name, Kind: i.Kind, State: api.StateMade, Linux: i.Name, Index: i.Index,
		Up: i.Up, Carrier: i.Carrier, MAC: i.MAC, MTU: i.MTU, Leg: i.Leg,
	}
	switch {
	case i.Err != nil:
		out.State, out.Error = api.StateFailed, i.Err.Error()
	case i.Elsewhere:
		out.State = api.StateElsewhere
	}
	return out
}

func (s *sidecar) peerList() []api.Peer {
	s.mu.Lock()
	peers := s.peers
	s.mu.Unlock()
	if peers == nil {
		return nil
	}
	var all []api.Peer
	for _, e := range peers.Entries() {
		all = append(all, api.Peer{Pod: e.Pod, Address: e.Remote, Up: e.Remote.IsValid(), RTT: float64(e.RTT) / float64(time.Millisecond)})
	}
	slices.SortFunc(all, func(a, b api.Peer) int { return cmp.Compare(a.Pod, b.Pod) })
	return all
}
