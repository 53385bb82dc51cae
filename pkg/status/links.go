package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// LinkState is the state of a link.
type LinkState string

// The states of a link.
const (
	LinkUp       LinkState = "up"       // both ends have carrier
	LinkDegraded LinkState = "degraded" // it is up at one end only
	LinkDown     LinkState = "down"     // an end is down, or its node does not run
	LinkUnknown  LinkState = "unknown"  // no sidecar of its ends answers
)

// fresh is the maximum age of an answer that counts as current.
const fresh = 2 * time.Second

// Link is the state of one link.
type Link struct {
	// ID is the wire's number; 0 for a link that has no far end in the lab.
	ID    lab.WireID `json:"id,omitempty"`
	Kind  string     `json:"kind"`
	A     End        `json:"a"`
	B     End        `json:"b,omitzero"`
	State LinkState  `json:"state"`
	// Up is set if State is LinkUp.
	Up     bool   `json:"up"`
	Reason string `json:"reason,omitempty"`
	// Age is the age of the answers from which State follows, in seconds.
	Age      float64 `json:"ageSeconds,omitempty"`
	Datapath string  `json:"datapath,omitempty"`
	RTT      float64 `json:"rttMs,omitempty"`
	// Drops counts the frames that either end could not carry, without those that an
	// impairment dropped.
	Drops uint64 `json:"drops"`
	// Loss is the share of lost heartbeats, in percent, of the end that lost more.
	Loss float64 `json:"lossPercent,omitempty"`
	// TxBytes is what A sends, RxBytes what A receives.
	TxBytes uint64 `json:"txBytes"`
	RxBytes uint64 `json:"rxBytes"`
}

// End is one end of a link.
type End struct {
	Node      string `json:"node"`
	Interface string `json:"interface"`
	// Known is set if its sidecar answers; otherwise the other fields have no meaning.
	Known   bool   `json:"known"`
	Carrier bool   `json:"carrier"`
	State   string `json:"state,omitempty"`
	Error   string `json:"error,omitempty"`
	// Impairment is applied to the frames that the end sends; nil for none.
	Impairment *contract.Impairment `json:"impairment,omitempty"`
}

// Answer is a sidecar's report about its Pod.
type Answer struct {
	Status api.Status
	// Age is the time since it was last confirmed.
	Age time.Duration
}

// sighting is what a sidecar reports about one end of a link.
type sighting struct {
	in   api.Interface
	wire *wire.WireStatus
	age  time.Duration
}

type endKey struct{ node, name string }

// sightings returns what all sidecars report about their interfaces.
func sightings(sidecars map[string]Answer) map[endKey]sighting {
	out := map[endKey]sighting{}
	for _, a := range sidecars {
		wires := map[lab.WireID]*wire.WireStatus{}
		for i := range a.Status.Fabric.Wires {
			wires[a.Status.Fabric.Wires[i].ID] = &a.Status.Fabric.Wires[i]
		}
		for _, in := range a.Status.Interfaces {
			s := sighting{in: in, age: a.Age}
			if in.Wire != 0 {
				s.wire = wires[in.Wire]
			}
			out[endKey{in.Node, in.Name}] = s
		}
	}
	return out
}

// Links returns the state of every desired link from what sidecars report. Without a list
// of desired links, as for a lab that an older c9s rendered, the reported links are the
// list.
func Links(wanted []contract.TopologyLink, sidecars map[string]Answer) []Link {
	seen := sightings(sidecars)
	if wanted == nil {
		wanted = observed(seen)
	}
	out := make([]Link, 0, len(wanted))
	for _, w := range wanted {
		out = append(out, joined(w, seen))
	}
	return out
}

// Adopt returns the state of every desired link from an earlier report. Without a list of
// desired links, the report is the list.
func Adopt(wanted []contract.TopologyLink, reported []Link) []Link {
	if wanted == nil {
		return reported
	}
	type key struct {
		id   lab.WireID
		a, b endKey
	}
	of := func(l Link) key {
		return key{l.ID, endKey{l.A.Node, l.A.Interface}, endKey{l.B.Node, l.B.Interface}}
	}
	by := map[key]Link{}
	for _, l := range reported {
		by[of(l)] = l
	}
	out := make([]Link, 0, len(wanted))
	for _, w := range wanted {
		l := joined(w, nil)
		if r, ok := by[of(l)]; ok {
			l = r
		} else {
			l.Reason = "it is new and has not been reported yet"
		}
		out = append(out, l)
	}
	return out
}

// observed returns the links that sidecars report.
func observed(seen map[endKey]sighting) []contract.TopologyLink {
	var out []contract.TopologyLink
	ids := map[lab.WireID]bool{}
	keys := make([]endKey, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b endKey) int { return strings.Compare(a.node+"\x00"+a.name, b.node+"\x00"+b.name) })
	for _, k := range keys {
		in := seen[k].in
		if in.Wire != 0 && ids[in.Wire] {
			continue
		}
		ids[in.Wire] = true
		w := contract.TopologyLink{ID: in.Wire, Kind: in.Kind, A: contract.TopologyEnd{Node: in.Node, Interface: in.Name}}
		if in.PeerNode != "" {
			w.B = &contract.TopologyEnd{Node: in.PeerNode, Interface: in.PeerInterface}
		}
		out = append(out, w)
	}
	return out
}

// joined returns the state of one desired link.
func joined(w contract.TopologyLink, seen map[endKey]sighting) Link {
	l := Link{ID: w.ID, Kind: w.Kind}
	var ends []sighting
	look := func(e contract.TopologyEnd) End {
		out := End{Node: e.Node, Interface: e.Interface, Impairment: e.Impairment}
		s, ok := seen[endKey{e.Node, e.Interface}]
		if !ok || s.in.Wire != w.ID { // the sidecar has not applied the current links yet
			return out
		}
		ends = append(ends, s)
		out.Known, out.Carrier, out.State, out.Error = true, s.in.Carrier, s.in.State, s.in.Error
		if s.wire != nil || s.in.Kind == "local" {
			out.Impairment = s.in.Impairment(s.wire)
		}
		return out
	}
	l.A = look(w.A)
	if w.B != nil {
		l.B = look(*w.B)
	}
	l.measure(ends)
	l.State, l.Reason, l.Age = judge(w, ends)
	if by := l.cutBy(); by != "" && !l.Up && l.State != LinkUnknown {
		l.Reason = "taken down at " + by
	}
	l.settle()
	return l
}

// cutBy returns the end whose impairment takes the link down, "" for none.
func (l *Link) cutBy() string {
	for _, e := range []End{l.A, l.B} {
		if e.Impairment.Cuts() {
			return e.Node + ":" + e.Interface
		}
	}
	return ""
}

// measure sets the figures of a link: drops of both ends, the rest from the first end.
func (l *Link) measure(ends []sighting) {
	if l.Kind == "local" {
		l.Datapath = "kernel"
	}
	for i, s := range ends {
		if c := s.in.Counters; i == 0 && c != nil {
			l.TxBytes, l.RxBytes = c.TxBytes, c.RxBytes
			if !l.startsAt(s) {
				l.TxBytes, l.RxBytes = c.RxBytes, c.TxBytes
			}
		}
		if s.wire == nil {
			continue
		}
		l.Loss = max(l.Loss, s.wire.Loss*100)
		for reason, n := range s.wire.Drops {
			if !strings.Contains(reason, "impair") {
				l.Drops += n
			}
		}
		first := i == 0
		if first {
			l.Datapath, l.RTT = s.wire.Datapath, s.wire.RTT
		}
		if first && s.in.Counters == nil { // of an older sidecar
			l.TxBytes, l.RxBytes = s.wire.TxBytes, s.wire.RxBytes
			if !l.startsAt(s) {
				l.TxBytes, l.RxBytes = s.wire.RxBytes, s.wire.TxBytes
			}
		}
	}
}

// startsAt reports whether an end is the link's first.
func (l *Link) startsAt(s sighting) bool { return s.in.Node == l.A.Node && s.in.Name == l.A.Interface }

// judge returns the state of a link, the reason, and the age in seconds of the answers it
// follows from. If one end has a current answer, a stale one of the other end is ignored:
// the first end observes its peer.
func judge(w contract.TopologyLink, ends []sighting) (state LinkState, reason string, age float64) {
	ends = slices.Clone(ends)
	if slices.ContainsFunc(ends, func(s sighting) bool { return s.age <= fresh }) {
		ends = slices.DeleteFunc(ends, func(s sighting) bool { return s.age > fresh })
	}
	if len(ends) == 0 {
		return LinkUnknown, "no sidecar of its ends has answered", 0
	}
	up, reasons := 0, []string{}
	for _, s := range ends {
		age = max(age, s.age.Seconds())
		if ok, why := s.up(w); ok {
			up++
		} else if why != "" {
			reasons = append(reasons, why)
		}
	}
	switch {
	case up == len(ends):
		return LinkUp, "", age
	case len(reasons) > 0:
		reason = reasons[0]
	}
	// A link with an end that is held back or could not be created is down at both ends.
	broken := slices.ContainsFunc(ends, func(s sighting) bool { return s.in.State == api.StateFailed || s.in.State == api.StateHeld })
	if up > 0 && !broken {
		return LinkDegraded, reason, age
	}
	return LinkDown, reason, age
}

// up reports whether the sidecar of an end reports the link up, and if not why.
func (s sighting) up(w contract.TopologyLink) (bool, string) {
	switch {
	case s.in.State == api.StateFailed || s.in.State == api.StateHeld:
		return false, s.in.Error
	case s.wire != nil:
		return s.wire.Up, s.wire.Reason
	case w.Kind == "wire":
		return false, "its wire has not started"
	case w.Kind == "local" && s.in.State == api.StateMade && !s.in.Carrier:
		return false, "one end is shut down"
	}
	return true, ""
}

// settle sets Up, and the reason of an impaired link.
func (l *Link) settle() {
	l.Up = l.State == LinkUp
	if i := l.Impairments(); l.Reason == "" && l.Up && i != "" {
		l.Reason = "impaired: " + i
	}
}

// Impairments describes the impairments of the link, "" for none.
func (l Link) Impairments() string {
	a, b := Impairment(l.A.Impairment), Impairment(l.B.Impairment)
	switch {
	case a == "" && b == "":
		return ""
	case a == b:
		return a
	}
	var parts []string
	if a != "" {
		parts = append(parts, "from "+l.A.Node+" "+a)
	}
	if b != "" {
		parts = append(parts, "from "+l.B.Node+" "+b)
	}
	return strings.Join(parts, "; ")
}

// Impairment describes an impairment, "" for none.
func Impairment(i *contract.Impairment) string {
	if i == nil {
		return ""
	}
	var parts []string
	if i.Down {
		parts = append(parts, "down")
	}
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	for _, p := range []struct {
		name  string
		value float64
		unit  string
	}{
		{"delay", i.DelayMS, "ms"}, {"jitter", i.JitterMS, "ms"}, {"loss", i.Loss, "%"}, {"corruption", i.Corruption, "%"},
		{"duplication", i.Duplication, "%"}, {"reordering", i.Reordering, "%"}, {"rate", float64(i.RateKbit), "kbit/s"},
	} {
		if p.value != 0 {
			parts = append(parts, p.name+" "+number(p.value)+p.unit)
		}
	}
	return strings.Join(parts, " ")
}

// place sets what follows for a link from the states of its nodes: a node without a
// running sidecar has no link that is up, whatever was reported before.
func (l *Link) place(nodes map[string]*Node) {
	for _, e := range []*End{&l.A, &l.B} {
		n := nodes[e.Node]
		if n == nil || !n.State.wireless() {
			continue
		}
		*e = End{Node: e.Node, Interface: e.Interface, Impairment: e.Impairment}
		l.State, l.Age = LinkDown, 0
		l.Reason = fmt.Sprintf("node %s is %s", e.Node, n.State)
		l.RTT = 0
	}
	l.settle()
}

// wireless reports whether a node in this state has no sidecar that maintains its links.
func (s State) wireless() bool {
	switch s {
	case StateStopped, StatePending, StatePulling, StatePreparing, StateTerminating:
		return true
	}
	return false
}
