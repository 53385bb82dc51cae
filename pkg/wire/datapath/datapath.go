//go:build linux

package datapath

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/vishvananda/netlink"
)

// Datapath carries the frames of wires in place of udp, which every Pod has. The two
// ends of a wire agree on it in their heartbeats: each says whether it is ready to
// receive, and sends only while the far end is ready. Control messages stay on udp.
// A new datapath is a package of its own and one line in wire.datapaths.
//
// Wanted is called under the fabric's lock and must not block. All other methods are
// called by one goroutine, in the fabric's network namespace.
type Datapath interface {
	// Open prepares the network namespace, whose interfaces h knows, before
	// anything else is called. If it fails, the datapath may still be used.
	Open(h *netlink.Handle) error
	// Wanted returns "" for a wire that is to take the datapath, else why not.
	Wanted(c Conditions) string
	// Ensure makes a leg ready to receive what remote sends. What an earlier process
	// left is replaced.
	Ensure(l Leg, remote netip.Addr) error
	// Send makes the datapath carry what the leg's device sends, or leaves it to
	// udp. It reports whether the datapath carries it.
	Send(l Leg, on bool) bool
	// Remove undoes Ensure. Send is off by then.
	Remove(l Leg)
	// Finish ends a round of calls. It is called again later if it fails.
	Finish() error
}

// Carrier is a Datapath that the fabric hands the frames in user space. A Datapath
// without this method takes them from the leg itself, in the kernel.
type Carrier interface {
	// Frame sends a frame with its virtio-net header, or nil. It must not keep them.
	Frame(e *End, vnet, frame []byte)
}

// Watcher is a Datapath that depends on interfaces which others can delete.
type Watcher interface {
	// Lost is called when interfaces of the fabric's namespace are gone. It returns what
	// wires did by them, once. It is called under the fabric's lock and must not block.
	Lost(gone func(index int) bool) []Loss
}

// Loss says that a wire can no longer receive, or else send.
type Loss struct {
	Wire    contract.WireID
	Receive bool
}

// Service is a Datapath that is there for the peers too.
type Service interface {
	// Start is called before there is a session, Close after the last one.
	Start() error
	Close() error
}

// Peer is the process at the other end of a wire.
type Peer struct {
	Pod string
	// Epoch distinguishes the processes of a Pod.
	Epoch uint64
}

// Conditions are what decides whether a wire takes a datapath.
type Conditions struct {
	Peer Peer
	// Chosen: the topology names the datapath.
	Chosen bool
	// MTU is the link's, PathMTU the underlay's on the way to the peer, bytes of IP
	// packet; IPHeader the length of an IP header there.
	MTU, PathMTU, IPHeader int
	Impaired, Encrypted    bool
	// Plain: the device takes no unfinished checksums.
	Plain bool
}

// Leg is the leg of a wire's end.
type Leg struct {
	Wire  contract.WireID
	Index int
	Sock  *Socket // nil if the leg is not read
	End   *End
	// Peer is where a leg leads that is made ready.
	Peer Peer
}

// End is one end of a wire, as the workers see it.
type End struct {
	ID contract.WireID
	// Legs is held while frames are written to the leg.
	Legs *sync.Mutex
	Out  atomic.Pointer[Out] // nil without a leg

	Drops             drop.Counters
	TxFrames, TxBytes atomic.Uint64
	RxFrames, RxBytes atomic.Uint64
}
