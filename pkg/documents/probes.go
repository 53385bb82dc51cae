package documents

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// startupPeriod is the period of startup probes in seconds.
const startupPeriod = 5

// compileProbes gives the nodes their probes. It returns the port that each probed node
// must expose.
func (r *reader) compileProbes(b *block) map[string]int {
	ports := map[string]int{}
	p := b.probes
	if p == nil {
		return ports
	}
	if p.Enabled.isSet() && !p.Enabled.V {
		r.policy.add(b.name, b.at, b.names(b.nodes), "probes", noReadiness(p.Enabled.node))
		return ports
	}
	special := map[string]bool{}
	for _, v := range p.ExcludedNodes {
		if !v.isSet() {
			continue
		}
		if r.knownNode(b, v.node, v.V, "statusProbes.excludedNodes") && !special[v.V] {
			special[v.V] = true
			r.policy.add(b.name, v.node, []string{v.V}, "probes", noReadiness(v.node))
		}
	}
	if m := p.NodeProbeConfigurations.node; m != nil {
		if m.Kind != yaml.MappingNode {
			r.d.WrongType(m, "nodeProbeConfigurations", "a mapping")
			return ports
		}
		for _, e := range r.d.Entries(m) {
			var spec probeSpec
			r.d.Decode(e.Value, &spec, "nodeProbeConfigurations."+e.Key)
			if !r.knownNode(b, e.KeyNode, e.Key, "statusProbes.nodeProbeConfigurations") || special[e.Key] {
				continue
			}
			special[e.Key] = true
			if probes, port := r.probes(b, e.KeyNode, spec); probes != nil {
				r.policy.add(b.name, e.KeyNode, []string{e.Key}, "probes", probes)
				ports[e.Key] = port
			}
		}
	}
	if probes, port := r.probes(b, b.at, p.ProbeConfiguration); probes != nil {
		rest := b.without(func(n string) bool { return special[n] })
		r.policy.add(b.name, b.at, b.names(rest), "probes", probes)
		for _, n := range rest {
			ports[n] = port
		}
	}
	return ports
}

// knownNode warns of a node that the block is not for.
func (r *reader) knownNode(b *block, at *yaml.Node, node, field string) bool {
	if slices.Contains(b.nodes, node) {
		return true
	}
	r.warnf(CodeIgnored, at, "remove it, or correct the name", "%s: %s names %s, which is no node of it", b.name, field, node)
	return false
}

func noReadiness(at *yaml.Node) *yaml.Node {
	m := mapping(at)
	set(m, at, "noReadiness", boolean(at, true))
	return m
}

// probes builds the probes of a configuration; nil if it has none. The port is one that must be
// exposed so that the kubelet can test it, 0 for none.
func (r *reader) probes(b *block, at *yaml.Node, spec probeSpec) (*yaml.Node, int) {
	port, place := 0, at
	if spec.SSH != nil {
		port = 22
		if spec.SSH.Port.V != 0 {
			port, place = spec.SSH.Port.V, spec.SSH.Port.node
		}
	}
	if spec.TCP != nil {
		switch {
		case !spec.TCP.Port.isSet():
			if spec.SSH == nil {
				r.errorf(CodeMissingField, at, "add port", "tcpProbeConfiguration has no port")
			}
		case spec.SSH == nil:
			port, place = spec.TCP.Port.V, spec.TCP.Port.node
		case port != spec.TCP.Port.V:
			r.warnf(CodeProbe, spec.TCP.Port.node, "remove sshProbeConfiguration to test this port", "of two ports to probe, only port %d is tested, by a login", port)
		}
	}
	if port != 0 && (port < 1 || port > 65535) {
		r.errorf(CodeValue, place, "use a number from 1 to 65535", "port %d is not possible", port)
		return nil, 0
	}
	seconds := spec.StartupSeconds
	if seconds.V < 0 {
		r.errorf(CodeValue, seconds.node, "write a number of seconds", "startupSeconds is %d", seconds.V)
		return nil, 0
	}
	if port == 0 {
		if seconds.V > 0 {
			r.warnf(CodeIgnored, seconds.node, "remove it, or add tcpProbeConfiguration", "startupSeconds has no effect without a port to probe: c9s waits for a node as long as it takes")
		}
		return nil, 0
	}
	out := mapping(place)
	if spec.SSH != nil {
		set(out, place, "ssh", spec.login(place))
		if seconds.V == 0 {
			return out, 0
		}
	}
	if e := b.expose; e != nil && (e.DisableExpose.V || e.ExposeType.V == "None") {
		if spec.SSH != nil {
			r.warnf(CodeProbe, seconds.node, "expose the node, or remove it", "startupSeconds has no effect: port %d is not exposed", port)
			return out, 0
		}
		r.warnf(CodeProbe, place, "expose the node, or remove the probe", "port %d is not tested: it is not exposed", port)
		return nil, 0
	}
	if spec.SSH == nil {
		r.warnf(CodeProbe, place, "remove the probe to keep the test of the kind", "the probe of port %d replaces the readiness test of the kind", port)
	}
	probe := func() *yaml.Node {
		socket, m := mapping(place), mapping(place)
		set(socket, place, "port", number(place, port))
		set(m, place, "tcpSocket", socket)
		return m
	}
	if spec.SSH == nil {
		set(out, place, "readiness", probe())
	}
	if seconds.V > 0 {
		startup := probe()
		set(startup, seconds.node, "periodSeconds", number(seconds.node, startupPeriod))
		set(startup, seconds.node, "failureThreshold", number(seconds.node, max(1, seconds.V/startupPeriod)))
		set(out, seconds.node, "startup", startup)
	}
	return out, port
}

// login is the SSH probe of a configuration.
func (spec probeSpec) login(at *yaml.Node) *yaml.Node {
	m := mapping(at)
	if p := spec.SSH.Port; p.V != 0 {
		set(m, at, "port", p.node)
	}
	if v := spec.SSH.Username; v.V != "" {
		set(m, at, "username", v.node)
	}
	if v := spec.SSH.Password; v.V != "" {
		set(m, at, "password", v.node)
	}
	return m
}
