package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// environment sets the container's environment, apart from CLAB_INTFS, which is added
// when the container is created.
func (d *draft) environment() {
	x := d.data
	x.Labels = d.labels()
	x.noProxy()
	for key, value := range x.Labels {
		x.Env["CLAB_LABEL_"+envKey(key)] = value
	}
	x.endpoints = endpointData(d.lab, d.node)
	x.aroundManagement()
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

// labels returns the user's labels and those that containerlab sets, without those that
// depend on the machine: the lab's folder, the file's path, its owner and the Git state.
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

// noProxy completes the user's no_proxy (no_proxy takes precedence over NO_PROXY), so that
// nothing in the lab is reached over a proxy. It lists the lab's domain and subnets rather
// than the other nodes, so that a new node changes no other node's plan.
func (x *NodeData) noProxy() {
	list := noProxy(x.Env, x.MgmtSubnetIPv4, x.MgmtSubnetIPv6, x.LabName)
	x.Env["no_proxy"], x.Env["NO_PROXY"] = list, list
}

// NoProxy returns the value of no_proxy for a node with the environment env. It is the same
// for every planner.
func NoProxy(env map[string]string, l *lab.Lab) string {
	return noProxy(env, prefixText(l.Mgmt.IPv4.Subnet), prefixText(l.Mgmt.IPv6.Subnet), l.Name)
}

func noProxy(env map[string]string, subnet4, subnet6, labName string) string {
	list, ok := env["no_proxy"]
	if !ok {
		list = env["NO_PROXY"]
	}
	items := strings.Split(list, ",")
	if list == "" {
		items = nil
	}
	for _, item := range []string{
		"localhost", "127.0.0.1", "::1", "*.local", subnet4, subnet6, "." + labName + ".io",
	} {
		if item != "" && !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return strings.Join(items, ",")
}
