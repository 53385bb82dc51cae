//go:build linux

package wire

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Status tells what the fabric does now; the wires are sorted by id.
func (f *Fabric) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Pod: f.opt.Pod, Epoch: f.eng.epoch, Mode: "open", UnderlayMTU: f.eng.limit, Segmentation: f.gso.Load(), Dropped: f.drops.report(), Wires: []WireStatus{}}
	switch {
	case f.opt.Encrypt:
		s.Mode = "encrypted"
	case f.eng.keyed:
		s.Mode = "authenticated"
	}
	if n := f.overrun.Load(); n > 0 {
		if s.Dropped == nil {
			s.Dropped = map[string]uint64{}
		}
		s.Dropped[dropNames[dropKernel]] = uint64(n)
	}
	for _, w := range f.wires {
		s.Wires = append(s.Wires, f.wireStatus(w))
	}
	slices.SortFunc(s.Wires, func(a, b WireStatus) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

// kept reports whether an earlier process left the device its carrier, and this one does
// not know better yet.
func (w *wireEnd) kept() bool {
	l := w.legs[0]
	return !w.local() && l.keep && l.index != 0 && l.admin && l.observed && l.device
}

func (f *Fabric) wireStatus(w *wireEnd) WireStatus {
	if sock := w.legs[0].sock; sock != nil {
		w.drops.addN(dropOverrun, int(sock.overruns()))
	}
	l := w.legs[0]
	s := WireStatus{ID: w.id, PeerPod: w.want.PeerPod, Leg: w.want.Leg, LocalLeg: w.want.LocalLeg, Up: w.up || w.kept(), Reason: w.reason, Since: w.since,
		LocalCarrier: l.observed && l.device, Datapath: DatapathUDP,
		TxFrames: w.txFrames.Load(), TxBytes: w.txBytes.Load(), RxFrames: w.rxFrames.Load(), RxBytes: w.rxBytes.Load(), Drops: w.drops.report()}
	if impairs(w.want.Impairment) {
		s.Impairment = w.want.Impairment
	}
	if w.local() {
		s.Datapath, s.RemoteCarrier = DatapathLocal, w.legs[1].observed && w.legs[1].device
		return s
	}
	if w.vx.sending {
		s.Datapath = DatapathVXLAN
	}
	s.Why = w.vx.reason
	p := f.eng.peers[w.want.PeerPod]
	if p == nil || p.cur == nil {
		return s
	}
	bits := p.remote[w.id]
	s.RemoteCarrier, s.RemoteDatapath = bits&beatUp != 0, DatapathUDP
	if bits&beatSending != 0 {
		s.RemoteDatapath = DatapathVXLAN
	}
	addr := *p.cur.addr.Load()
	s.Peer, s.PeerEpoch, s.PathMTU = netip.AddrPortFrom(addr.Addr(), addr.Port()).String(), p.cur.epoch, p.cur.mtu.current
	s.RTT, s.Loss = float64(p.cur.rtt)/float64(time.Millisecond), p.cur.loss
	return s
}
