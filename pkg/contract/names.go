package contract

import (
	"crypto/sha256"
	"encoding/hex"
)

// Names of a lab's objects.
const (
	// ControllerName names the controller's ServiceAccount, Role, RoleBinding,
	// Deployment and Lease.
	ControllerName = "c9s-controller"
	// StatusConfigMap and AddressesConfigMap are filled by the controller. They
	// are rendered without data, so that applying them again keeps the data.
	StatusConfigMap    = "c9s-status"
	AddressesConfigMap = "c9s-addresses"
)

// maxLabel is the longest DNS label (RFC 1035, 2.3.4).
const maxLabel = 63

// ServiceName returns the name of one of a node's Services: the ID, "-" and a
// suffix. A digest replaces the end of an ID that makes the name longer than a DNS
// label may be.
func ServiceName(id, suffix string) string {
	name := id + "-" + suffix
	if len(name) <= maxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := "-" + hex.EncodeToString(sum[:3]) + "-" + suffix
	return id[:maxLabel-len(tail)] + tail
}

// WireService returns the name of the headless Service that resolves to the Pod of
// a node. id is the node's ID or the Pod's name.
func WireService(id string) string { return ServiceName(id, "wire") }
