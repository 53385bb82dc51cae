//go:build linux

package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// The times of the control protocol.
const (
	beatEvery = 250 * time.Millisecond
	// lostAfter is how long a peer may be silent: three heartbeats lost, or two and
	// the third late.
	lostAfter = 800 * time.Millisecond
	// helloFirst is the pace of the first helloFast hellos; then it doubles up to
	// helloMax.
	helloFirst = 100 * time.Millisecond
	helloMax   = time.Second
	helloFast  = 10
	// glareWait is how long the Pod whose name sorts first insists on its own
	// handshake after a proof that it can succeed.
	glareWait = 300 * time.Millisecond
	// cookieTurn is how long a cookie's secret is good, once over.
	cookieTurn = 10 * time.Second
)

// The times after which a change is told again, in case that a heartbeat is lost.
var urgentRepeats = []time.Duration{10 * time.Millisecond, 40 * time.Millisecond}

// engine is the control protocol without sockets: sessions, handshakes,
// heartbeats, path MTU. All methods are called under one lock. Times are since
// any fixed moment.
type engine struct {
	lab, pod string
	port     uint16
	keys     labKeys
	keyed    bool
	caps     uint32
	epoch    uint64
	limit    int // greatest IP packet of the underlay

	now  func() time.Duration
	send func(to netip.AddrPort, b []byte)
	// bits is what this end says of a wire in a heartbeat.
	bits func(contract.WireID) uint8
	// changed is called when a peer's session, address, path MTU or wires are not
	// what they were.
	changed func(*peer)
	// moved is called for a hello of a peer from an address that the resolver did
	// not give, in open mode.
	moved func(*peer)
	// called makes a Pod that says hello a peer, or returns nil; nil for never.
	called func(pod string) *peer
	// ask finds out whether a session's silent peer is there, and calls answered; nil
	// for never.
	ask   func(*session)
	drops *dropCounters

	peers    map[string]*peer
	sessions map[uint32]*session
	attempts uint32
	secret   [32]byte
	prefix   uint16 // of our sessions' numbers, never 0
	// phase puts the heartbeats of all Pods on the wall clock's multiples of
	// beatEvery: those of a Pod's peers come together and wake it once.
	phase    time.Duration
	nextBeat time.Duration
	lastTick time.Duration
	// strangers bound hellos from addresses that are no peer's, by the address.
	strangers [strangerBuckets]bucket
}

func (e *engine) init() {
	e.peers, e.sessions = map[string]*peer{}, map[uint32]*session{}
	rand.Read(e.secret[:])
	e.prefix = binary.BigEndian.Uint16(e.secret[:2])
	rand.Read(e.secret[:2])
	e.prefix = max(e.prefix, 1)
}

// setPeers says with whom there are wires. Sessions of others end, and they hear of it.
func (e *engine) setPeers(wires map[string][]contract.WireID) {
	for name, p := range e.peers {
		if _, ok := wires[name]; !ok {
			e.leave(p)
			e.drop(p)
			delete(e.peers, name)
		}
	}
	for name, ids := range wires {
		p := e.peers[name]
		if p == nil {
			p = &peer{name: name}
			e.peers[name] = p
		}
		ids = slices.Sorted(slices.Values(ids))
		if !slices.Equal(p.wires, ids) {
			p.wires = ids
			e.urgent(p)
		}
	}
}

// setPassive says that a peer is only answered. One that no longer is so is tried at
// once.
func (e *engine) setPassive(p *peer, passive bool) {
	if p.passive && !passive {
		p.tries, p.backoff, p.nextTry = 0, 0, e.now()
	}
	p.passive = passive
}

// leave tells a peer that there are no wires to it.
func (e *engine) leave(p *peer) {
	if p.cur != nil {
		p.wires = nil
		e.beat(p.cur, e.now())
	}
}

// setAddrs takes what the resolver says of a peer; a new address is tried at once.
func (e *engine) setAddrs(p *peer, addrs []netip.Addr) {
	if slices.Equal(p.addrs, addrs) {
		return
	}
	p.addrs = addrs
	p.tries, p.backoff, p.nextTry = 0, 0, e.now()
}

// urgent tells the peer the state of the wires now, and twice again.
func (e *engine) urgent(p *peer) {
	if p.cur == nil {
		return
	}
	now := e.now()
	e.beat(p.cur, now)
	p.repeats = p.repeats[:0]
	for _, d := range urgentRepeats {
		p.repeats = append(p.repeats, now+d)
	}
}

// receive takes a control datagram. b is not kept.
func (e *engine) receive(from netip.AddrPort, b []byte) {
	if len(b) < prefixLen || b[0]>>4 != protoVersion {
		e.drops.add(dropMalformed)
		return
	}
	switch t := msgType(b[0] & 0xf); t {
	case msgHello, msgChallenge, msgWelcome:
		if binary.BigEndian.Uint64(b[8:]) != e.keys.tag {
			e.drops.add(dropStranger)
			return
		}
		e.handshake(from, b)
	case msgHeartbeat, msgProbe, msgProbeAck:
		s := e.sessions[binary.BigEndian.Uint32(b[4:])]
		if s == nil {
			e.drops.add(dropSession)
			return
		}
		if !e.keyed && *s.addr.Load() != from {
			e.drops.add(dropAddress)
			return
		}
		e.control(s, from, t, b)
	default:
		e.drops.add(dropMalformed)
	}
}

func (e *engine) control(s *session, from netip.AddrPort, t msgType, b []byte) {
	seq := binary.BigEndian.Uint64(b[8:])
	if s.window.seen(seq) {
		e.drops.add(dropReplay)
		return
	}
	now := e.now()
	changed := false
	switch t {
	case msgHeartbeat:
		h, err := parseHeartbeat(b, s.rx.mac)
		if err != nil {
			e.drops.add(dropForged)
			return
		}
		s.heartbeat(h, now)
		changed = s.peer.take(h)
	default:
		pr, err := parseProbe(b, s.rx.mac)
		if err != nil {
			e.drops.add(dropForged)
			return
		}
		if t == msgProbe {
			ack := probe{kind: msgProbeAck, session: s.remoteID, seq: s.nextSeq(), size: pr.size}
			e.send(from, ack.marshal(s.tx.mac, 0))
		} else {
			changed = s.mtu.answered(int(pr.size))
		}
	}
	s.window.accept(seq)
	s.heard = now
	if !s.proven {
		s.proven, changed = true, true
	}
	// Only what is newer than all before moves the address: an old datagram that
	// is kept back and sent from elsewhere does not.
	if *s.addr.Load() != from && s.window.top == seq {
		s.addr.Store(&from)
		s.peer.last = from
		s.mtu = newProber(e.limit, now)
		e.probeStart(s, now)
		changed = true
	}
	if changed {
		e.changed(s.peer)
	}
}

// tick does what is due and returns when to be called again.
func (e *engine) tick() time.Duration {
	now := e.now()
	// A process that did not run for a while heard nobody in that time: what
	// waits in the socket is read first.
	late := e.lastTick != 0 && now-e.lastTick > 2*beatEvery
	e.lastTick = now
	beat := now >= e.nextBeat
	if beat {
		e.nextBeat = now + beatEvery - (now+e.phase)%beatEvery
	}
	due := e.nextBeat
	for _, p := range e.peers {
		due = min(due, e.tickPeer(p, now, beat, late))
	}
	return due
}

func (e *engine) tickPeer(p *peer, now time.Duration, beat, late bool) time.Duration {
	s := p.cur
	if s == nil && p.passive {
		return now + callerPatience
	}
	if s == nil {
		if now >= p.nextTry {
			e.sayHello(p, now)
		}
		return p.nextTry
	}
	if s.heardRaw.Swap(false) && s.proven {
		s.heard = now
	}
	if late {
		s.heard = max(s.heard, now-lostAfter+beatEvery)
	}
	silence := now - s.heard
	lost := now-max(s.heard, s.there) > lostAfter
	if e.ask != nil { // not before there was time to ask
		lost = lost && s.asked > s.heard && !s.asking
	}
	if lost || silence > starvedMost {
		e.drop(p)
		e.changed(p)
		p.tries, p.backoff, p.nextTry = 0, 0, now
		return now
	}
	due := min(max(s.heard, s.there)+lostAfter, s.heard+starvedMost) + time.Millisecond
	if e.ask != nil {
		if silence > silentAfter && now >= s.asked+askEvery && !s.asking {
			s.asked, s.asking = now, true
			e.ask(s)
		}
		due = min(max(due, now+time.Millisecond), max(s.heard+silentAfter+time.Millisecond, s.asked+askEvery))
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
	size, changed := s.mtu.next(now)
	if size != 0 {
		e.probe(s, size)
	}
	if changed {
		e.changed(p)
	}
	return min(due, max(s.mtu.due(), now+time.Millisecond))
}

// answered takes what came of asking for a session's peer; without an answer it is
// asked for again, at once.
func (e *engine) answered(s *session, there, known bool) {
	s.asking = false
	switch {
	case there:
		s.there = e.now()
	case !known:
		s.asked = 0
	}
}

// drop ends a peer's session.
func (e *engine) drop(p *peer) {
	if p.cur != nil {
		delete(e.sessions, p.cur.id)
		p.cur = nil
	}
	p.try, p.known, p.partial, p.repeats = nil, false, nil, nil
}

// beat sends the state of all wires of the peer.
func (e *engine) beat(s *session, now time.Duration) {
	wires := s.peer.wires
	parts := max(1, (len(wires)+beatMaxWires-1)/beatMaxWires)
	for part := range parts {
		ids := wires[min(len(wires), part*beatMaxWires):min(len(wires), (part+1)*beatMaxWires)]
		h := heartbeat{session: s.remoteID, seq: s.nextSeq(), sent: uint64(now), received: s.received,
			part: uint8(part), parts: uint8(parts), wires: make([]beatWire, len(ids))}
		if s.echo != 0 {
			h.echo, h.echoDelay = s.echo, uint32((now-s.echoAt)/time.Microsecond)
		}
		for i, id := range ids {
			h.wires[i] = beatWire{id, e.bits(id)}
		}
		s.beats++
		e.send(*s.addr.Load(), h.marshal(s.tx.mac))
	}
}

func (e *engine) probe(s *session, size int) {
	pr := probe{kind: msgProbe, session: s.remoteID, seq: s.nextSeq(), size: uint16(size)}
	e.send(*s.addr.Load(), pr.marshal(s.tx.mac, size-s.ipHeader()-udpHeaderLen))
}

func (e *engine) probeStart(s *session, now time.Duration) {
	for _, size := range s.mtu.start(now) {
		e.probe(s, size)
	}
}

// digest is a fingerprint of wire ids: hellos carry it, so that two Pods with
// different ideas of their wires can tell.
func digest(ids []contract.WireID) uint64 {
	h := sha256.New()
	for _, id := range ids {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(id))
		h.Write(b[:])
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// tagged tells whether a hello has the lab's tag; it needs no lock.
func (e *engine) tagged(b []byte) bool { return binary.BigEndian.Uint64(b[8:]) == e.keys.tag }
