//go:build linux

package wire

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
)

// Status returns the observed state of the fabric. The wires are sorted by id.
func (f *Fabric) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Pod: f.opt.Pod, Epoch: f.eng.Epoch, Mode: "open", UnderlayMTU: f.eng.Limit, Segmentation: f.udp.Segments(), Dropped: f.drops.Report(), Wires: []WireStatus{}}
	switch {
	case f.opt.Encrypt:
		s.Mode = "encrypted"
	case f.eng.Keyed:
		s.Mode = "authenticated"
	}
	if n := f.udp.Overruns(); n > 0 {
		if s.Dropped == nil {
			s.Dropped = map[string]uint64{}
		}
		s.Dropped[drop.Kernel.String()] = uint64(n)
	}
	for _, w := range f.wires {
		s.Wires = append(s.Wires, f.wireStatus(w))
	}
	slices.SortFunc(s.Wires, func(a, b WireStatus) int { return cmp.Compare(a.ID, b.ID) })
	s.Clock = f.clock()
	return s
}

// clock compares the clocks of the peers that share wires with this Pod.
func (f *Fabric) clock() *Clock {
	c := &Clock{Base: time.Now().UnixNano() - int64(f.now())}
	for name, p := range f.eng.Peers {
		if p.Cur != nil && len(p.Wires) > 0 && p.Cur.AheadError > 0 {
			c.Peers = append(c.Peers, PeerClock{Pod: name, Epoch: p.Cur.Epoch, Ahead: int64(p.Cur.Ahead), Error: int64(p.Cur.AheadError)})
		}
	}
	slices.SortFunc(c.Peers, func(a, b PeerClock) int { return cmp.Compare(a.Pod, b.Pod) })
	return c
}

// kept reports whether an earlier process left the device with a carrier, and this one has
// not decided yet.
func (w *wireEnd) kept() bool {
	l := w.legs[0]
	return !w.local() && l.keep && l.index != 0 && l.admin && l.observed && l.device
}

func (f *Fabric) wireStatus(w *wireEnd) WireStatus {
	if sock := w.legs[0].sock; sock != nil {
		w.Drops.AddN(drop.Overrun, int(sock.Overruns()))
	}
	l := w.legs[0]
	s := WireStatus{ID: w.ID, PeerPod: w.want.PeerPod, Leg: w.want.Leg, LocalLeg: w.want.LocalLeg, Up: w.up || w.kept(), Reason: w.reason, Since: w.since,
		LocalCarrier: l.observed && l.device, Datapath: DatapathUDP,
		TxFrames: w.TxFrames.Load(), TxBytes: w.TxBytes.Load(), RxFrames: w.RxFrames.Load(), RxBytes: w.RxBytes.Load(), Drops: w.Drops.Report()}
	if w.want.Impairment.Any() {
		s.Impairment = w.want.Impairment
	}
	if w.want.ReverseImpairment.Any() {
		s.ReverseImpairment = w.want.ReverseImpairment
	}
	if w.local() {
		s.Datapath, s.RemoteCarrier = DatapathLocal, w.legs[1].observed && w.legs[1].device
		return s
	}
	s.Why = f.why(w)
	for i := range w.paths {
		if w.paths[i].sending {
			s.Datapath = f.datapaths[i].name
		}
	}
	p := f.eng.Peers[w.want.PeerPod]
	if p == nil || p.Cur == nil {
		return s
	}
	bits := p.Remote[w.ID]
	s.RemoteCarrier, s.RemoteDatapath = bits&proto.BeatUp != 0, DatapathUDP
	for _, d := range f.datapaths {
		if bits&d.sending != 0 {
			s.RemoteDatapath = d.name
		}
	}
	addr := *p.Cur.Addr.Load()
	s.Peer, s.PeerEpoch, s.PathMTU = netip.AddrPortFrom(addr.Addr(), addr.Port()).String(), p.Cur.Epoch, p.Cur.MTU.Current
	s.RTT, s.Loss = float64(p.Cur.RTT)/float64(time.Millisecond), p.Cur.Loss
	return s
}
