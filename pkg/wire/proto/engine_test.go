//go:build linux

package proto

import (
	"net/netip"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
)

// world joins engines by a network in memory, on a clock of its own.
type world struct {
	t     *testing.T
	clock time.Duration
	nodes map[netip.AddrPort]*Engine
	queue []packet
	log   []packet // all that was sent
	cut   func(p packet) bool
}

type packet struct {
	from, to netip.AddrPort
	b        []byte
}

func addr(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 14800)
}

func newWorld(t *testing.T) *world {
	return &world{t: t, clock: time.Hour, nodes: map[netip.AddrPort]*Engine{}}
}

// node starts a Pod's engine with wire 7 to other.
func (w *world) node(pod, other, key string, at netip.AddrPort, epoch uint64) *Engine {
	e := &Engine{Lab: "lab", Pod: pod, Port: 14800, Keys: DeriveKeys([]byte(key), "lab"), Keyed: key != "", Epoch: epoch, Limit: 1500,
		Now: func() time.Duration { return w.clock }, Drops: &drop.Counters{},
		Bits:    func(contract.WireID) uint8 { return BeatUp },
		Changed: func(*Peer) {}, Moved: func(*Peer) {},
		Send: func(to netip.AddrPort, b []byte) {
			p := packet{at, to, append([]byte(nil), b...)}
			w.queue, w.log = append(w.queue, p), append(w.log, p)
		}}
	e.Init()
	e.SetPeers(map[string][]contract.WireID{other: {7}})
	w.nodes[at] = e
	return e
}

// run lets time pass in steps of 5 ms.
func (w *world) run(d time.Duration) {
	for end := w.clock + d; w.clock < end; w.clock += 5 * time.Millisecond {
		for _, e := range w.nodes {
			e.Tick()
		}
		for i := 0; len(w.queue) > 0 && i < 10000; i++ {
			p := w.queue[0]
			w.queue = w.queue[1:]
			if e := w.nodes[p.to]; e != nil && (w.cut == nil || !w.cut(p)) {
				e.Receive(p.from, p.b)
			}
		}
	}
}

func know(e *Engine, pod string, at netip.AddrPort) {
	e.SetAddrs(e.Peers[pod], []netip.Addr{at.Addr()})
}

func joined(a, b *Engine) bool {
	s, r := a.Peers[b.Pod].Cur, b.Peers[a.Pod].Cur
	return s != nil && r != nil && s.ID == r.RemoteID && r.ID == s.RemoteID && s.TX.Token == r.RX.Token && r.TX.Token == s.RX.Token &&
		s.TX.Token != s.RX.Token && a.Peers[b.Pod].Known && b.Peers[a.Pod].Known
}

func pair(t *testing.T, key string) (*world, *Engine, *Engine) {
	w := newWorld(t)
	a, b := w.node("a", "b", key, addr(1), 100), w.node("b", "a", key, addr(2), 200)
	know(a, "b", addr(2))
	know(b, "a", addr(1))
	w.run(300 * time.Millisecond)
	if !joined(a, b) {
		t.Fatalf("no session: %v %v", a.Drops.Report(), b.Drops.Report())
	}
	return w, a, b
}

func TestHandshakeBothBegin(t *testing.T) {
	for _, key := range []string{"", "secret"} {
		w, a, b := pair(t, key)
		s := a.Peers["b"].Cur
		w.run(5 * time.Second)
		if a.Peers["b"].Cur != s || !joined(a, b) {
			t.Error("the session did not last")
		}
		if s.MTU.Current != 1500 {
			t.Errorf("path MTU %d", s.MTU.Current)
		}
		if s.Loss != 0 {
			t.Errorf("loss %v", s.Loss)
		}
	}
}

func TestHandshakeOneSideKnows(t *testing.T) {
	for _, knows := range []string{"a", "b"} {
		w := newWorld(t)
		a, b := w.node("a", "b", "k", addr(1), 100), w.node("b", "a", "k", addr(2), 200)
		if knows == "a" {
			know(a, "b", addr(2))
		} else {
			know(b, "a", addr(1))
		}
		w.run(300 * time.Millisecond)
		if !joined(a, b) {
			t.Errorf("no session when %s alone knows the other", knows)
		}
	}
}

func TestHandshakeUnderLoss(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a", "b", "k", addr(1), 100), w.node("b", "a", "k", addr(2), 200)
	know(a, "b", addr(2))
	know(b, "a", addr(1))
	n := 0
	w.cut = func(packet) bool { n++; return n%2 == 0 }
	w.run(3 * time.Second)
	w.cut = nil
	w.run(time.Second)
	if !joined(a, b) {
		t.Error("no session")
	}
}

func TestPeerLostAndBackElsewhere(t *testing.T) {
	w, a, _ := pair(t, "k")
	delete(w.nodes, addr(2))
	w.run(LostAfter + 2*BeatEvery)
	if a.Peers["b"].Cur != nil {
		t.Fatal("the lost peer is still believed")
	}
	// It comes back at an address that nobody knows, with a clock that is behind.
	b := w.node("b", "a", "k", addr(3), 150)
	know(b, "a", addr(1))
	w.run(200 * time.Millisecond)
	if !joined(a, b) || *a.Peers["b"].Cur.Addr.Load() != addr(3) {
		t.Errorf("not followed: %v", a.Drops.Report())
	}
}

// A silent peer whose kernel answers is kept, for a while; one of which nobody knows is not.
func TestSilentPeerIsAskedFor(t *testing.T) {
	w, a, b := pair(t, "k")
	var asked []time.Duration
	answers := true
	a.Ask = func(s *Session) {
		asked = append(asked, w.clock-s.heard)
		a.Answered(s, answers, true)
	}
	w.run(5 * time.Second)
	if len(asked) > 0 {
		t.Errorf("a peer that is heard is asked for after %v", asked)
	}
	s := a.Peers["b"].Cur
	silent := func(packet) bool { return true }
	heard := func(p packet) bool { return p.from == addr(2) }
	w.cut = heard // b hears a
	w.run(5 * time.Second)
	if a.Peers["b"].Cur != s || len(asked) < 8 || len(asked) > 11 || asked[0] <= SilentAfter || asked[0] > SilentAfter+50*time.Millisecond {
		t.Errorf("silent for 5 s: session kept %t, asked after %v", a.Peers["b"].Cur == s, asked)
	}
	w.cut = nil
	w.run(2 * BeatEvery)
	if !joined(a, b) || a.Peers["b"].Cur != s {
		t.Error("a peer that speaks again has another session")
	}
	w.cut, answers = silent, false
	w.run(LostAfter + BeatEvery)
	if a.Peers["b"].Cur != nil {
		t.Error("kept though nobody answers")
	}
	w.cut, answers = nil, true
	w.run(3 * time.Second)
	if s = a.Peers["b"].Cur; s == nil {
		t.Fatal("no new session")
	}
	w.cut = heard
	w.run(starvedMost - BeatEvery)
	if a.Peers["b"].Cur != s {
		t.Error("not kept for as long as may be")
	}
	w.run(2 * BeatEvery)
	if a.Peers["b"].Cur != nil {
		t.Error("kept for longer than may be")
	}
}

// Who has no wires to a peer any more says so.
func TestPeerIsLeft(t *testing.T) {
	w, a, b := pair(t, "k")
	b.SetPeers(nil)
	w.run(50 * time.Millisecond)
	if p := a.Peers["b"]; p.Cur == nil || !p.Known || len(p.Remote) != 0 {
		t.Errorf("the peer knows of %v", p.Remote)
	}
}

func TestRestartReplacesSession(t *testing.T) {
	w, a, _ := pair(t, "k")
	b := w.node("b", "a", "k", addr(2), 300)
	know(b, "a", addr(1))
	w.run(200 * time.Millisecond)
	if !joined(a, b) {
		t.Error("the restarted peer is not taken")
	}
	if len(a.Sessions) != 1 {
		t.Errorf("%d sessions", len(a.Sessions))
	}
}

// An older process of the same Pod must not take the session over from one that talks.
func TestOlderEpochIsRefused(t *testing.T) {
	w, a, b := pair(t, "k")
	old := w.node("b", "a", "k", addr(9), 50)
	know(old, "a", addr(1))
	for range 50 {
		w.run(100 * time.Millisecond)
		if !joined(a, b) {
			t.Fatal("an older process took over")
		}
	}
}

// A clock that steps back, or another worker whose clock is behind, gives a restarted
// process an older epoch; the worker's kernel answers for the Pod meanwhile, so that
// the peer is not lost.
func TestOlderEpochReplacesASilentProcess(t *testing.T) {
	w, a, _ := pair(t, "k")
	a.Ask = func(s *Session) { a.Answered(s, true, true) }
	for _, epoch := range []uint64{50, 20, 10} {
		b := w.node("b", "a", "k", addr(2), epoch)
		know(b, "a", addr(1))
		w.run(SilentAfter + 250*time.Millisecond)
		if !joined(a, b) {
			t.Fatalf("the process with epoch %d is not taken", epoch)
		}
	}
}

// A recorded handshake of an earlier session, sent again while the present one is
// silent, replaces nothing.
func TestReplayToASilentSession(t *testing.T) {
	w, a, _ := pair(t, "k")
	b := w.node("b", "a", "k", addr(2), 300)
	know(b, "a", addr(1))
	w.run(200 * time.Millisecond)
	a.Ask = func(s *Session) { a.Answered(s, true, true) }
	s, log := a.Peers["b"].Cur, append([]packet(nil), w.log...)
	w.cut = func(p packet) bool { return p.from == addr(2) }
	w.run(2 * SilentAfter)
	for _, p := range log {
		if p.to == addr(1) {
			a.Receive(p.from, p.b)
		}
	}
	if !joined(a, b) || a.Peers["b"].Cur != s {
		t.Error("a replay replaced the session")
	}
}

// flooded lets time pass in which a node receives 2,000 datagrams a second.
func (w *world) flooded(d time.Duration, e *Engine, next func(n int) packet) {
	n := 0
	for end := w.clock + d; w.clock < end; {
		for range 10 {
			p := next(n)
			e.Receive(p.from, p.b)
			n++
		}
		w.run(5 * time.Millisecond)
	}
}

// Whoever knows the lab's tag, which is in every hello, keeps nobody from a handshake.
func TestFloodedHandshakes(t *testing.T) {
	forged := func(kind MsgType) []byte {
		b := (&hello{kind: kind, lab: "lab", pod: "b", target: "a"}).marshal(DeriveKeys([]byte("k"), "lab"))
		b[len(b)-1]++
		return b
	}
	other := func(n int) netip.AddrPort { return addr(3 + n%200) }
	for _, c := range []struct {
		name string
		next func(n int) packet
		// moved is where b is unknown to a, which cannot begin.
		moved bool
	}{
		{"short, of a stranger", func(int) packet { return packet{from: addr(66), b: forged(MsgHello)[:PrefixLen]} }, true},
		{"short, in the peer's name", func(int) packet { return packet{from: addr(2), b: forged(MsgHello)[:60]} }, true},
		{"of a stranger", func(int) packet { return packet{from: addr(66), b: forged(MsgHello)} }, true},
		{"of strangers", func(n int) packet { return packet{from: other(n), b: forged(MsgHello)} }, false},
		{"in the peer's name", func(int) packet { return packet{from: addr(2), b: forged(MsgHello)} }, false},
		{"challenges in the peer's name", func(int) packet { return packet{from: addr(2), b: forged(msgChallenge)} }, true},
		{"welcomes in the peer's name", func(int) packet { return packet{from: addr(2), b: forged(msgWelcome)} }, true},
	} {
		w := newWorld(t)
		a := w.node("a", "b", "k", addr(1), 100)
		if !c.moved {
			know(a, "b", addr(2))
		}
		w.flooded(time.Second, a, c.next)
		b := w.node("b", "a", "k", addr(2), 200)
		know(b, "a", addr(1))
		w.flooded(500*time.Millisecond, a, c.next)
		if !joined(a, b) {
			t.Errorf("%s: no session; dropped %v", c.name, a.Drops.Report())
		}
	}
}

func TestHeartbeatMovesAddress(t *testing.T) {
	w, a, b := pair(t, "k")
	s := a.Peers["b"].Cur
	// b's datagrams come from another address from now on.
	send := b.Send
	b.Send = func(to netip.AddrPort, bytes []byte) {
		send(to, bytes)
		w.queue[len(w.queue)-1].from = addr(5)
	}
	w.nodes[addr(5)] = b
	w.run(time.Second)
	if a.Peers["b"].Cur != s || *s.Addr.Load() != addr(5) {
		t.Error("the address was not followed")
	}
	if s.MTU.Current != 1500 {
		t.Errorf("path MTU at the new address: %d", s.MTU.Current)
	}
}

// All that was ever sent is sent again, from where it came and from elsewhere.
func TestReplay(t *testing.T) {
	w, a, b := pair(t, "k")
	w.run(time.Second)
	sa, sb := a.Peers["b"].Cur, b.Peers["a"].Cur
	log := append([]packet(nil), w.log...)
	for _, from := range []netip.AddrPort{{}, addr(66)} {
		for _, p := range log {
			if from.IsValid() {
				p.from = from
			}
			w.nodes[p.to].Receive(p.from, p.b)
		}
	}
	w.run(200 * time.Millisecond)
	if a.Peers["b"].Cur != sa || b.Peers["a"].Cur != sb || *sa.Addr.Load() != addr(2) || *sb.Addr.Load() != addr(1) {
		t.Error("a replay changed the session")
	}
	// A peer that is gone is not kept alive by what it once said.
	w.cut = func(p packet) bool { return p.from == addr(2) }
	heard := sa.heard
	for _, p := range log {
		if p.to == addr(1) {
			a.Receive(p.from, p.b)
		}
	}
	if sa.heard != heard {
		t.Error("a replayed heartbeat is heard")
	}
	w.run(2 * time.Second)
	if a.Peers["b"].Cur != nil {
		t.Fatal("the peer is not lost")
	}
	// Nor does it come back by it, once the cookies of the time are over.
	w.run(3 * cookieTurn)
	for _, p := range log {
		if p.to == addr(1) {
			a.Receive(p.from, p.b)
		}
	}
	if a.Peers["b"].Cur != nil {
		t.Error("a replayed handshake brought the peer back")
	}
	// Also into a fresh process, which says hello itself: the handshake of another time
	// is worth nothing.
	fresh := w.node("a", "b", "k", addr(1), 400)
	know(fresh, "b", addr(77))
	w.run(50 * time.Millisecond)
	for _, p := range log {
		if p.to == addr(1) {
			fresh.Receive(addr(66), p.b)
		}
	}
	if fresh.Peers["b"].Cur != nil {
		t.Error("a replayed handshake made a session")
	}
}

// A datagram that was kept back on its way, and sent on from elsewhere later, moves the
// peer nowhere.
func TestKeptBackHeartbeat(t *testing.T) {
	w, a, _ := pair(t, "k")
	w.run(2 * time.Second)
	var kept *packet
	w.cut = func(p packet) bool {
		if kept == nil && p.from == addr(2) && p.b[0] == TypeByte(MsgHeartbeat) {
			kept = &p
			return true
		}
		return false
	}
	w.run(time.Second)
	if kept == nil {
		t.Fatal("there was no heartbeat")
	}
	a.Receive(addr(66), kept.b)
	if s := a.Peers["b"].Cur; s == nil || *s.Addr.Load() != addr(2) {
		t.Error("an old heartbeat moved the peer")
	}
}

// A cookie is worth nothing at another address than the one that it was sent to.
func TestStolenCookie(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a", "b", "k", addr(1), 100), w.node("b", "a", "k", addr(2), 200)
	know(b, "a", addr(1))
	stolen := 0
	w.cut = func(p packet) bool { // the thief sends on what b sends, as its own
		if p.from != addr(2) || p.b[0] != TypeByte(MsgHello) || [16]byte(p.b[48:64]) == [16]byte{} {
			return false
		}
		stolen++
		a.Receive(addr(66), p.b)
		return true
	}
	w.run(time.Second)
	if stolen == 0 || a.Peers["b"].Cur != nil {
		t.Errorf("%d cookies were stolen; session %v", stolen, a.Peers["b"].Cur)
	}
}

// Who knows the lab's tag, which is in every hello, but not its key gets no session.
func TestTagWithoutKey(t *testing.T) {
	w := newWorld(t)
	a, thief := w.node("a", "b", "k", addr(1), 100), w.node("b", "a", "other", addr(66), 200)
	thief.Keys.Tag = a.Keys.Tag
	know(thief, "a", addr(1))
	know(a, "b", addr(66)) // its address was a peer's
	w.run(2 * time.Second)
	if a.Peers["b"].Cur != nil || a.Drops[drop.Forged].Load() == 0 {
		t.Errorf("a session; dropped %v", a.Drops.Report())
	}
}

func TestForged(t *testing.T) {
	w, a, b := pair(t, "k")
	w.run(time.Second)
	sa := a.Peers["b"].Cur
	heard := sa.heard
	for _, p := range append([]packet(nil), w.log...) {
		for i := range p.b {
			c := append([]byte(nil), p.b...)
			c[i] ^= 0x10
			if p.to == addr(1) {
				a.Receive(addr(2), c)
				a.Receive(addr(66), c)
			}
		}
	}
	// New ones, with numbers that were not seen yet.
	for _, b := range [][]byte{
		(&heartbeat{session: sa.ID, seq: 1 << 30, parts: 1}).marshal([]byte("no key")), (&probe{kind: msgProbe, session: sa.ID, seq: 1 << 30, size: 9000}).marshal([]byte("no key"), 0),
		(&probe{kind: MsgProbeAck, session: sa.ID, seq: 1 << 30, size: 9000}).marshal([]byte("no key"), 0),
	} {
		a.Receive(addr(66), b)
	}
	if a.Peers["b"].Cur != sa || *sa.Addr.Load() != addr(2) || sa.heard != heard || len(a.Peers["b"].Remote) != 1 {
		t.Error("a forged datagram changed the session")
	}
	w.queue = nil
	w.run(time.Second)
	if !joined(a, b) {
		t.Error("the session did not survive")
	}
}

func TestWrongKey(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a", "b", "k", addr(1), 100), w.node("b", "a", "other", addr(2), 200)
	know(a, "b", addr(2))
	know(b, "a", addr(1))
	w.run(2 * time.Second)
	if a.Peers["b"].Cur != nil || a.Drops[drop.Stranger].Load() == 0 {
		t.Error("another lab's hello was taken")
	}
}

func TestOpenModeKnownAddressesOnly(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a", "b", "", addr(1), 100), w.node("b", "a", "", addr(2), 200)
	know(b, "a", addr(1))
	w.run(time.Second)
	if a.Peers["b"].Cur != nil || a.Drops[drop.Address].Load() == 0 {
		t.Error("a hello from an unknown address was taken")
	}
	know(a, "b", addr(2))
	w.run(2 * time.Second)
	if !joined(a, b) {
		t.Error("no session with a known address")
	}
}

func TestEncryptionMustAgree(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a", "b", "k", addr(1), 100), w.node("b", "a", "k", addr(2), 200)
	a.Caps = CapEncrypt
	know(a, "b", addr(2))
	know(b, "a", addr(1))
	w.run(time.Second)
	if a.Peers["b"].Cur != nil || b.Peers["a"].Refused == "" {
		t.Error("a session with and without encryption")
	}
}

func TestManyWiresInParts(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a", "b", "k", addr(1), 100), w.node("b", "a", "k", addr(2), 200)
	var ids []contract.WireID
	for i := range 700 {
		ids = append(ids, contract.WireID(i+1))
	}
	a.SetPeers(map[string][]contract.WireID{"b": ids})
	know(a, "b", addr(2))
	w.run(time.Second)
	if n := len(b.Peers["a"].Remote); n != 700 {
		t.Errorf("%d of 700 wires are known", n)
	}
}

func TestPathMTU(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a", "b", "k", addr(1), 100), w.node("b", "a", "k", addr(2), 200)
	path := 1421
	w.cut = func(p packet) bool { return len(p.b)+28 > path }
	know(a, "b", addr(2))
	w.run(4 * time.Second)
	s := a.Peers["b"].Cur
	if s == nil || s.MTU.Current > path || s.MTU.Current < path-probeExact {
		t.Fatalf("found %d of %d", s.MTU.Current, path)
	}
	path = 1300 // a tunnel appears
	w.run(25 * time.Second)
	if s.MTU.Current > path || s.MTU.Current < path-probeExact {
		t.Errorf("found %d of %d", s.MTU.Current, path)
	}
	path = 9000
	w.run(70 * time.Second)
	if s.MTU.Current != 1500 {
		t.Errorf("found %d of the interface's 1500", s.MTU.Current)
	}
	_ = b
}

func TestHelloRateIsBounded(t *testing.T) {
	w, a, _ := pair(t, "k")
	hello := (&hello{kind: MsgHello, lab: "lab", pod: "b", target: "a"}).marshal(a.Keys)
	for _, c := range []struct {
		from        func(n int) netip.AddrPort
		least, most int
	}{
		{func(int) netip.AddrPort { return addr(77) }, 1, strangerHellos},
		{func(int) netip.AddrPort { return addr(2) }, strangerHellos + 1, peerHellos},
		{func(n int) netip.AddrPort { return addr(n % 256) }, strangerHellos*strangerBuckets/8 + peerHellos, strangerHellos*strangerBuckets + peerHellos},
	} {
		w.run(2 * time.Second)
		before := len(w.log)
		for n := range 100_000 {
			a.Receive(c.from(n), hello)
		}
		if n := len(w.log) - before; n < c.least || n > c.most {
			t.Errorf("%d answers to a flood, want %d to %d", n, c.least, c.most)
		}
	}
}
