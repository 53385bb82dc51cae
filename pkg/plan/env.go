package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// environment settles what the container's environment is, apart from
// CLAB_INTFS, which is added when the container is made.
func (d *draft) environment() {
	x := d.data
	x.Labels = d.labels()
	x.noProxy()
	for key, value := range x.Labels {
		x.Env["CLAB_LABEL_"+envKey(key)] = value
	}
	x.endpoints = endpointData(d.lab, d.node)
	c := &d.kind.Container
	x.Image = cmp.Or(x.Image, d.expand(c.Image))
	for key, value := range d.expandMap(c.Env) {
		if _, ok := x.Env[key]; !ok {
			x.Env[key] = value
		}
	}
	for key, value := range d.expandMap(c.EnvForce) {
		if value != "" {
			x.Env[key] = value
		}
	}
	x.MacAddress = d.expand(c.MgmtMAC)
}

// labels are the user's and those that containerlab sets, without what depends on
// the machine: the lab's folder, the file's path, its owner and the git state.
func (d *draft) labels() map[string]string {
	labels := maps.Clone(d.node.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	x := d.data
	labels["containerlab"] = x.LabName
	labels["clab-node-name"] = x.ShortName
	labels["clab-node-longname"] = x.LongName
	labels["clab-node-kind"] = x.Kind
	labels["clab-node-type"] = x.NodeType
	labels["clab-node-group"] = x.Group
	return labels
}

// envKey turns a label's name into the end of a variable's: upper case, "-", "+",
// "." and "/" as "_", other characters dropped.
func envKey(label string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		case r == '-', r == '+', r == '.', r == '/':
			return '_'
		}
		return -1
	}, label)
}

// noProxy completes the user's no_proxy, the lower-case one first, so that nothing
// in the lab is reached over a proxy. It names the lab's domain and subnets and
// not the other nodes, so that a new node changes no other node's plan.
func (x *NodeData) noProxy() {
	list, ok := x.Env["no_proxy"]
	if !ok {
		list = x.Env["NO_PROXY"]
	}
	items := strings.Split(list, ",")
	if list == "" {
		items = nil
	}
	for _, item := range []string{
		"localhost", "127.0.0.1", "::1", "*.local", x.MgmtSubnetIPv4, x.MgmtSubnetIPv6, "." + x.LabName + ".io",
	} {
		if item != "" && !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	list = strings.Join(items, ",")
	x.Env["no_proxy"], x.Env["NO_PROXY"] = list, list
}
