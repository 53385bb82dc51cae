package documents

import (
	"strings"
)

// adoptNode keeps the management addresses in the status of a Node.
func (r *reader) adoptNode(o *object) {
	management := own(o.Status.node, "directManagement")
	for key, to := range map[string]map[string]string{"ipv4": r.out.Adopt.IPv4, "ipv6": r.out.Adopt.IPv6} {
		if v := own(management, key); v != nil && v.Value != "" {
			address, _, _ := strings.Cut(v.Value, "/")
			to[o.Metadata.Name.V] = address
		}
	}
}

// adoptLink keeps the tunnel id in the status of a Link.
func (r *reader) adoptLink(o *object, spec linkSpec) {
	var id uint32
	if v := own(o.Status.node, "tunnelID"); v == nil || v.Decode(&id) != nil || id == 0 {
		return
	}
	r.out.Adopt.Wires[[2]string{
		spec.EndpointA.NodeName.V + ":" + spec.EndpointA.InterfaceName.V,
		spec.EndpointB.NodeName.V + ":" + spec.EndpointB.InterfaceName.V,
	}] = id
}
