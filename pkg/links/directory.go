package links

import "net/netip"

// DirectoryVersion names the shape of Directory in JSON.
const DirectoryVersion = "c9s.dev/directory/v1"

// Directory is the lab's telephone book. It is rendered into the ConfigMap
// c9s-directory and, for large labs, its numbered followers; every one of them
// holds a Directory with a part of the nodes, under the key DirectoryKey(i), and
// the same nodes as hosts-file lines under HostsKey(i).
type Directory struct {
	Version string `json:"version"`
	Lab     string `json:"lab"`
	// Nodes are sorted by name, over all parts.
	Nodes []DirectoryNode `json:"nodes"`
}

// DirectoryNode is one node of the lab.
type DirectoryNode struct {
	Name string `json:"name"`
	// Pod is the Kubernetes name of the node's Pod: peers find it by
	// WireService(Pod).
	Pod string `json:"pod"`
	// IPv4, IPv6 and MAC are those of the Pod's management interface; not set
	// for a node without one.
	IPv4 netip.Addr `json:"ipv4,omitzero"`
	IPv6 netip.Addr `json:"ipv6,omitzero"`
	MAC  string     `json:"mac,omitempty"`
	// Names resolve to the addresses: the node's name, container name, FQDN,
	// aliases, and the names of a chassis' components.
	Names []string `json:"names,omitempty"`
}

// AddressesVersion names the shape of Addresses in JSON.
const AddressesVersion = "c9s.dev/addresses/v1"

// AddressesFile is the key in the ConfigMap c9s-addresses, mounted beside the
// directory.
const AddressesFile = "addresses.json"

// Addresses are the Pods' present addresses, as the controller last saw them.
// They speed up what DNS and the wire's hello find out anyway.
type Addresses struct {
	Version string `json:"version"`
	// Pods maps a Pod's Kubernetes name to its addresses.
	Pods map[string][]netip.Addr `json:"pods"`
}

// DirectoryParts is how many ConfigMaps the directory may fill. Pods mount all
// of them as optional, so that a growing lab never changes a Pod.
const DirectoryParts = 4

// DirectoryName is the name of the ConfigMap with part i, 0-based.
func DirectoryName(i int) string { return "c9s-directory" + part(i) }

// DirectoryKey is the key of part i's JSON.
func DirectoryKey(i int) string { return "directory" + part(i) + ".json" }

// HostsKey is the key of part i's hosts-file lines.
func HostsKey(i int) string { return "hosts" + part(i) }

func part(i int) string {
	if i == 0 {
		return ""
	}
	return "-" + string(rune('0'+i))
}
