package documents

import "go.yaml.in/yaml/v3"

// profile is a NodeProfile or LauncherProfile.
type profile struct {
	kind string
	name string
	meta meta
	node *yaml.Node
	spec profileSpec
	used []string // nodes
}

func (r *reader) addProfile(o *object, kind string) {
	p := &profile{kind: kind, name: o.Metadata.Name.V, meta: o.Metadata, node: o.node}
	if o.Spec.node != nil {
		r.d.Decode(o.Spec.node, &p.spec, "spec")
	}
	if e := p.spec.Expose; e != nil && e.ExposeType.V != "" {
		r.oneOf(e.ExposeType, "expose.exposeType", exposeTypes)
	}
	id := profileID(kind, p.name)
	r.profiles[id] = p
	r.order = append(r.order, p)
}

func profileID(kind, name string) string { return kind + " " + name }

// refer returns the profile that a Node names. A missing one is an error.
func (r *reader) refer(node string, spec *nodeSpec) *profile {
	kind, ref := "NodeProfile", spec.ProfileRef
	if ref == nil {
		kind, ref = "LauncherProfile", spec.LauncherProfileRef
	}
	if ref == nil {
		return nil
	}
	if ref.Name.V == "" {
		if ref.Name.isSet() {
			r.errorf(CodeMissingField, ref.Name.node, "name a "+kind, "Node %s: the reference to a profile is empty", node)
		}
		return nil
	}
	p := r.profiles[profileID(kind, ref.Name.V)]
	if p == nil {
		r.errorf(CodeProfile, ref.Name.node, "add the "+kind+" to the input, or correct the name", "Node %s refers to %s %s, which is not in the input", node, kind, ref.Name.V)
	}
	return p
}

// compileProfile adds what a profile sets for its nodes.
func (r *reader) compileProfile(p *profile, all bool, pullsItself func(string) bool) {
	b := &block{name: p.name, at: p.node, expose: p.spec.Expose, pull: p.spec.ImagePull, resources: p.spec.Resources.node,
		scheduling: p.spec.Scheduling, probes: p.spec.StatusProbes, nodes: p.used, all: all, pullsItself: pullsItself}
	if d := p.spec.Deployment; d != nil {
		b.persist = d.Persistence
		r.launcher(p.name, d.launcherSpec)
	}
	if len(p.used) == 0 {
		r.warnf(CodeIgnored, p.node, "remove it, or refer to it", "profile %s has no effect: no Node refers to it", p.name)
		return
	}
	r.compileBlock(b)
}

// mgmtKeys are the keys of a profile's mgmt block that a lab has.
func (m *mgmtSpec) keys() map[string]*yaml.Node {
	return map[string]*yaml.Node{
		"ipv4-subnet": m.IPv4Subnet.node, "ipv4-gw": m.IPv4Gw.node, "ipv4-range": m.IPv4Range.node,
		"ipv6-subnet": m.IPv6Subnet.node, "ipv6-gw": m.IPv6Gw.node, "ipv6-range": m.IPv6Range.node,
		"network": m.Network.node, "mtu": m.MTU.node, "external-access": m.ExternalAccess.node,
	}
}

// compileMgmt joins the mgmt blocks of the profiles that are used.
func (r *reader) compileMgmt() *yaml.Node {
	out := mapping(r.first)
	from := map[string]*profile{}
	for _, p := range r.order {
		if p.spec.Mgmt == nil || len(p.used) == 0 {
			continue
		}
		keys := p.spec.Mgmt.keys()
		for _, key := range []string{"network", "ipv4-subnet", "ipv4-gw", "ipv4-range", "ipv6-subnet", "ipv6-gw", "ipv6-range", "mtu", "external-access"} {
			v := keys[key]
			switch {
			case v == nil:
			case from[key] == nil:
				from[key] = p
				set(out, v, key, v)
			default:
				if first := own(out, key); first.Value != v.Value {
					r.errorf(CodeMgmt, v, "a lab has one management network; write the same value in both",
						"profile %s sets mgmt.%s to %s, and profile %s to %s (%s)", p.name, key, v.Value, from[key].name, first.Value, r.d.Pos(first))
				}
			}
		}
	}
	if len(out.Content) == 0 {
		return nil
	}
	return out
}
