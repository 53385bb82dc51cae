package links

import (
	"crypto/sha256"
	"encoding/hex"
)

// The ports that the sidecar has on the Pod address. A device cannot publish
// them.
const (
	// WirePort is the fabric wire, UDP.
	WirePort = 14800
	// MgmtPort is the VXLAN of the management network, UDP.
	MgmtPort = 14801
	// StatusPort is the sidecar's HTTP: probes, status, stages; TCP.
	StatusPort = 14802
	// VXLANPort is the wire's vxlan datapath, UDP.
	VXLANPort = 14803
)

// Where the sidecar finds its contract in the wire container.
const (
	// Dir is the folder of the <pod>-links ConfigMap: links.json.
	Dir = "/etc/c9s/links"
	// DirectoryDir is the folder of the lab's directory and addresses.
	DirectoryDir = "/etc/c9s/directory"
	// WireKeyFile is the key of the wire's hello; absent where the lab has none.
	WireKeyFile = "/etc/c9s/wire-key/key"
	// HostProc is the worker's /proc, mounted only where a link needs the
	// worker's network namespace (HostProc + "/1/ns/net").
	HostProc = "/host/proc"
)

// maxLabel is the longest DNS label (RFC 1035, 2.3.4).
const maxLabel = 63

// ServiceName is the name of one of a node's Services: the ID, "-" and a suffix,
// shortened by a digest where that is longer than a DNS label may be.
func ServiceName(id, suffix string) string {
	name := id + "-" + suffix
	if len(name) <= maxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := "-" + hex.EncodeToString(sum[:3]) + "-" + suffix
	return id[:maxLabel-len(tail)] + tail
}

// WireService is the headless Service at which the Pod of a node is found, for a
// node's ID or a Pod's name.
func WireService(id string) string { return ServiceName(id, "wire") }
