// Package cable holds the few types of a lab's links that the Pod has as well: the
// sidecar is spared the rest of the model, and the Kubernetes types that come
// along with it.
package cable

// WireID identifies one wire in the lab, 1..16777215 (it fits a VXLAN VNI, RFC 7348).
type WireID uint32

// VXLAN is a tunnel to outside the lab.
type VXLAN struct {
	// Remote is an IP address or a DNS name.
	Remote  string `json:"remote"`
	VNI     int    `json:"vni"`
	DstPort int    `json:"dstPort"`
	SrcPort int    `json:"srcPort,omitempty"`
	Parent  string `json:"parent,omitempty"`
}

// Impairment of one direction. The zero value impairs nothing.
type Impairment struct {
	// DelayMS and JitterMS are in milliseconds.
	DelayMS  float64 `json:"delayMs,omitempty"`
	JitterMS float64 `json:"jitterMs,omitempty"`
	// Loss, Corruption, Duplication, Reordering are percentages, 0..100.
	Loss        float64 `json:"loss,omitempty"`
	Corruption  float64 `json:"corruption,omitempty"`
	Duplication float64 `json:"duplication,omitempty"`
	Reordering  float64 `json:"reordering,omitempty"`
	// RateKbit is in kbit/s, 0 for no limit.
	RateKbit int `json:"rateKbit,omitempty"`
	// Seed makes the random choices repeatable; 0 picks one.
	Seed int64 `json:"seed,omitempty"`
}

// Port is one published port. Only the container side means anything here.
type Port struct {
	Container uint16 `json:"container"`
	// Protocol is TCP, UDP or SCTP.
	Protocol string `json:"protocol"`
	// Host is the host side that the user wrote, 0 if none.
	Host uint16 `json:"host,omitempty"`
}
