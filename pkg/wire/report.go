package wire

import (
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Status is the observed state of a fabric.
type Status struct {
	Pod string `json:"pod"`
	// Epoch is the start time of the process in nanoseconds since 1970, or more if the
	// clock has stepped back since an earlier process of the Pod.
	Epoch uint64 `json:"epoch"`
	// Mode is open, authenticated or encrypted.
	Mode string `json:"mode"`
	// UnderlayMTU is that of the Pod network's interface, bytes.
	UnderlayMTU int `json:"underlayMtu"`
	// Segmentation reports whether the kernel cuts and merges datagrams.
	Segmentation bool `json:"segmentation"`
	// Dropped counts datagrams by reason.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	Wires   []WireStatus      `json:"wires"`
	// Clock relates the clocks of workers.
	Clock *Clock `json:"clock,omitempty"`
}

// Clock is the clock that heartbeats have the time of.
type Clock struct {
	// Base is when it began by the worker's clock, in nanoseconds since 1970.
	Base  int64       `json:"base"`
	Peers []PeerClock `json:"peers,omitempty"`
}

// PeerClock compares the clock of a peer with this end's.
type PeerClock struct {
	Pod   string `json:"pod"`
	Epoch uint64 `json:"epoch"`
	// Ahead is how far the peer's clock is ahead, in nanoseconds, and Error how wrong that may
	// be.
	Ahead int64 `json:"ahead"`
	Error int64 `json:"error"`
}

// WireStatus is the state of one wire.
type WireStatus struct {
	ID      contract.WireID `json:"id"`
	PeerPod string          `json:"peerPod,omitempty"`
	Peer    string          `json:"peer,omitempty"` // address and port
	// PeerEpoch is the peer's Epoch, 0 without a session.
	PeerEpoch uint64 `json:"peerEpoch,omitempty"`
	Leg       string `json:"leg"`
	LocalLeg  string `json:"localLeg,omitempty"`
	// Up is set if the device sees a carrier. Reason says why it does not.
	Up     bool      `json:"up"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	// LocalCarrier and RemoteCarrier are the states of the devices' interfaces.
	LocalCarrier  bool `json:"localCarrier"`
	RemoteCarrier bool `json:"remoteCarrier"`
	// Datapath is the one that this end sends by: udp, vxlan or local. RemoteDatapath
	// is that of the far end. Why says why it is not the one that the topology names, or
	// why auto is none that is preferred.
	Datapath       string `json:"datapath"`
	RemoteDatapath string `json:"remoteDatapath,omitempty"`
	Why            string `json:"why,omitempty"`
	// RTT is the round-trip time of heartbeats in milliseconds. Loss is the share of
	// lost heartbeats from this end, 0 to 1.
	RTT  float64 `json:"rttMs"`
	Loss float64 `json:"loss"`
	// PathMTU is bytes of IP packet.
	PathMTU int `json:"pathMtu,omitempty"`
	// The counters are of the udp and local datapaths; a super-frame counts as
	// one. For vxlan, and for local between two Pods, the kernel counts, at the leg.
	TxFrames uint64            `json:"txFrames"`
	TxBytes  uint64            `json:"txBytes"`
	RxFrames uint64            `json:"rxFrames"`
	RxBytes  uint64            `json:"rxBytes"`
	Drops    map[string]uint64 `json:"drops,omitempty"`
	// Impairment is that of what this end sends; ReverseImpairment, of a wire inside the
	// Pod, that of what the other leg sends.
	Impairment        *contract.Impairment `json:"impairment,omitempty"`
	ReverseImpairment *contract.Impairment `json:"reverseImpairment,omitempty"`
}
