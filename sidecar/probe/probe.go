// Package probe tries, on a worker, what the sidecar will ask its kernel for: each
// feature in a network namespace of its own, which is gone afterwards.
package probe

// Version names the shape of Report in JSON.
const Version = "c9s.dev/probe/v1"

// Report is what one worker's kernel can do.
type Report struct {
	Version string `json:"version"`
	// Kernel is the release: "6.8.0-45-generic".
	Kernel string `json:"kernel"`
	// MTU is that of the Pod network's interface; 0 where there is none.
	MTU int `json:"mtu,omitempty"`
	// DNS is why the cluster's own name cannot be resolved; "" where it can.
	DNS      string    `json:"dns,omitempty"`
	Features []Outcome `json:"features"`
}

// Outcome is one try. Error is "" where it worked.
type Outcome struct {
	Feature Feature `json:"feature"`
	Error   string  `json:"error,omitempty"`
}

// Feature is something of the kernel that can be there or not.
type Feature string

// What is tried.
const (
	Veth      Feature = "veth"
	Bridge    Feature = "bridge"
	Dummy     Feature = "dummy"
	VXLAN     Feature = "vxlan"
	Macvlan   Feature = "macvlan"
	VLAN      Feature = "vlan"
	Rules     Feature = "policy routing"
	NAT       Feature = "nftables inet nat"
	Conntrack Feature = "connection tracking"
	Redirect  Feature = "tc u32 mirred"
	Flower    Feature = "tc flower mirred"
	// PeerRedirect joins Pods of one worker.
	PeerRedirect Feature = "tc bpf redirect peer"
	Shield       Feature = "tc bpf"
	Packet       Feature = "packet sockets"
	VnetHeader   Feature = "packet vnet header"
	Segment      Feature = "UDP segmentation"
	TUN          Feature = "tun"
	KVM          Feature = "kvm"
)

// Outcome finds a feature's; ok is false where it was not tried, as by an older
// image.
func (r Report) Outcome(f Feature) (o Outcome, ok bool) {
	for _, o := range r.Features {
		if o.Feature == f {
			return o, true
		}
	}
	return Outcome{}, false
}

// maxError keeps a report below what a container may leave as its last word (4096
// bytes).
const maxError = 90

func outcome(f Feature, err error) Outcome {
	if err == nil {
		return Outcome{Feature: f}
	}
	text := err.Error()
	if len(text) > maxError {
		text = text[:maxError-3] + "..."
	}
	return Outcome{Feature: f, Error: text}
}
