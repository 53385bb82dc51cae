//go:build linux

package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/udp"
)

// settleTime is how long legs stay as they are after the start, or after a wire was
// added, while peers are found.
const settleTime = time.Second

// Fabric keeps the wires of one Pod.
type Fabric struct {
	opt Options
	ns  namespace
	// device is the devices' namespace, and deviceID the number by which ns knows it.
	device   namespace
	deviceID int
	udp      *udp.Path
	// datapaths are the others, the preferred first.
	datapaths []offer
	base      time.Time
	stop      *stopper
	poll      *datapath.Poller
	ctx       context.Context
	abort     context.CancelFunc

	batches datapath.Pool // of legs
	drops   drop.Counters
	// rxMu is held while received frames are written to legs, and while a leg's socket
	// is closed.
	rxMu sync.Mutex

	mu     sync.Mutex
	eng    proto.Engine
	wires  map[contract.WireID]*wireEnd
	old    []*wireEnd // to be taken apart
	shrink bool       // the kernel refused a datagram as too big
	// lab are the Pods that may open a session. kept are those to keep a session with
	// even without wires. callers have opened one, with the time of their last session.
	lab, kept map[string]bool
	callers   map[string]time.Duration
	// linkNews counts the messages that linkLoop has processed.
	linkNews uint64

	kernel  chan struct{} // the kernel worker has something to do
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
	if opt.Epoch == 0 {
		opt.Epoch = uint64(time.Now().UnixNano())
	}
	if opt.Encrypt && len(opt.Key) == 0 {
		return nil, errors.New("encrypting the wire needs a key")
	}
	if n := max(len(opt.Lab), len(opt.Pod)); n > 255 {
		return nil, errors.New("names of a lab or a Pod have at most 255 bytes")
	}
	f := &Fabric{opt: opt, base: time.Now(), batches: datapath.NewPool(), wires: map[contract.WireID]*wireEnd{}, callers: map[string]time.Duration{},
		kernel: make(chan struct{}, 1), ticks: make(chan struct{}, 1), resolve: make(chan struct{}, 1), changes: make(chan struct{}, 1)}
	f.ctx, f.abort = context.WithCancel(context.Background())
	var err error
	if f.ns, err = currentNamespace(); err != nil {
		return nil, err
	}
	f.datapaths = datapaths(opt, f.ns.fd)
	if err := f.findDevice(); err != nil {
		return nil, err
	}
	if f.stop, err = newStopper(); err != nil {
		return nil, err
	}
	if f.udp, err = udp.Open(udp.Config{Port: opt.Port, Offload: !opt.noOffload && !opt.noSegment, Log: opt.Log, Drops: &f.drops, Legs: &f.rxMu,
		Now: f.now, Control: f.control, TooBig: f.tooBig}); err != nil {
		return nil, err
	}
	if f.poll, err = datapath.NewPoller(f.stop.fd); err != nil {
		return nil, err
	}
	var caps uint32
	if opt.Encrypt {
		caps |= proto.CapEncrypt
	}
	f.eng = proto.Engine{Lab: opt.Lab, Pod: opt.Pod, Port: uint16(opt.Port), Keys: proto.DeriveKeys(opt.Key, opt.Lab), Keyed: len(opt.Key) > 0,
		Caps: caps, Epoch: opt.Epoch, Phase: time.Duration(f.base.UnixNano()) % proto.BeatEvery, Limit: f.underlayMTU(), Now: f.now, Drops: &f.drops,
		Send: f.udp.Send, Bits: f.beatBits, Changed: f.peerChanged, Called: f.called, Moved: func(*proto.Peer) { poke(f.resolve) }}
	if opt.AskPort != 0 {
		f.eng.Ask = f.ask
	}
	f.eng.Init()
	if err := f.udp.Admit(f.eng.Keys.Tag, f.eng.Prefix); err != nil {
		opt.Log.Warn("strangers' datagrams are dropped here rather than in the kernel", "error", err)
	}
	return f, nil
}

func (f *Fabric) now() time.Duration { return time.Since(f.base) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run keeps the wires until ctx ends. Call Set first, so that peers learn of all wires at
// once. When Run returns, the legs stay as they are.
func (f *Fabric) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, f.end)()
	failed := make(chan error, 1)
	for _, o := range f.datapaths {
		if s, ok := o.Datapath.(datapath.Service); ok {
			if err := s.Start(); err != nil {
				f.opt.Log.Warn("a datapath cannot be used", "datapath", o.name, "error", err)
			}
		}
	}
	if err := f.udp.Start(f.poll); err != nil {
		return err
	}
	for range max(2, min(4, runtime.NumCPU())) {
		f.running.Go(func() { f.poll.Run(f.newMover()) })
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

// Leave notifies all peers that there are no wires to them: they cannot distinguish a
// process that continues with another key from one without processor time. Call it before
// Close.
func (f *Fabric) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.eng.Peers {
		f.eng.Leave(p)
	}
}

// Close ends Run and releases everything but the state of the legs.
func (f *Fabric) Close() error {
	f.closed.Do(func() {
		f.end()
		f.running.Wait()
		for _, o := range f.datapaths {
			if s, ok := o.Datapath.(datapath.Service); ok {
				if err := s.Close(); err != nil {
					f.opt.Log.Debug("a datapath does not end", "datapath", o.name, "error", err)
				}
			}
		}
		f.poll.Close()
		f.batches.Close()
		f.udp.Close()
		f.stop.close()
		f.ns.close()
		if f.device.fd != 0 {
			f.device.close()
		}
	})
	return nil
}

// Changes receives a value when the state of a wire or peer changes.
func (f *Fabric) Changes() <-chan struct{} { return f.changes }

// PeersChanged asks the resolver again at once.
func (f *Fabric) PeersChanged() { poke(f.resolve) }

// Set sets the desired wires. Unchanged wires are left alone. Set returns before the
// kernel is up to date.
func (f *Fabric) Set(wires []Wire) error {
	if err := check(wires, f.datapaths); err != nil {
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
			w = f.newEnd(want)
			f.wires[want.ID] = w
		}
		w.legs[0].moveTo(want.LegIndex)
		w.legs[1].moveTo(want.LocalIndex)
		before := w.cut()
		if w.want = want; w.cut() != before {
			f.legChanged(w)
		}
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
	delete(f.wires, w.ID)
	w.gone = true
	f.old = append(f.old, w)
}

// updatePeers sets the engine's peers: the Pods that share wires with this one, and those
// of the mesh.
func (f *Fabric) updatePeers() {
	peers := map[string][]contract.WireID{}
	for id, w := range f.wires {
		if !w.local() {
			peers[w.want.PeerPod] = append(peers[w.want.PeerPod], id)
		}
	}
	f.meshPeers(peers)
	f.eng.SetPeers(peers)
	for name, p := range f.eng.Peers {
		f.eng.SetPassive(p, len(p.Wires) == 0 && !f.kept[name])
	}
	f.publish()
}

// publish passes the sessions and their wires to udp.
func (f *Fabric) publish() {
	table := make(map[uint32]*udp.Session, len(f.eng.Sessions))
	for id, s := range f.eng.Sessions {
		wires := make(map[uint32]*udp.Wire, len(s.Peer.Wires))
		for _, id := range s.Peer.Wires {
			if w := f.wires[id]; w != nil {
				wires[uint32(id)] = &w.udp
			}
		}
		table[id] = &udp.Session{Session: s, Wires: wires}
	}
	f.udp.Publish(table)
	for _, w := range f.wires {
		var s *proto.Session
		if p := f.eng.Peers[w.want.PeerPod]; p != nil && !w.local() {
			s = p.Cur
		}
		w.udp.Route(s)
	}
}

func (f *Fabric) newMover() *datapath.Mover { return datapath.NewMover(f.udp.NewSender(), &f.rxMu) }

// control passes a control datagram to the engine.
func (f *Fabric) control(from netip.AddrPort, b []byte) {
	if !f.eng.Admits(b) {
		return
	}
	f.mu.Lock()
	f.eng.Receive(from, b)
	f.mu.Unlock()
}

// peerChanged is called by the engine under the lock.
func (f *Fabric) peerChanged(p *proto.Peer) {
	f.publish()
	poke(f.changes)
	if p.Cur == nil {
		poke(f.resolve)
	}
	for _, id := range p.Wires {
		if w := f.wires[id]; w != nil {
			f.decide(w)
		}
	}
	poke(f.ticks)
}

// beatBits returns the bits of a wire in a heartbeat. The caller holds the lock.
func (f *Fabric) beatBits(id contract.WireID) (bits uint8) {
	w := f.wires[id]
	if w == nil {
		return 0
	}
	l := w.legs[0]
	if l.index != 0 && w.carrier(l).reported() {
		bits |= proto.BeatUp
	}
	return bits | f.pathBits(w)
}

// decide computes the desired state of a wire's legs. The caller holds the lock.
func (f *Fabric) decide(w *wireEnd) {
	up, reason := true, ""
	for i, l := range w.legs {
		if l == nil {
			continue
		}
		c := w.carrier(l)
		c.settled = f.now()-w.added > settleTime
		if w.local() {
			o := w.legs[1-i]
			c.session, c.known, c.listed = true, true, true
			c.remote = o.index != 0 && w.carrier(o).reported()
		} else if p := f.eng.Peers[w.want.PeerPod]; p != nil && p.Cur != nil {
			bits, listed := p.Remote[w.ID]
			c.session, c.known, c.listed, c.remote = true, p.Known, listed, bits&proto.BeatUp != 0
		} else if p != nil && p.Refused != "" && c.settled {
			reason = p.Refused
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
	if f.decidePaths(w) {
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

// tickLoop calls the engine when something is due.
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
			f.eng.Remeasure(f.underlayMTU())
		}
		next := f.eng.Tick()
		now := f.now()
		f.forgetCallers(now)
		for _, w := range f.wires {
			if !w.up && w.reason == ReasonStarting || w.reason == reasonNoWire || w.reason == reasonNoState || f.retries(w, now) {
				f.decide(w) // the time to settle may be over
			}
		}
		f.mu.Unlock()
		timer.Reset(max(time.Millisecond, next-now))
	}
}

// tooBig is called by udp when the kernel rejects a datagram for its size: the MTU of the
// underlay became smaller.
func (f *Fabric) tooBig() {
	f.mu.Lock()
	f.shrink = true
	f.mu.Unlock()
	poke(f.ticks)
}
