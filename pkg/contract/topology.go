package contract

// TopologyVersion names the shape of Topology in JSON.
const TopologyVersion = "c9s.dev/topology/v1"

// TopologyFile is the key in the ConfigMaps TopologyName(i).
const TopologyFile = "topology.json"

// Topology lists every link of the lab: what status compares the sidecars' answers with.
// Pods do not mount it. A large lab has several ConfigMaps, each with a part of the links.
type Topology struct {
	Version string `json:"version"`
	Lab     string `json:"lab"`
	// Pods are the digests of the Pods' links (LinksDigest), by the name of the Pod's
	// objects, all in the first part. A Pod whose sidecar reports another one has not got
	// an edit yet.
	Pods map[string]string `json:"pods,omitempty"`
	// Links are sorted by their first end, over all parts.
	Links []TopologyLink `json:"links"`
}

// TopologyLink is one link as the sidecars are to make it.
type TopologyLink struct {
	// ID is 0 for a link with one end in the lab.
	ID WireID `json:"id,omitempty"`
	// Kind is wire, local, host, macvlan, vxlan, vxlan-stitch, mgmt-net or dummy.
	Kind string       `json:"kind"`
	A    TopologyEnd  `json:"a"`
	B    *TopologyEnd `json:"b,omitempty"`
}

// TopologyEnd is one end of a link. Interface is the Linux name.
type TopologyEnd struct {
	Node      string `json:"node"`
	Interface string `json:"interface"`
	// Impairment is what this end does to the frames that it sends; nil for none.
	Impairment *Impairment `json:"impairment,omitempty"`
}

// TopologyParts is how many ConfigMaps the topology may fill.
const TopologyParts = 8

// TopologyName returns the name of the ConfigMap with part i, 0-based.
func TopologyName(i int) string { return numbered("c9s-topology", i) }
