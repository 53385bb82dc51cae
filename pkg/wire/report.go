package wire

import (
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Status is what a fabric does now.
type Status struct {
	Pod string `json:"pod"`
	// Epoch is when the process began, nanoseconds since 1970, or more where the
	// clock has stepped back since an earlier process of the Pod.
	Epoch uint64 `json:"epoch"`
	// Mode is open, authenticated or encrypted.
	Mode string `json:"mode"`
	// UnderlayMTU is that of the Pod network's interface, bytes.
	UnderlayMTU int `json:"underlayMtu"`
	// Segmentation tells whether the kernel cuts and merges datagrams.
	Segmentation bool `json:"segmentation"`
	// Dropped counts datagrams by reason.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	Wires   []WireStatus      `json:"wires"`
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
	// Up tells that the device has its cable plugged in; Reason why not.
	Up     bool      `json:"up"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	// LocalCarrier and RemoteCarrier are the devices' own states.
	LocalCarrier  bool `json:"localCarrier"`
	RemoteCarrier bool `json:"remoteCarrier"`
	// Datapath is udp, vxlan or local: what this end sends by. RemoteDatapath is
	// what the far end sends by. Why tells why auto or vxlan is not vxlan.
	Datapath       string `json:"datapath"`
	RemoteDatapath string `json:"remoteDatapath,omitempty"`
	Why            string `json:"why,omitempty"`
	// RTT is of heartbeats, milliseconds; Loss of heartbeats this end sent, 0..1.
	RTT  float64 `json:"rttMs"`
	Loss float64 `json:"loss"`
	// PathMTU is bytes of IP packet.
	PathMTU int `json:"pathMtu,omitempty"`
	// The counters are of the udp and local datapaths; a super-frame counts as
	// one. For vxlan the kernel counts, at device c9sv<id>.
	TxFrames   uint64               `json:"txFrames"`
	TxBytes    uint64               `json:"txBytes"`
	RxFrames   uint64               `json:"rxFrames"`
	RxBytes    uint64               `json:"rxBytes"`
	Drops      map[string]uint64    `json:"drops,omitempty"`
	Impairment *contract.Impairment `json:"impairment,omitempty"`
}
