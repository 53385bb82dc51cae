//go:build linux

package proto

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/drop"
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
// welcome answers another nonce. Both ends may start. If both do at once, the
// Pod whose name sorts first continues and the other one answers.

// sayHello starts a handshake, or repeats its hello.
func (e *Engine) sayHello(p *Peer, now time.Duration) {
	if p.try == nil {
		e.attempts++
		p.try = &attempt{number: e.attempts, session: e.newSessionID()}
		rand.Read(p.try.nonce[:])
	}
	h := e.hello(MsgHello, p)
	h.session, h.nonce, h.attempt = p.try.session, p.try.nonce, p.try.number
	b := h.marshal(e.Keys)
	for _, to := range p.candidates(e.Port) {
		e.Send(to, b)
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

// hello returns a hello with the fields that all hellos to a peer share.
func (e *Engine) hello(kind MsgType, p *Peer) *hello {
	return &hello{kind: kind, epoch: e.Epoch, attempt: e.attempts, caps: e.Caps, lab: e.Lab, pod: e.Pod, target: p.name,
		wires: uint32(len(p.Wires)), digest: digest(p.Wires)}
}

// newSessionID chooses a number that begins with the process's prefix, by which the
// kernel recognizes datagrams of strangers.
func (e *Engine) newSessionID() uint32 {
	for {
		var b [4]byte
		rand.Read(b[:])
		binary.BigEndian.PutUint16(b[:], e.Prefix)
		id := binary.BigEndian.Uint32(b[:])
		if e.Sessions[id] == nil {
			return id
		}
	}
}

// cookie proves that the sender of this hello recently received it at from, after the
// present session with p was established: the hello of an earlier session is
// worthless. It is computed again instead of being stored.
func (e *Engine) cookie(p *Peer, from netip.AddrPort, h *hello, turn uint64) (c nonce) {
	b := from.Addr().AsSlice()
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint64(b, turn)
	b = binary.BigEndian.AppendUint32(b, h.attempt)
	if p.Cur != nil {
		b = binary.BigEndian.AppendUint32(b, p.Cur.ID)
	}
	copy(c[:], sum(e.secret[:], b, h.identity()))
	return c
}

func (e *Engine) handshake(from netip.AddrPort, b []byte) {
	h, err := parseHello(b)
	if err != nil {
		e.Drops.Add(drop.Malformed)
		return
	}
	if h.lab != e.Lab || h.target != e.Pod {
		e.Drops.Add(drop.UnknownPod)
		return
	}
	p := e.Peers[h.pod]
	if p == nil && h.kind == MsgHello && e.Called != nil {
		p = e.Called(h.pod)
	}
	if p == nil {
		e.Drops.Add(drop.UnknownPod)
		return
	}
	// Only somebody on the path knows the nonce of our hello, so a flood of forged
	// messages cannot prevent a handshake that this end started.
	if h.kind != MsgHello && !p.asked(h) {
		e.Drops.Add(drop.Replay)
		return
	}
	if h.kind == MsgHello && !e.allow(p, from) {
		e.Drops.Add(drop.Rate)
		return
	}
	if !authentic(b, e.Keys) {
		e.Drops.Add(drop.Forged)
		return
	}
	if !e.Keyed && !p.knows(from.Addr()) {
		e.Drops.Add(drop.Address)
		e.Moved(p)
		return
	}
	switch h.kind {
	case MsgHello:
		e.onHello(p, from, h)
	case msgChallenge:
		e.onChallenge(p, from, h)
	case msgWelcome:
		e.onWelcome(p, from, h)
	}
}

func (e *Engine) onHello(p *Peer, from netip.AddrPort, h *hello) {
	now := e.Now()
	turn := uint64(now / cookieTurn)
	fresh := e.cookie(p, from, h, turn)
	if !hmac.Equal(h.echo[:], fresh[:]) {
		last := e.cookie(p, from, h, turn-1)
		if !hmac.Equal(h.echo[:], last[:]) {
			answer := e.hello(msgChallenge, p)
			answer.nonce, answer.echo = h.nonce, fresh
			e.Send(from, answer.marshal(e.Keys))
			return
		}
	}
	if (h.caps^e.Caps)&CapEncrypt != 0 {
		p.Refused = "one end encrypts, the other does not"
		e.Drops.Add(drop.Refused)
		e.Changed(p)
		return
	}
	if s := p.Cur; s != nil {
		if s.helloNonce == h.nonce && s.Epoch == h.epoch {
			e.Send(from, s.welcome) // the first one was lost
			return
		}
		// Of two processes that both send, the greater epoch wins. A silent one loses in
		// any case: the clock of the newer one may be behind.
		silent := now-s.heard > SilentAfter
		if h.epoch < s.Epoch && !silent || h.epoch == s.Epoch && h.attempt <= s.attempt {
			e.Drops.Add(drop.Replay)
			return
		}
	}
	if t := p.try; t != nil && t.proven && now-t.proof < glareWait && e.Pod < p.name {
		return // our handshake continues
	}
	answer := e.hello(msgWelcome, p)
	answer.session, answer.echo = e.newSessionID(), h.nonce
	rand.Read(answer.nonce[:])
	rx, tx := deriveSession(e.Keys, h, answer)
	s := e.establish(p, from, h, answer.session, tx, rx)
	s.helloNonce, s.welcome = h.nonce, answer.marshal(e.Keys)
	e.Send(from, s.welcome)
	e.begin(s, now)
}

func (e *Engine) onChallenge(p *Peer, from netip.AddrPort, h *hello) {
	t := p.try
	t.proof, t.proven = e.Now(), true
	answer := e.hello(MsgHello, p)
	answer.session, answer.nonce, answer.attempt, answer.echo = t.session, t.nonce, t.number, h.echo
	e.Send(from, answer.marshal(e.Keys))
}

func (e *Engine) onWelcome(p *Peer, from netip.AddrPort, h *hello) {
	t := p.try
	mine := e.hello(MsgHello, p)
	mine.session, mine.nonce, mine.attempt = t.session, t.nonce, t.number
	tx, rx := deriveSession(e.Keys, mine, h)
	s := e.establish(p, from, h, t.session, tx, rx)
	s.Proven = true // it answered our nonce
	e.begin(s, e.Now())
}

// establish replaces the session with the peer.
func (e *Engine) establish(p *Peer, from netip.AddrPort, h *hello, id uint32, tx, rx direction) *Session {
	e.drop(p)
	now := e.Now()
	s := &Session{ID: id, RemoteID: h.session, TX: tx, RX: rx, AEAD: e.Caps&CapEncrypt != 0, Peer: p,
		Epoch: h.epoch, attempt: h.attempt, began: now, heard: now, MTU: newProber(e.Limit, now)}
	s.Addr.Store(&from)
	p.Cur, p.last, p.Refused = s, from, ""
	p.tries, p.backoff = 0, 0
	e.Sessions[id] = s
	return s
}

// begin sends the first messages of a session.
func (e *Engine) begin(s *Session, now time.Duration) {
	e.Changed(s.Peer)
	e.Urgent(s.Peer)
	e.probeStart(s, now)
}
