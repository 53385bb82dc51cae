// Package wire carries Ethernet frames between the Pods of a lab: the fabric
// wire. One Fabric per Pod joins the legs of its links to those of other Pods,
// over one UDP socket or in the kernel, and makes a lost peer or a far end
// that is down look like an unplugged cable. docs/reference/wire.md describes the protocol.
//
// Nothing in here knows Kubernetes: it runs between any two network namespaces.
package wire

// The datapaths.
const (
	DatapathAuto  = "auto"
	DatapathUDP   = "udp"
	DatapathVXLAN = "vxlan"
	// DatapathLocal joins two Pods of one worker in the kernel. It is reported for a wire
	// inside the Pod too.
	DatapathLocal = "local"
)
