package contract

import (
	"fmt"
	"net/netip"
	"strings"
)

// DirectoryVersion is the version of Directory in JSON.
const DirectoryVersion = "c9s.dev/directory/v1"

// DirectoryConfigMap is the ConfigMap with the Directory: as JSON under DirectoryFile or,
// if that is large, compressed with gzip under DirectoryFile + ".gz".
const (
	DirectoryConfigMap = "c9s-directory"
	DirectoryFile      = "directory.json"
)

// Directory lists the lab's nodes with their names and addresses.
type Directory struct {
	Version string `json:"version"`
	Lab     string `json:"lab"`
	// Nodes are sorted by name.
	Nodes []DirectoryNode `json:"nodes"`
}

// Hosts returns the nodes' names as lines of a hosts file.
func (d Directory) Hosts() []byte {
	var out []byte
	for _, n := range d.Nodes {
		for _, a := range []netip.Addr{n.IPv4, n.IPv6} {
			if a.IsValid() && len(n.Names) > 0 {
				out = fmt.Appendf(out, "%s\t%s\n", a, strings.Join(n.Names, " "))
			}
		}
	}
	return out
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
