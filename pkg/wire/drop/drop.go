// Package drop counts the frames and datagrams that the wire drops, by reason.
package drop

import "sync/atomic"

// Reason is why a datagram or a frame went no further.
type Reason int

// The reasons.
const (
	Malformed   Reason = iota // no datagram of this protocol
	Stranger                  // a hello of another lab, or of none
	Rate                      // more hellos than are looked at
	Forged                    // a MAC or a seal is wrong
	Replay                    // seen before, or of an earlier handshake
	UnknownPod                // a Pod with which there is no wire
	Refused                   // a peer with settings that do not fit
	NoSession                 // no such session
	Address                   // not from where the peer is
	Token                     // the session's token is wrong
	Wire                      // a wire that is not the peer's
	Duplicate                 // a frame or fragment that was there already
	Incomplete                // a frame of which fragments are missing
	NoPeer                    // a frame without a peer to send it to
	Down                      // a frame for a leg that is down
	Queue                     // the kernel had no room
	Size                      // a frame that the wire cannot carry
	ImpairLoss                // impairment: loss
	ImpairQueue               // impairment: more than the rate's queue holds
	Overrun                   // the kernel's queue before us was full
	Kernel                    // the kernel had no room, or knew it for a stranger's
	reasons
)

var names = [reasons]string{"malformed", "stranger", "rate", "forged", "replay", "unknown-pod", "refused",
	"no-session", "address", "token", "wire", "duplicate", "incomplete", "no-peer", "down", "queue", "size",
	"impairment-loss", "impairment-queue", "overrun", "kernel"}

// String is the reason's name in the status.
func (r Reason) String() string { return names[r] }

// Counters counts by reason. The zero value is ready to use.
type Counters [reasons]atomic.Uint64

// Add counts one.
func (d *Counters) Add(r Reason) { d[r].Add(1) }

// AddN counts n.
func (d *Counters) AddN(r Reason, n int) { d[r].Add(uint64(n)) }

// Report returns the counts of the reasons that occurred, by name.
func (d *Counters) Report() map[string]uint64 {
	var m map[string]uint64
	for r := range reasons {
		if n := d[r].Load(); n > 0 {
			if m == nil {
				m = map[string]uint64{}
			}
			m[r.String()] = n
		}
	}
	return m
}
