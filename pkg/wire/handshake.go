//go:build linux

package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"
)

// The handshake:
//
//	initiator                      responder
//	hello(nonce, cookie 0)   --->              nothing is kept
//	                         <---  challenge(nonce, cookie)
//	hello(nonce, cookie)     --->              the hello is fresh and from there
//	                         <---  welcome(its nonce, nonce)
//	heartbeat                <-->  heartbeat
//
// A recorded hello has a cookie of another time, address or process; a recorded
// welcome answers another nonce. Both ends may begin. When both do at once, the
// Pod whose name sorts first goes on, and the other one answers it.

// sayHello begins a handshake, or asks again.
func (e *engine) sayHello(p *peer, now time.Duration) {
	if p.try == nil {
		e.attempts++
		p.try = &attempt{number: e.attempts, session: e.newSessionID()}
		rand.Read(p.try.nonce[:])
	}
	h := e.hello(msgHello, p)
	h.session, h.nonce, h.attempt = p.try.session, p.try.nonce, p.try.number
	b := h.marshal(e.keys)
	for _, to := range p.candidates(e.port) {
		e.send(to, b)
	}
	p.tries++
	switch {
	case p.tries < helloFast:
		p.backoff = helloFirst
	default:
		p.backoff = min(2*p.backoff, helloMax)
	}
	p.nextTry = now + p.backoff
}

// hello fills in what all hellos to a peer have.
func (e *engine) hello(kind msgType, p *peer) *hello {
	return &hello{kind: kind, epoch: e.epoch, attempt: e.attempts, caps: e.caps, lab: e.lab, pod: e.pod, target: p.name,
		wires: uint32(len(p.wires)), digest: digest(p.wires)}
}

// newSessionID chooses a number that begins with the process's prefix, by which
// the kernel knows the datagrams of strangers.
func (e *engine) newSessionID() uint32 {
	for {
		var b [4]byte
		rand.Read(b[:])
		binary.BigEndian.PutUint16(b[:], e.prefix)
		id := binary.BigEndian.Uint32(b[:])
		if e.sessions[id] == nil {
			return id
		}
	}
}

// cookie proves that its bearer received it at from, for this hello, lately, and
// before the present session with p began: a hello that made an earlier session is
// worth nothing. It is computed again instead of being kept.
func (e *engine) cookie(p *peer, from netip.AddrPort, h *hello, turn uint64) (c nonce) {
	b := from.Addr().AsSlice()
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint64(b, turn)
	b = binary.BigEndian.AppendUint32(b, h.attempt)
	if p.cur != nil {
		b = binary.BigEndian.AppendUint32(b, p.cur.id)
	}
	copy(c[:], sum(e.secret[:], b, h.identity()))
	return c
}

func (e *engine) handshake(from netip.AddrPort, b []byte) {
	h, err := parseHello(b)
	if err != nil {
		e.drops.add(dropMalformed)
		return
	}
	if h.lab != e.lab || h.target != e.pod {
		e.drops.add(dropUnknown)
		return
	}
	p := e.peers[h.pod]
	if p == nil && h.kind == msgHello && e.called != nil {
		p = e.called(h.pod)
	}
	if p == nil {
		e.drops.add(dropUnknown)
		return
	}
	// Nobody off the path can guess the nonce of our hello, so a flood of forged
	// messages never keeps this end from a handshake that it began.
	if h.kind != msgHello && !p.asked(h) {
		e.drops.add(dropReplay)
		return
	}
	if h.kind == msgHello && !e.allow(p, from) {
		e.drops.add(dropRate)
		return
	}
	if !authentic(b, e.keys) {
		e.drops.add(dropForged)
		return
	}
	if !e.keyed && !p.knows(from.Addr()) {
		e.drops.add(dropAddress)
		e.moved(p)
		return
	}
	switch h.kind {
	case msgHello:
		e.onHello(p, from, h)
	case msgChallenge:
		e.onChallenge(p, from, h)
	case msgWelcome:
		e.onWelcome(p, from, h)
	}
}

func (e *engine) onHello(p *peer, from netip.AddrPort, h *hello) {
	now := e.now()
	turn := uint64(now / cookieTurn)
	fresh := e.cookie(p, from, h, turn)
	if !hmac.Equal(h.echo[:], fresh[:]) {
		last := e.cookie(p, from, h, turn-1)
		if !hmac.Equal(h.echo[:], last[:]) {
			answer := e.hello(msgChallenge, p)
			answer.nonce, answer.echo = h.nonce, fresh
			e.send(from, answer.marshal(e.keys))
			return
		}
	}
	if (h.caps^e.caps)&capEncrypt != 0 {
		p.refused = "one end encrypts, the other does not"
		e.drops.add(dropRefused)
		e.changed(p)
		return
	}
	if s := p.cur; s != nil {
		if s.helloNonce == h.nonce && s.epoch == h.epoch {
			e.send(from, s.welcome) // the first one was lost
			return
		}
		// The epoch decides between two processes that both talk. A silent one gives
		// way: the newer one may have begun by a clock that is behind.
		silent := now-s.heard > silentAfter
		if h.epoch < s.epoch && !silent || h.epoch == s.epoch && h.attempt <= s.attempt {
			e.drops.add(dropReplay)
			return
		}
	}
	if t := p.try; t != nil && t.proven && now-t.proof < glareWait && e.pod < p.name {
		return // ours goes on
	}
	answer := e.hello(msgWelcome, p)
	answer.session, answer.echo = e.newSessionID(), h.nonce
	rand.Read(answer.nonce[:])
	rx, tx := deriveSession(e.keys, h, answer)
	s := e.establish(p, from, h, answer.session, tx, rx)
	s.helloNonce, s.welcome = h.nonce, answer.marshal(e.keys)
	e.send(from, s.welcome)
	e.begin(s, now)
}

func (e *engine) onChallenge(p *peer, from netip.AddrPort, h *hello) {
	t := p.try
	t.proof, t.proven = e.now(), true
	answer := e.hello(msgHello, p)
	answer.session, answer.nonce, answer.attempt, answer.echo = t.session, t.nonce, t.number, h.echo
	e.send(from, answer.marshal(e.keys))
}

func (e *engine) onWelcome(p *peer, from netip.AddrPort, h *hello) {
	t := p.try
	mine := e.hello(msgHello, p)
	mine.session, mine.nonce, mine.attempt = t.session, t.nonce, t.number
	tx, rx := deriveSession(e.keys, mine, h)
	s := e.establish(p, from, h, t.session, tx, rx)
	s.proven = true // it answered our nonce
	e.begin(s, e.now())
}

// establish makes a session the peer's one.
func (e *engine) establish(p *peer, from netip.AddrPort, h *hello, id uint32, tx, rx direction) *session {
	e.drop(p)
	now := e.now()
	s := &session{id: id, remoteID: h.session, tx: tx, rx: rx, aead: e.caps&capEncrypt != 0, peer: p,
		epoch: h.epoch, attempt: h.attempt, began: now, heard: now, mtu: newProber(e.limit, now)}
	s.addr.Store(&from)
	p.cur, p.last, p.refused = s, from, ""
	p.tries, p.backoff = 0, 0
	e.sessions[id] = s
	return s
}

// begin says the first things in a session.
func (e *engine) begin(s *session, now time.Duration) {
	e.changed(s.peer)
	e.urgent(s.peer)
	e.probeStart(s, now)
}
