//go:build linux

package proto

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// Session is one agreement between this process and a peer's: two numbers, the
// keys of both directions, and the address at which the peer was last proven to
// be. The datapath reads the fields of the first group, which never change, and
// the atomics; the engine owns the rest.
type Session struct {
	ID       uint32 // ours: what the peer puts into its datagrams
	RemoteID uint32
	TX, RX   direction
	AEAD     bool
	Peer     *Peer

	Addr     atomic.Pointer[netip.AddrPort]
	HeardRaw atomic.Bool   // data came since the engine last looked
	Counter  atomic.Uint64 // of sealed datagrams sent
	Sealed   Window        // of counters received; the socket's reader alone uses it

	Epoch   uint64 // of the peer's process
	attempt uint32 // of the peer's handshakes, the last seen
	// welcome answers again a hello with the nonce it was made for.
	helloNonce nonce
	welcome    []byte

	seq      uint64 // of our heartbeats and probes
	beats    uint64 // heartbeats sent
	window   Window // of the peer's sequence numbers
	received uint32 // heartbeats
	began    time.Duration
	heard    time.Duration
	asked    time.Duration // when it was asked whether the peer is there
	asking   bool          // the answer is still to come
	there    time.Duration // when its kernel said that it is
	Proven   bool          // a datagram with the session's keys came

	echo   uint64 // sent of the peer's last heartbeat
	echoAt time.Duration
	RTT    time.Duration
	// Ahead is how far the peer's clock is ahead of the engine's, by the heartbeat with the
	// shortest round trip of late. It is wrong by AheadError at most, which is 0 before the
	// first.
	Ahead, AheadError time.Duration
	aheadAt           time.Duration
	// loss is estimated over a window: what was sent and what had arrived of it
	// when the window began.
	lossFrom struct{ beats, received uint64 }
	Loss     float64

	MTU prober
}

// nextSeq numbers a control datagram.
func (s *Session) nextSeq() uint64 {
	s.seq++
	return s.seq
}

// IPHeader is the length of the IP header on the way to the peer.
func (s *Session) IPHeader() int {
	if s.Addr.Load().Addr().Unmap().Is4() {
		return 20
	}
	return 40
}

// aheadFor is how long a comparison of clocks counts: they drift.
const aheadFor = 20 * time.Second

// compare compares the peer's clock with the engine's: the peer sent the heartbeat some time
// within the round trip.
func (s *Session) compare(h *heartbeat, rtt, now time.Duration) {
	wrong := rtt/2 + time.Microsecond // the echo's delay is in whole microseconds
	if s.AheadError == 0 || wrong <= s.AheadError || now-s.aheadAt > aheadFor {
		s.Ahead, s.AheadError, s.aheadAt = time.Duration(h.sent)+rtt/2-now, wrong, now
	}
}

// lossWindow is how many heartbeats the loss figure looks back.
const lossWindow = 50

// heartbeat updates the session from the peer's heartbeat. now is the engine's clock.
func (s *Session) heartbeat(h *heartbeat, now time.Duration) {
	s.received++
	s.echo, s.echoAt = h.sent, now
	if h.echo != 0 {
		rtt := now - time.Duration(h.echo) - time.Duration(h.echoDelay)*time.Microsecond
		if rtt >= 0 && rtt < time.Minute {
			if s.RTT == 0 || rtt < s.RTT {
				s.RTT = rtt
			} else {
				s.RTT += (rtt - s.RTT) / 8
			}
			s.compare(h, rtt, now)
		}
	}
	sent, got := s.beats-s.lossFrom.beats, uint64(h.received)-s.lossFrom.received
	if sent >= lossWindow {
		// A heartbeat that is still on its way is not lost.
		s.Loss = max(0, float64(sent)-float64(got)-1) / float64(sent)
		s.lossFrom.beats, s.lossFrom.received = s.beats, uint64(h.received)
	}
}
