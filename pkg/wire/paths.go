//go:build linux

package wire

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/local"
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

// datapaths are the datapaths besides udp, the preferred first. own is the descriptor of the
// fabric's network namespace.
func datapaths(opt Options, own int) []offer {
	return append(opt.more,
		offer{DatapathLocal, proto.BeatLocal, proto.BeatLocalSending, local.New(local.Config{
			Folder: opt.Folder, Namespace: own, Lab: opt.Lab, Pod: opt.Pod, Key: opt.Key, Epoch: opt.Epoch, Log: opt.Log,
		})},
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
	// lostReceive and lostSend are set when an interface is gone by which the wire
	// received or sent.
	lostReceive, lostSend bool
	// clean is set once nothing is left of an earlier process.
	clean   bool
	failure failure
}

// failure is the last failed attempt to make a wire ready, for one process of the peer.
type failure struct {
	why   string
	epoch uint64
	tries int
	again time.Duration
}

// The pause after a failure.
const (
	firstPause   = 2 * time.Second
	longestPause = 5 * time.Minute
)

func (s *pathState) ready() bool { return s.remote.IsValid() }

// bits returns the bits of the offer for this state.
func (s *pathState) bits(o *offer) (b uint8) {
	if s.want && s.ready() && !s.lostReceive {
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

// why returns why a wire takes neither the datapath that the topology names nor one that is
// preferred to its own. The caller holds the lock.
func (f *Fabric) why(w *wireEnd) string {
	var all []string
	for i, o := range f.datapaths {
		s := &w.paths[i]
		switch {
		case w.want.Datapath == o.name:
			return s.reason
		case s.want:
			return strings.Join(all, "; ")
		case s.reason != "":
			all = append(all, "not "+o.name+": "+s.reason)
		}
	}
	return strings.Join(all, "; ")
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
		change = change || remote != s.remote || send != s.sending || (s.ready() && s.leg != w.legs[0].index) ||
			s.lostReceive || s.lostSend || f.leftover(w, i)
	}
	return change
}

// leftover reports whether what an earlier process left for a datapath must be removed: the
// wire does not take it. Before there is a session, frames may still pass by it.
func (f *Fabric) leftover(w *wireEnd, i int) bool {
	s, p := &w.paths[i], f.eng.Peers[w.want.PeerPod]
	return !s.clean && !s.want && !s.ready() && w.legs[0].index != 0 && p != nil && p.Cur != nil
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
	why := o.Wanted(datapath.Conditions{Peer: f.peerOf(w), Chosen: chosen, MTU: w.want.MTU, PathMTU: p.Cur.MTU.Current, IPHeader: p.Cur.IPHeader(),
		Impaired: w.want.Impairment.Frames(), Encrypted: f.opt.Encrypt, Plain: w.want.Plain})
	if why == "" && s.failure.epoch == p.Cur.Epoch && s.failure.again > f.now() {
		why = s.failure.why
	}
	return why == "", why
}

// peerOf returns the process with which a wire's Pod has a session. The caller holds the lock.
func (f *Fabric) peerOf(w *wireEnd) datapath.Peer {
	p := f.eng.Peers[w.want.PeerPod]
	if p == nil || p.Cur == nil {
		return datapath.Peer{}
	}
	return datapath.Peer{Pod: w.want.PeerPod, Epoch: p.Cur.Epoch}
}

// failed records that a wire could not be made ready, and reports whether that is new. The
// caller holds the lock.
func (f *Fabric) failed(s *pathState, epoch uint64, err error) (news bool) {
	news = s.failure.epoch != epoch || s.failure.tries == 0
	if news {
		s.failure = failure{epoch: epoch}
	}
	s.failure.why = err.Error()
	s.failure.again = f.now() + min(longestPause, firstPause<<min(s.failure.tries, 10))
	s.failure.tries++
	return news
}

// retries reports whether a wire that failed may be tried again. The caller holds the lock.
func (f *Fabric) retries(w *wireEnd, now time.Duration) bool {
	for i := range w.paths {
		if s := &w.paths[i]; s.failure.tries > 0 && !s.want && s.reason == s.failure.why && now >= s.failure.again {
			return true
		}
	}
	return false
}

// pathsLost tells the datapaths that interfaces are gone. The caller holds the lock.
func (f *Fabric) pathsLost(gone func(index int) bool) {
	for i, o := range f.datapaths {
		watcher, ok := o.Datapath.(datapath.Watcher)
		if !ok {
			continue
		}
		for _, loss := range watcher.Lost(gone) {
			w := f.wires[loss.Wire]
			if w == nil {
				continue
			}
			s := &w.paths[i]
			s.lostReceive, s.lostSend = s.lostReceive || loss.Receive, s.lostSend || !loss.Receive
			f.legChanged(w)
		}
	}
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

// paths brings the datapaths of a wire to their desired state, and reports whether that
// succeeded. First come those that end to send: they have udp send in their place.
func (k *kernelWorker) paths(w *wireEnd) bool {
	f := k.f
	for i := range w.paths {
		f.mu.Lock()
		_, send := f.pathTarget(w, i)
		ends := w.paths[i].sending && !send
		f.mu.Unlock()
		if ends {
			k.path(w, i)
		}
	}
	ok := true
	for i := range w.paths {
		ok = k.path(w, i) && ok
	}
	return ok
}

func (k *kernelWorker) path(w *wireEnd, i int) bool {
	f, o := k.f, &k.f.datapaths[i]
	f.mu.Lock()
	remote, send := f.pathTarget(w, i)
	peer, leftover := f.peerOf(w), f.leftover(w, i)
	now, leg := w.paths[i], w.legs[0].index
	w.paths[i].lostReceive, w.paths[i].lostSend = false, false
	f.mu.Unlock()
	if leg == 0 {
		remote, send = netip.Addr{}, false
	}
	stale := now.ready() && (now.remote != remote || now.leg != leg || now.lostReceive)
	if now.sending && (!send || stale || now.lostSend) {
		now.sending = k.send(w, i, now.leg, false)
	}
	if stale {
		k.removePath(w, i)
		now.remote = netip.Addr{}
	} else if leftover && !now.ready() {
		o.Remove(w.Leg(leg, peer))
		now.clean = true
	}
	failed := false
	if remote.IsValid() && !now.ready() {
		now.clean = true
		if err := o.Ensure(w.Leg(leg, peer), remote); err != nil {
			f.mu.Lock()
			news := f.failed(&w.paths[i], peer.Epoch, err)
			f.mu.Unlock()
			level := slog.LevelDebug
			if news {
				level = slog.LevelWarn
			}
			f.opt.Log.Log(f.ctx, level, "a datapath cannot be used", "datapath", o.name, "wire", w.ID, "error", err)
			k.removePath(w, i)
			failed, send = true, false
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
	s.remote, s.leg, s.sending, s.clean = now.remote, now.leg, now.sending, now.clean
	if s.ready() {
		s.failure = failure{}
	}
	if before != s.bits(o) || failed {
		f.legChanged(w)
		poke(f.changes)
	}
	f.mu.Unlock()
	_, watches := o.Datapath.(datapath.Watcher)
	return !watches || !send || now.sending // the neighbour may be about to make it again
}

// send moves what the device sends to a datapath or back to udp. In between a frame may
// be lost, but none is sent twice.
func (k *kernelWorker) send(w *wireEnd, i, leg int, on bool) bool {
	d := k.f.datapaths[i].Datapath
	sends := d.Send(w.Leg(leg, datapath.Peer{}), on)
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
	k.f.datapaths[i].Remove(w.Leg(leg, datapath.Peer{}))
}

// Leg is the leg with the given index, as the kernel worker sees it.
func (w *wireEnd) Leg(index int, peer datapath.Peer) datapath.Leg {
	return datapath.Leg{Wire: w.ID, Index: index, Sock: w.legs[0].sock, End: &w.End, Peer: peer}
}
