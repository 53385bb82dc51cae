package inventory

import (
	"net/netip"
	"strconv"
)

// The types have the keys of containerlab's topology-data.json.
type topologyData struct {
	Name  string              `json:"name"`
	Type  string              `json:"type"`
	Clab  clab                `json:"clab"`
	Keys  []string            `json:"ssh-pub-keys"`
	Nodes map[string]dataNode `json:"nodes"`
	Links []dataLink          `json:"links"`
}

type clab struct {
	Config struct {
		Prefix string            `json:"prefix"`
		Mgmt   map[string]string `json:"mgmt"`
	} `json:"config"`
}

type dataNode struct {
	Index      string            `json:"index"`
	ShortName  string            `json:"shortname"`
	LongName   string            `json:"longname"`
	FQDN       string            `json:"fqdn"`
	Group      string            `json:"group"`
	LabDir     string            `json:"labdir"`
	Kind       string            `json:"kind"`
	Image      string            `json:"image"`
	MgmtNet    string            `json:"mgmt-net"`
	MgmtIntf   string            `json:"mgmt-intf"`
	IPv4       string            `json:"mgmt-ipv4-address"`
	IPv4Length int               `json:"mgmt-ipv4-prefix-length"`
	IPv6       string            `json:"mgmt-ipv6-address"`
	IPv6Length int               `json:"mgmt-ipv6-prefix-length"`
	MAC        string            `json:"mac-address"`
	Labels     map[string]string `json:"labels"`
	Ports      []struct{}        `json:"port-bindings"`
}

type dataLink struct {
	Endpoints struct {
		A dataEnd `json:"a"`
		Z dataEnd `json:"z"`
	} `json:"endpoints"`
}

type dataEnd struct {
	Node      string `json:"node"`
	Interface string `json:"interface"`
	MAC       string `json:"mac"`
	Peer      string `json:"peer"`
}

// TopologyData returns what containerlab writes to topology-data.json. What a cluster does not
// have is empty: the folder of the lab, ports of the host, keys.
func (l *Lab) TopologyData() ([]byte, error) {
	out := topologyData{Name: l.Name, Type: "clab", Keys: []string{}, Nodes: map[string]dataNode{}, Links: []dataLink{}}
	out.Clab.Config.Mgmt = map[string]string{"network": "clab"}
	if l.IPv4.IsValid() {
		out.Clab.Config.Mgmt["ipv4-subnet"] = l.IPv4.Masked().String()
	}
	if l.IPv6.IsValid() {
		out.Clab.Config.Mgmt["ipv6-subnet"] = l.IPv6.Masked().String()
	}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		labels := n.Labels
		if labels == nil {
			labels = map[string]string{}
		}
		out.Nodes[n.Name] = dataNode{
			Index: strconv.Itoa(i), ShortName: n.Name, LongName: n.LongName, FQDN: n.FQDN, Kind: n.Kind, Image: n.Image,
			MgmtNet: "clab", MgmtIntf: n.MgmtIntf, IPv4: address(n.IPv4), IPv4Length: length(n.IPv4, l.IPv4),
			IPv6: address(n.IPv6), IPv6Length: length(n.IPv6, l.IPv6), MAC: n.MAC, Labels: labels, Ports: []struct{}{},
		}
	}
	for _, k := range l.Links {
		if k.B == nil {
			continue
		}
		var link dataLink
		link.Endpoints.A = dataEnd{Node: k.A.Node, Interface: k.A.Interface, Peer: "z"}
		link.Endpoints.Z = dataEnd{Node: k.B.Node, Interface: k.B.Interface, Peer: "a"}
		out.Links = append(out.Links, link)
	}
	return indented(out)
}

// length is the prefix length of an address in the network.
func length(a netip.Addr, network netip.Prefix) int {
	if !a.IsValid() || !network.IsValid() {
		return 0
	}
	return network.Bits()
}
