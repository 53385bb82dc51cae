package wire

import "sync/atomic"

// dropReason is why a datagram or a frame went no further.
type dropReason int

const (
	dropMalformed   dropReason = iota // no datagram of this protocol
	dropStranger                      // a hello of another lab, or of none
	dropRate                          // more hellos than are looked at
	dropForged                        // a MAC or a seal is wrong
	dropReplay                        // seen before, or of an earlier handshake
	dropUnknown                       // a Pod with which there is no wire
	dropRefused                       // a peer with settings that do not fit
	dropSession                       // no such session
	dropAddress                       // not from where the peer is
	dropToken                         // the session's token is wrong
	dropWire                          // a wire that is not the peer's
	dropDuplicate                     // a frame or fragment that was there already
	dropIncomplete                    // a frame of which fragments are missing
	dropNoSession                     // a frame without a peer to send it to
	dropDown                          // a frame for a leg that is down
	dropQueue                         // the kernel had no room
	dropSize                          // a frame that the wire cannot carry
	dropImpairLoss                    // impairment: loss
	dropImpairQueue                   // impairment: more than the rate's queue holds
	dropOverrun                       // the kernel's queue before us was full
	dropKernel                        // the kernel had no room, or knew it for a stranger's
	dropReasons
)

var dropNames = [dropReasons]string{"malformed", "stranger", "rate", "forged", "replay", "unknown-pod", "refused",
	"no-session", "address", "token", "wire", "duplicate", "incomplete", "no-peer", "down", "queue", "size",
	"impairment-loss", "impairment-queue", "overrun", "kernel"}

// dropCounters counts by reason.
type dropCounters [dropReasons]atomic.Uint64

func (d *dropCounters) add(r dropReason)         { d[r].Add(1) }
func (d *dropCounters) addN(r dropReason, n int) { d[r].Add(uint64(n)) }

// report gives the reasons that occurred.
func (d *dropCounters) report() map[string]uint64 {
	var m map[string]uint64
	for r := range d {
		if n := d[r].Load(); n > 0 {
			if m == nil {
				m = map[string]uint64{}
			}
			m[dropNames[r]] = n
		}
	}
	return m
}
