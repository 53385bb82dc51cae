package contract

import "net/netip"

// DirectoryVersion is the version of Directory in JSON.
const DirectoryVersion = "c9s.dev/directory/v1"

// Directory lists the lab's nodes with their names and addresses. It is rendered
// into the ConfigMap c9s-directory and, for large labs, its numbered followers.
// Each holds a Directory with a part of the nodes under the key DirectoryKey(i),
// and the same nodes as lines of a hosts file under HostsKey(i).
type Directory struct {
	Version string `json:"version"`
	Lab     string `json:"lab"`
	// Nodes are sorted by name, over all parts.
	Nodes []DirectoryNode `json:"nodes"`
}

// DirectoryNode is one node of the lab.
type DirectoryNode struct {
	Name string `json:"name"`
	// Pod is the Kubernetes name of the node's Pod. Peers resolve it by
	// PodHost(Pod).
	Pod string `json:"pod"`
	// IPv4, IPv6 and MAC are those of the Pod's management interface. They are
	// not set for a node without one.
	IPv4 netip.Addr `json:"ipv4,omitzero"`
	IPv6 netip.Addr `json:"ipv6,omitzero"`
	MAC  string     `json:"mac,omitempty"`
	// Kind is set for a node that is not the first of its Pod, whose objects name that
	// one's.
	Kind string `json:"kind,omitempty"`
	// Names resolve to the addresses: the node's name, container name, FQDN,
	// aliases, and the names of a chassis' components.
	Names []string `json:"names,omitempty"`
}

// AddressesVersion is the version of Addresses in JSON.
const AddressesVersion = "c9s.dev/addresses/v1"

// AddressesFile is the key in the ConfigMap c9s-addresses, which is mounted next to
// the directory.
const AddressesFile = "addresses.json"

// Addresses are the Pods' addresses as the controller last observed them. They are
// a shortcut: DNS and the wire's hello find the same addresses later.
type Addresses struct {
	Version string `json:"version"`
	// Pods maps a Pod's Kubernetes name to its addresses.
	Pods map[string][]netip.Addr `json:"pods"`
}

// DirectoryParts is the largest number of ConfigMaps for the directory. Pods mount
// all of them as optional, so that a growing lab never changes a Pod.
const DirectoryParts = 4

// DirectoryName returns the name of the ConfigMap with part i, 0-based.
func DirectoryName(i int) string { return numbered("c9s-directory", i) }

// DirectoryKey returns the key of part i's JSON.
func DirectoryKey(i int) string { return numbered("directory", i) + ".json" }

// HostsKey returns the key of part i's lines of a hosts file.
func HostsKey(i int) string { return numbered("hosts", i) }
