//go:build linux

package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// settleTime is how long legs stay as they are after the start or after a wire was
// added, until it is known who is there.
const settleTime = time.Second

// Fabric is the wires of one Pod.
type Fabric struct {
	opt Options
	ns  namespace
	// device is the devices' namespace, and deviceID the number by which ns knows it.
	device   namespace
	deviceID int
	sock     *underlaySocket
	base     time.Time
	stop     *stopper
	poll     *poller
	ctx      context.Context
	abort    context.CancelFunc

	batches batchPool // of legs
	inbox   batchPool // of the underlay
	gso     atomic.Bool
	drops   dropCounters
	overrun atomic.Uint32
	table   atomic.Pointer[map[uint32]*session]
	// rxMu is held while received frames are written to legs: a leg's socket is
	// closed only outside of it.
	rxMu sync.Mutex

	mu     sync.Mutex
	eng    engine
	wires  map[contract.WireID]*wireEnd
	old    []*wireEnd // to be taken apart
	shrink bool       // the kernel refused a datagram as too big
	// lab are the Pods that may call, kept those with which there is to be a session
	// without wires, and callers those that have called, with the time when they were
	// last there.
	lab, kept map[string]bool
	callers   map[string]time.Duration
	// linkNews counts what linkLoop has taken.
	linkNews uint64

	kernel  chan struct{} // something is to be done in the kernel
	ticks   chan struct{} // the ticker's time changed
	resolve chan struct{}
	changes chan struct{}
	running sync.WaitGroup
	closed  sync.Once
}

// New opens the wire's socket in the caller's network namespace. Legs are left as
// they are until Run.
func New(opt Options) (*Fabric, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Port == 0 {
		opt.Port = contract.WirePort
	}
	if opt.VXLANPort == 0 {
		opt.VXLANPort = contract.VXLANPort
	}
	if opt.Encrypt && len(opt.Key) == 0 {
		return nil, errors.New("encrypting the wire needs a key")
	}
	if n := max(len(opt.Lab), len(opt.Pod)); n > 255 {
		return nil, errors.New("names of a lab or a Pod have at most 255 bytes")
	}
	f := &Fabric{opt: opt, base: time.Now(), batches: newBatchPool(), inbox: newBatchPool(), wires: map[contract.WireID]*wireEnd{}, callers: map[string]time.Duration{},
		kernel: make(chan struct{}, 1), ticks: make(chan struct{}, 1), resolve: make(chan struct{}, 1), changes: make(chan struct{}, 1)}
	f.ctx, f.abort = context.WithCancel(context.Background())
	var err error
	if f.ns, err = currentNamespace(); err != nil {
		return nil, err
	}
	if err := f.findDevice(); err != nil {
		return nil, err
	}
	if f.stop, err = newStopper(); err != nil {
		return nil, err
	}
	if f.sock, err = openUnderlay(opt.Port, !opt.noOffload && !opt.noSegment); err != nil {
		return nil, err
	}
	if f.poll, err = newPoller(f); err != nil {
		return nil, err
	}
	f.gso.Store(f.sock.gso)
	if opt.Epoch == 0 {
		opt.Epoch = uint64(f.base.UnixNano())
	}
	var caps uint32
	if opt.Encrypt {
		caps |= capEncrypt
	}
	f.eng = engine{lab: opt.Lab, pod: opt.Pod, port: uint16(opt.Port), keys: deriveLab(opt.Key, opt.Lab), keyed: len(opt.Key) > 0,
		caps: caps, epoch: opt.Epoch, phase: time.Duration(f.base.UnixNano()) % beatEvery, limit: f.underlayMTU(), now: f.now, drops: &f.drops,
		send: f.sendControl, bits: f.beatBits, changed: f.peerChanged, called: f.called, moved: func(*peer) { poke(f.resolve) }}
	if opt.AskPort != 0 {
		f.eng.ask = f.ask
	}
	f.eng.init()
	if err := f.sock.admit(f.eng.keys.tag, f.eng.prefix); err != nil {
		opt.Log.Warn("strangers' datagrams are dropped here rather than in the kernel", "error", err)
	}
	f.table.Store(&map[uint32]*session{})
	return f, nil
}

func (f *Fabric) now() time.Duration { return time.Since(f.base) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run keeps the wires until ctx ends. Call Set before it, so that peers hear of
// all wires at once. The legs are left as they are when it returns.
func (f *Fabric) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, f.end)()
	failed := make(chan error, 1)
	if err := f.poll.add(&newReceiver(f).src); err != nil {
		return err
	}
	for range max(2, min(4, runtime.NumCPU())) {
		f.running.Go(f.poll.run)
	}
	f.running.Go(f.tickLoop)
	f.running.Go(f.resolveLoop)
	f.running.Go(func() {
		if err := f.kernelLoop(); err != nil {
			failed <- err
		}
	})
	var err error
	select {
	case err = <-failed:
	case <-f.ctx.Done():
	}
	f.end()
	f.running.Wait()
	return err
}

func (f *Fabric) end() {
	f.abort()
	f.stop.stop()
}

// Leave tells all peers that there are no wires to them: a process that goes on with
// another key cannot be told from one that gets no processor time. It comes before Close.
func (f *Fabric) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.eng.peers {
		f.eng.leave(p)
	}
}

// Close ends Run and gives everything back but the state of the legs.
func (f *Fabric) Close() error {
	f.closed.Do(func() {
		f.end()
		f.running.Wait()
		f.poll.close()
		f.batches.close()
		f.inbox.close()
		f.sock.close()
		f.stop.close()
		f.ns.close()
		if f.device.fd != 0 {
			f.device.close()
		}
	})
	return nil
}

// Changes gets a value when the state of some wire or peer changed.
func (f *Fabric) Changes() <-chan struct{} { return f.changes }

// PeersChanged asks the resolver again, now.
func (f *Fabric) PeersChanged() { poke(f.resolve) }

// Set makes the given wires the desired ones. Those that are unchanged are not
// touched. It returns before the kernel is.
func (f *Fabric) Set(wires []Wire) error {
	if err := check(wires); err != nil {
		return fmt.Errorf("wires: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := map[contract.WireID]bool{}
	for _, want := range wires {
		seen[want.ID] = true
		w := f.wires[want.ID]
		if w != nil && (w.want.PeerPod != want.PeerPod || w.want.LocalLeg != want.LocalLeg || w.want.Leg != want.Leg) {
			f.forget(w)
			w = nil
		}
		if w == nil {
			w = &wireEnd{id: want.ID, added: f.now(), since: time.Now(), reason: ReasonStarting}
			w.legs[0] = &leg{name: want.Leg, index: want.LegIndex, keep: true}
			if want.LocalLeg != "" {
				w.legs[1] = &leg{name: want.LocalLeg, index: want.LocalIndex, keep: true}
			}
			f.wires[want.ID] = w
		}
		w.legs[0].moveTo(want.LegIndex)
		w.legs[1].moveTo(want.LocalIndex)
		w.want = want
	}
	for id, w := range f.wires {
		if !seen[id] {
			f.forget(w)
		}
	}
	f.updatePeers()
	for _, w := range f.wires {
		f.decide(w)
	}
	poke(f.kernel)
	poke(f.ticks)
	poke(f.resolve)
	return nil
}

func (f *Fabric) forget(w *wireEnd) {
	delete(f.wires, w.id)
	w.gone = true
	f.old = append(f.old, w)
}

// updatePeers tells the engine who shares wires with this Pod.
func (f *Fabric) updatePeers() {
	peers := map[string][]contract.WireID{}
	for id, w := range f.wires {
		if !w.local() {
			peers[w.want.PeerPod] = append(peers[w.want.PeerPod], id)
		}
	}
	f.meshPeers(peers)
	f.eng.setPeers(peers)
	for name, p := range f.eng.peers {
		f.eng.setPassive(p, len(p.wires) == 0 && !f.kept[name])
	}
	f.publish()
}

// publish gives the datapath the sessions and, per session, the wires.
func (f *Fabric) publish() {
	table := maps.Clone(f.eng.sessions)
	for _, s := range table {
		wires := make(map[uint32]*wireEnd, len(s.peer.wires))
		for _, id := range s.peer.wires {
			if w := f.wires[id]; w != nil {
				wires[uint32(id)] = w
			}
		}
		s.wires.Store(&wires)
	}
	f.table.Store(&table)
	for _, w := range f.wires {
		f.route(w)
	}
}

// route sets how a wire's frames reach its peer.
func (f *Fabric) route(w *wireEnd) {
	p := f.eng.peers[w.want.PeerPod]
	if w.local() || p == nil || p.cur == nil {
		w.path.Store(nil)
		return
	}
	s := p.cur
	next := &txPath{s: s, raw: toRaw(*s.addr.Load()), fragSize: fragmentSize(s.mtu.current, s.ipHeader(), s.aead)}
	if old := w.path.Load(); old == nil || *old != *next {
		w.path.Store(next)
	}
}

func (f *Fabric) session(id uint32) *session { return (*f.table.Load())[id] }

// wire finds a wire that the session's peer shares with this Pod.
func (s *session) wire(id uint32) *wireEnd {
	m := s.wires.Load()
	if m == nil {
		return nil
	}
	return (*m)[id]
}

// control hands a control datagram to the engine.
func (f *Fabric) control(from netip.AddrPort, b []byte) {
	if t := msgType(b[0] & 0xf); t >= msgHello && t <= msgWelcome {
		if !f.eng.tagged(b) {
			f.drops.add(dropStranger)
			return
		}
		if !wellSized(b) {
			f.drops.add(dropMalformed)
			return
		}
	}
	f.mu.Lock()
	f.eng.receive(from, b)
	f.mu.Unlock()
}

func (f *Fabric) sendControl(to netip.AddrPort, b []byte) {
	if err := f.sock.send(to, b); err != nil {
		f.drops.add(dropQueue)
	}
}

// peerChanged is called by the engine, under the lock.
func (f *Fabric) peerChanged(p *peer) {
	f.publish()
	poke(f.changes)
	if p.cur == nil {
		poke(f.resolve)
	}
	for _, id := range p.wires {
		if w := f.wires[id]; w != nil {
			f.decide(w)
		}
	}
	poke(f.ticks)
}

// beatBits is what the peer hears of a wire, under the lock.
func (f *Fabric) beatBits(id contract.WireID) (bits uint8) {
	w := f.wires[id]
	if w == nil {
		return 0
	}
	l := w.legs[0]
	if l.index != 0 && l.told() {
		bits |= beatUp
	}
	return bits | w.vx.bits()
}

// decide works out the desired state of a wire's legs, under the lock.
func (f *Fabric) decide(w *wireEnd) {
	up, reason := true, ""
	for i, l := range w.legs {
		if l == nil {
			continue
		}
		c := carrier{observed: l.observed, device: l.device, settled: f.now()-w.added > settleTime}
		if w.local() {
			o := w.legs[1-i]
			c.session, c.known, c.listed = true, true, true
			c.remote = o.index != 0 && o.told()
		} else if p := f.eng.peers[w.want.PeerPod]; p != nil && p.cur != nil {
			bits, listed := p.remote[w.id]
			c.session, c.known, c.listed, c.remote = true, p.known, listed, bits&beatUp != 0
		} else if p != nil && p.refused != "" && c.settled {
			reason = p.refused
		}
		var why string
		l.up, l.keep, why = c.leg()
		switch {
		case l.index == 0:
			up, reason = false, reasonNoLeg
		case l.failed != "":
			up, reason = false, l.failed
		case l.sock == nil || l.sockIndex != l.index || !l.admin && why == "":
			up, reason = false, ReasonStarting
		case why != "":
			up = false
			if reason == "" {
				reason = why
			}
		}
		if !l.keep && l.up != l.admin {
			poke(f.kernel)
		}
	}
	if f.vxlanDecide(w) {
		poke(f.kernel)
	}
	if up != w.up || reason != w.reason {
		if up != w.up {
			w.since = time.Now()
		}
		w.up, w.reason = up, reason
		poke(f.changes)
	}
}

// tickLoop runs the engine's times.
func (f *Fabric) tickLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.ticks:
		case <-timer.C:
		}
		f.mu.Lock()
		if f.shrink {
			f.shrink = false
			f.remeasure()
		}
		next := f.eng.tick()
		now := f.now()
		f.forgetCallers(now)
		for _, w := range f.wires {
			if !w.up && w.reason == ReasonStarting || w.reason == reasonNoWire || w.reason == reasonNoState {
				f.decide(w) // the time to settle may be over
			}
		}
		f.mu.Unlock()
		timer.Reset(max(time.Millisecond, next-now))
	}
}

// tooBig is called by the datapath when the kernel refused a datagram for its
// size: the underlay's MTU became smaller.
func (f *Fabric) tooBig() {
	f.mu.Lock()
	f.shrink = true
	f.mu.Unlock()
	poke(f.ticks)
}

// remeasure begins the search for the path MTUs anew.
func (f *Fabric) remeasure() {
	f.eng.limit = f.underlayMTU()
	for _, p := range f.eng.peers {
		s := p.cur
		if s == nil {
			continue
		}
		if s.mtu.limit != f.eng.limit {
			s.mtu = newProber(f.eng.limit, f.now())
			f.eng.probeStart(s, f.now())
		} else {
			s.mtu.tooBig(s.mtu.current, f.now())
		}
		f.peerChanged(p)
	}
}
