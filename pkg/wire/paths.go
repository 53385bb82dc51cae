//go:build linux

package wire

import (
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/vxlan"
)

// offer is a datapath with its name and its bits in a heartbeat, which are part of the
// wire protocol (docs/reference/wire.md).
type offer struct {
	name string
	// ready: the sender wants to send by the datapath and is ready to receive by it.
	// sending: the sender sends by it now.
	ready, sending uint8
	datapath.Datapath
}

// datapaths are the datapaths besides udp, the preferred first.
func datapaths(opt Options) []offer {
	return append(opt.more,
		offer{DatapathVXLAN, proto.BeatVXLAN, proto.BeatSending, vxlan.New(opt.VXLANPort, opt.Log)},
	)
}

// pathState is the state of a datapath at a wire's end.
type pathState struct {
	want   bool
	reason string // why not
	// remote is where the end sends; valid while the end is ready.
	remote  netip.Addr
	leg     int // for which it was made ready
	sending bool
	failed  bool
}

func (s *pathState) ready() bool { return s.remote.IsValid() }

// bits returns the bits of the offer for this state.
func (s *pathState) bits(o *offer) (b uint8) {
	if s.want && s.ready() {
		b |= o.ready
	}
	if s.sending {
		b |= o.sending
	}
	return b
}

// pathBits returns a wire's datapath bits for a heartbeat. The caller holds the lock.
func (f *Fabric) pathBits(w *wireEnd) (b uint8) {
	for i := range w.paths {
		b |= w.paths[i].bits(&f.datapaths[i])
	}
	return b
}

// whyUDP returns why a wire does not take the datapath that the topology names, or the
// preferred one. The caller holds the lock.
func (f *Fabric) whyUDP(w *wireEnd) string {
	for i, o := range f.datapaths {
		if w.want.Datapath == o.name || w.want.Datapath == DatapathAuto || w.want.Datapath == "" {
			return w.paths[i].reason
		}
	}
	return ""
}

// decidePaths computes which datapaths a wire's end wants, and reports whether the kernel
// worker has something to do. The caller holds the lock.
func (f *Fabric) decidePaths(w *wireEnd) (change bool) {
	taken := false
	for i := range w.paths {
		s := &w.paths[i]
		s.want, s.reason = f.pathWanted(w, i)
		if taken {
			s.want, s.reason = false, ""
		}
		taken = taken || s.want
		remote, send := f.pathTarget(w, i)
		change = change || remote != s.remote || send != s.sending || (s.ready() && s.leg != w.legs[0].index)
	}
	return change
}

func (f *Fabric) pathWanted(w *wireEnd, i int) (bool, string) {
	o, s := f.datapaths[i], &w.paths[i]
	chosen := w.want.Datapath == o.name
	p := f.eng.Peers[w.want.PeerPod]
	switch {
	case w.local(), !chosen && w.want.Datapath != "" && w.want.Datapath != DatapathAuto:
		return false, ""
	case p == nil || p.Cur == nil:
		return s.want, s.reason
	}
	why := o.Wanted(datapath.Conditions{Chosen: chosen, MTU: w.want.MTU, PathMTU: p.Cur.MTU.Current, IPHeader: p.Cur.IPHeader(),
		Impaired: w.want.Impairment.Frames(), Encrypted: f.opt.Encrypt, Plain: w.want.Plain})
	if why == "" && s.failed {
		why = "the kernel refused the device"
	}
	return why == "", why
}

// pathTarget returns the desired state of a datapath: the remote, not valid if the end
// should not be ready, and whether this end sends by it. The end stays ready while the far
// end still sends. The caller holds the lock.
func (f *Fabric) pathTarget(w *wireEnd, i int) (remote netip.Addr, send bool) {
	o, s := &f.datapaths[i], &w.paths[i]
	p := f.eng.Peers[w.want.PeerPod]
	if w.gone || w.local() {
		return netip.Addr{}, false
	}
	if p == nil || p.Cur == nil {
		return s.remote, false
	}
	bits := p.Remote[w.ID]
	if s.want || (s.ready() && bits&o.sending != 0) {
		remote = p.Cur.Addr.Load().Addr().Unmap()
	}
	return remote, s.want && s.ready() && s.remote == remote && bits&o.ready != 0
}

// paths brings the datapaths of a wire to their desired state.
func (k *kernelWorker) paths(w *wireEnd) {
	for i := range w.paths {
		k.path(w, i)
	}
}

func (k *kernelWorker) path(w *wireEnd, i int) {
	f, o := k.f, &k.f.datapaths[i]
	f.mu.Lock()
	remote, send := f.pathTarget(w, i)
	now, leg := w.paths[i], w.legs[0].index
	f.mu.Unlock()
	if leg == 0 {
		remote, send = netip.Addr{}, false
	}
	stale := now.ready() && (now.remote != remote || now.leg != leg)
	if now.sending && (!send || stale) {
		now.sending = k.send(w, i, now.leg, false)
	}
	if stale {
		k.removePath(w, i)
		now.remote = netip.Addr{}
	}
	if remote.IsValid() && !now.ready() {
		if err := o.Ensure(w.Leg(leg), remote); err != nil {
			f.opt.Log.Warn("a datapath cannot be used", "datapath", o.name, "wire", w.ID, "error", err)
			k.removePath(w, i)
			f.mu.Lock()
			w.paths[i].failed = true
			f.mu.Unlock()
		} else {
			now.remote, now.leg = remote, leg
			f.mu.Lock()
			_, send = f.pathTarget(w, i)
			f.mu.Unlock()
		}
	}
	if send && now.ready() && !now.sending {
		now.sending = k.send(w, i, leg, true)
	}
	f.mu.Lock()
	s := &w.paths[i]
	before := s.bits(o)
	s.remote, s.leg, s.sending = now.remote, now.leg, now.sending
	if before != s.bits(o) || s.failed {
		f.legChanged(w)
		poke(f.changes)
	}
	f.mu.Unlock()
}

// send moves what the device sends to a datapath or back to udp. In between a frame may
// be lost, but none is sent twice.
func (k *kernelWorker) send(w *wireEnd, i, leg int, on bool) bool {
	d := k.f.datapaths[i].Datapath
	sends := d.Send(w.Leg(leg), on)
	if via, ok := d.(datapath.Carrier); ok {
		if sends {
			w.via.Store(&via)
		} else {
			w.via.Store(nil)
		}
	}
	return sends
}

func (k *kernelWorker) removePaths(w *wireEnd) {
	for i := range w.paths {
		k.removePath(w, i)
	}
}

// removePath deletes what was created for a wire, if anything.
func (k *kernelWorker) removePath(w *wireEnd, i int) {
	k.f.mu.Lock()
	s := &w.paths[i]
	leg := s.leg
	s.remote, s.sending = netip.Addr{}, false
	k.f.mu.Unlock()
	k.f.datapaths[i].Remove(w.Leg(leg))
}

// Leg is the leg with the given index, as the kernel worker sees it.
func (w *wireEnd) Leg(index int) datapath.Leg {
	return datapath.Leg{Wire: w.ID, Index: index, Sock: w.legs[0].sock, End: &w.End}
}
