//go:build linux

package proto

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
)

// The times of the control protocol.
const (
	BeatEvery = 250 * time.Millisecond
	// LostAfter is how long a peer may be silent: three lost heartbeats, or two and
	// a late third.
	LostAfter = 800 * time.Millisecond
	// helloFirst is the pace of the first helloFast hellos; then it doubles up to
	// helloMax.
	helloFirst = 100 * time.Millisecond
	helloMax   = time.Second
	helloFast  = 10
	// glareWait is how long the Pod whose name sorts first insists on its own
	// handshake after a proof that it can succeed.
	glareWait = 300 * time.Millisecond
	// cookieTurn is the period of the cookies. A cookie is valid in its period and the next.
	cookieTurn = 10 * time.Second
	// SilentAfter is when a peer is asked for: two heartbeats are missing.
	SilentAfter = 2*BeatEvery + BeatEvery/4
	askEvery    = 2 * BeatEvery
	// starvedMost is how long a peer may be silent whose kernel still answers.
	starvedMost = 10 * time.Second
	// CallerPatience is how long a Pod that called is remembered without a session.
	CallerPatience = 5 * time.Second
)

// A change is sent again after these times, in case a heartbeat is lost.
var urgentRepeats = []time.Duration{10 * time.Millisecond, 40 * time.Millisecond}

// Engine is the control protocol without sockets: sessions, handshakes,
// heartbeats, path MTU. The caller holds one lock for all methods. Times count from any
// fixed moment.
type Engine struct {
	Lab, Pod string
	Port     uint16
	Keys     Keys
	Keyed    bool
	Caps     uint32
	Epoch    uint64
	Limit    int // greatest IP packet of the underlay

	Now  func() time.Duration
	Send func(to netip.AddrPort, b []byte)
	// Bits returns what this end reports of a wire in a heartbeat.
	Bits func(contract.WireID) uint8
	// Changed is called when a peer's session, address, path MTU or wires change.
	Changed func(*Peer)
	// Moved is called for a hello of a peer from an address that the resolver did
	// not give, in open mode.
	Moved func(*Peer)
	// Called makes a Pod that sends a hello a peer, or returns nil. nil: never.
	Called func(pod string) *Peer
	// Ask finds out whether the process of a silent peer still exists, and calls
	// Answered. nil: never.
	Ask   func(*Session)
	Drops *drop.Counters

	Peers    map[string]*Peer
	Sessions map[uint32]*Session
	attempts uint32
	secret   [32]byte
	Prefix   uint16 // of our sessions' numbers, never 0
	// Phase puts the heartbeats of all Pods on the wall clock's multiples of
	// beatEvery: those of a Pod's peers come together and wake it once.
	Phase    time.Duration
	nextBeat time.Duration
	lastTick time.Duration
	// strangers limit hellos from addresses of no peer, by address.
	strangers [strangerBuckets]bucket
}

// Init completes an Engine whose fields are set.
func (e *Engine) Init() {
	e.Peers, e.Sessions = map[string]*Peer{}, map[uint32]*Session{}
	rand.Read(e.secret[:])
	e.Prefix = binary.BigEndian.Uint16(e.secret[:2])
	rand.Read(e.secret[:2])
	e.Prefix = max(e.Prefix, 1)
}

// SetPeers says with whom there are wires. Sessions with others end, and those peers are notified.
func (e *Engine) SetPeers(wires map[string][]contract.WireID) {
	for name, p := range e.Peers {
		if _, ok := wires[name]; !ok {
			e.Leave(p)
			e.drop(p)
			delete(e.Peers, name)
		}
	}
	for name, ids := range wires {
		p := e.Peers[name]
		if p == nil {
			p = &Peer{name: name}
			e.Peers[name] = p
		}
		ids = slices.Sorted(slices.Values(ids))
		if !slices.Equal(p.Wires, ids) {
			p.Wires = ids
			e.Urgent(p)
		}
	}
}

// SetPassive sets whether this end only answers the peer. If it no longer does, it tries
// at once.
func (e *Engine) SetPassive(p *Peer, passive bool) {
	if p.passive && !passive {
		p.tries, p.backoff, p.nextTry = 0, 0, e.Now()
	}
	p.passive = passive
}

// Leave notifies a peer that there are no wires to it.
func (e *Engine) Leave(p *Peer) {
	if p.Cur != nil {
		p.Wires = nil
		e.beat(p.Cur, e.Now())
	}
}

// SetAddrs sets the addresses that the resolver returned for a peer. A new address is
// tried at once.
func (e *Engine) SetAddrs(p *Peer, addrs []netip.Addr) {
	if slices.Equal(p.addrs, addrs) {
		return
	}
	p.addrs = addrs
	p.tries, p.backoff, p.nextTry = 0, 0, e.Now()
}

// Urgent sends the peer the state of the wires now, and twice more.
func (e *Engine) Urgent(p *Peer) {
	if p.Cur == nil {
		return
	}
	now := e.Now()
	e.beat(p.Cur, now)
	p.repeats = p.repeats[:0]
	for _, d := range urgentRepeats {
		p.repeats = append(p.repeats, now+d)
	}
}

// Receive processes a control datagram. It does not keep b.
func (e *Engine) Receive(from netip.AddrPort, b []byte) {
	if len(b) < PrefixLen || b[0]>>4 != ProtoVersion {
		e.Drops.Add(drop.Malformed)
		return
	}
	switch t := MsgType(b[0] & 0xf); t {
	case MsgHello, msgChallenge, msgWelcome:
		if binary.BigEndian.Uint64(b[8:]) != e.Keys.Tag {
			e.Drops.Add(drop.Stranger)
			return
		}
		e.handshake(from, b)
	case MsgHeartbeat, msgProbe, MsgProbeAck:
		s := e.Sessions[binary.BigEndian.Uint32(b[4:])]
		if s == nil {
			e.Drops.Add(drop.NoSession)
			return
		}
		if !e.Keyed && *s.Addr.Load() != from {
			e.Drops.Add(drop.Address)
			return
		}
		e.control(s, from, t, b)
	default:
		e.Drops.Add(drop.Malformed)
	}
}

func (e *Engine) control(s *Session, from netip.AddrPort, t MsgType, b []byte) {
	seq := binary.BigEndian.Uint64(b[8:])
	if s.window.Seen(seq) {
		e.Drops.Add(drop.Replay)
		return
	}
	now := e.Now()
	changed := false
	switch t {
	case MsgHeartbeat:
		h, err := parseHeartbeat(b, s.RX.mac)
		if err != nil {
			e.Drops.Add(drop.Forged)
			return
		}
		s.heartbeat(h, now)
		changed = s.Peer.take(h)
	default:
		pr, err := parseProbe(b, s.RX.mac)
		if err != nil {
			e.Drops.Add(drop.Forged)
			return
		}
		if t == msgProbe {
			ack := probe{kind: MsgProbeAck, session: s.RemoteID, seq: s.nextSeq(), size: pr.size}
			e.Send(from, ack.marshal(s.TX.mac, 0))
		} else {
			changed = s.MTU.answered(int(pr.size))
		}
	}
	s.window.Accept(seq)
	s.heard = now
	if !s.Proven {
		s.Proven, changed = true, true
	}
	// Only the newest datagram moves the address: an old one that somebody held back
	// and sends from elsewhere does not.
	if *s.Addr.Load() != from && s.window.top == seq {
		s.Addr.Store(&from)
		s.Peer.last = from
		s.MTU = newProber(e.Limit, now)
		e.probeStart(s, now)
		changed = true
	}
	if changed {
		e.Changed(s.Peer)
	}
}

// Tick does what is due and returns when to call it again.
func (e *Engine) Tick() time.Duration {
	now := e.Now()
	// A process that did not run for a while received nothing in that time. What
	// waits in the socket is read first.
	late := e.lastTick != 0 && now-e.lastTick > 2*BeatEvery
	e.lastTick = now
	beat := now >= e.nextBeat
	if beat {
		e.nextBeat = now + BeatEvery - (now+e.Phase)%BeatEvery
	}
	due := e.nextBeat
	for _, p := range e.Peers {
		due = min(due, e.tickPeer(p, now, beat, late))
	}
	return due
}

func (e *Engine) tickPeer(p *Peer, now time.Duration, beat, late bool) time.Duration {
	s := p.Cur
	if s == nil && p.passive {
		return now + CallerPatience
	}
	if s == nil {
		if now >= p.nextTry {
			e.sayHello(p, now)
		}
		return p.nextTry
	}
	if s.HeardRaw.Swap(false) && s.Proven {
		s.heard = now
	}
	if late {
		s.heard = max(s.heard, now-LostAfter+BeatEvery)
	}
	silence := now - s.heard
	lost := now-max(s.heard, s.there) > LostAfter
	if e.Ask != nil { // not before there was time to ask
		lost = lost && s.asked > s.heard && !s.asking
	}
	if lost || silence > starvedMost {
		e.drop(p)
		e.Changed(p)
		p.tries, p.backoff, p.nextTry = 0, 0, now
		return now
	}
	due := min(max(s.heard, s.there)+LostAfter, s.heard+starvedMost) + time.Millisecond
	if e.Ask != nil {
		if silence > SilentAfter && now >= s.asked+askEvery && !s.asking {
			s.asked, s.asking = now, true
			e.Ask(s)
		}
		due = min(max(due, now+time.Millisecond), max(s.heard+SilentAfter+time.Millisecond, s.asked+askEvery))
	}
	for len(p.repeats) > 0 && now >= p.repeats[0] {
		p.repeats = p.repeats[1:]
		e.beat(s, now)
		beat = false
	}
	if len(p.repeats) > 0 {
		due = min(due, p.repeats[0])
	}
	if beat {
		e.beat(s, now)
	}
	size, changed := s.MTU.next(now)
	if size != 0 {
		e.probe(s, size)
	}
	if changed {
		e.Changed(p)
	}
	return min(due, max(s.MTU.due(), now+time.Millisecond))
}

// Answered reports the result of Ask. If nothing is known, Ask is called again at once.
func (e *Engine) Answered(s *Session, there, known bool) {
	s.asking = false
	switch {
	case there:
		s.there = e.Now()
	case !known:
		s.asked = 0
	}
}

// drop ends a peer's session.
func (e *Engine) drop(p *Peer) {
	if p.Cur != nil {
		delete(e.Sessions, p.Cur.ID)
		p.Cur = nil
	}
	p.try, p.Known, p.partial, p.repeats = nil, false, nil, nil
}

// beat sends the state of all wires of the peer.
func (e *Engine) beat(s *Session, now time.Duration) {
	wires := s.Peer.Wires
	parts := max(1, (len(wires)+beatMaxWires-1)/beatMaxWires)
	for part := range parts {
		ids := wires[min(len(wires), part*beatMaxWires):min(len(wires), (part+1)*beatMaxWires)]
		h := heartbeat{session: s.RemoteID, seq: s.nextSeq(), sent: uint64(now), received: s.received,
			part: uint8(part), parts: uint8(parts), wires: make([]beatWire, len(ids))}
		if s.echo != 0 {
			h.echo, h.echoDelay = s.echo, uint32((now-s.echoAt)/time.Microsecond)
		}
		for i, id := range ids {
			h.wires[i] = beatWire{id, e.Bits(id)}
		}
		s.beats++
		e.Send(*s.Addr.Load(), h.marshal(s.TX.mac))
	}
}

func (e *Engine) probe(s *Session, size int) {
	pr := probe{kind: msgProbe, session: s.RemoteID, seq: s.nextSeq(), size: uint16(size)}
	e.Send(*s.Addr.Load(), pr.marshal(s.TX.mac, size-s.IPHeader()-UDPHeaderLen))
}

func (e *Engine) probeStart(s *Session, now time.Duration) {
	for _, size := range s.MTU.start(now) {
		e.probe(s, size)
	}
}

// digest is a fingerprint of wire ids. Hellos carry it, so that Pods notice if they
// disagree about their wires.
func digest(ids []contract.WireID) uint64 {
	h := sha256.New()
	for _, id := range ids {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(id))
		h.Write(b[:])
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// Admits reports whether a datagram is no hello, or may be one of the lab. It needs no
// lock.
func (e *Engine) Admits(b []byte) bool {
	if t := MsgType(b[0] & 0xf); t < MsgHello || t > msgWelcome {
		return true
	}
	switch {
	case binary.BigEndian.Uint64(b[8:]) != e.Keys.Tag:
		e.Drops.Add(drop.Stranger)
		return false
	case !wellSized(b):
		e.Drops.Add(drop.Malformed)
		return false
	}
	return true
}

// Remeasure starts the path MTU search again, with limit as the upper bound.
func (e *Engine) Remeasure(limit int) {
	e.Limit = limit
	now := e.Now()
	for _, p := range e.Peers {
		s := p.Cur
		if s == nil {
			continue
		}
		if s.MTU.limit != limit {
			s.MTU = newProber(limit, now)
			e.probeStart(s, now)
		} else {
			s.MTU.tooBig(s.MTU.Current, now)
		}
		e.Changed(p)
	}
}
