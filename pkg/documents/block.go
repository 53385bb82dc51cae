package documents

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// block is the Kubernetes side of some nodes: that of a profile, or of a Topology.
type block struct {
	name   string
	at     *yaml.Node
	expose *exposeSpec
	pull   *imagePullSpec
	// resources are those of each node; byNode those of single ones.
	resources  *yaml.Node
	byNode     map[string]*yaml.Node
	scheduling *schedulingSpec
	persist    *persistSpec
	probes     *probesSpec

	nodes []string
	// all is set if the nodes are all of the lab.
	all bool
	// pullsItself reports whether a node has an image-pull-policy of its own.
	pullsItself func(node string) bool
}

// names returns some of the block's nodes for a match: nil for all of the lab.
func (b *block) names(nodes []string) []string {
	if b.all && len(nodes) == len(b.nodes) {
		return nil
	}
	return nodes
}

// without returns the nodes of the block that are not in list.
func (b *block) without(skip func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(b.nodes), skip)
}

// defaultPorts are those that clabernetes exposes by default.
var defaultPorts = []string{"21", "22", "23", "80", "161/udp", "443", "830", "5000", "5900", "6030", "9339", "9340", "9559", "57400"}

var exposeTypes = []string{"LoadBalancer", "ClusterIP", "Headless", "None"}

var pullPolicies = []string{"Always", "IfNotPresent", "Never"}

// compileBlock adds the profiles of a block.
func (r *reader) compileBlock(b *block) {
	if len(b.nodes) == 0 {
		return
	}
	probed := r.compileProbes(b)
	r.compileExpose(b, probed)
	for _, node := range b.nodes {
		if res := b.byNode[node]; res != nil {
			r.policy.add(b.name, res, []string{node}, "resources", res)
		}
	}
	if b.resources != nil {
		r.policy.add(b.name, b.at, b.names(b.without(func(n string) bool { return b.byNode[n] != nil })), "resources", b.resources)
	}
	if s := b.scheduling; s != nil {
		r.addIf(b, "nodeSelector", s.NodeSelector.node)
		r.addIf(b, "tolerations", s.Tolerations.node)
		r.addIf(b, "affinity", s.Affinity.node)
	}
	if p := b.persist; p != nil && p.Enabled.V {
		claim := mapping(p.Enabled.node)
		set(claim, p.Enabled.node, "enabled", p.Enabled.node)
		size := p.ClaimSize.node
		if p.ClaimSize.V == "" {
			size = text(p.Enabled.node, "5Gi")
		}
		set(claim, size, "size", size)
		if p.StorageClassName.V != "" {
			set(claim, p.StorageClassName.node, "storageClass", p.StorageClassName.node)
		}
		r.policy.add(b.name, b.at, b.names(b.nodes), "persistence", claim)
	}
	r.compilePull(b)
}

func (r *reader) addIf(b *block, key string, v *yaml.Node) {
	if v != nil && len(v.Content) > 0 {
		r.policy.add(b.name, b.at, b.names(b.nodes), key, v)
	}
}

func (r *reader) compilePull(b *block) {
	p := b.pull
	if p == nil {
		return
	}
	r.nestedPull(b.name, p.nestedPull)
	if p.Policy.V != "" && r.oneOf(p.Policy, "imagePull.policy", pullPolicies) {
		// The node's own policy wins there.
		r.policy.add(b.name, b.at, b.names(b.without(b.pullsItself)), "imagePullPolicy", p.Policy.node)
	}
	if names := secretNames(p.PullSecrets); names != nil {
		r.policy.add(b.name, b.at, b.names(b.nodes), "imagePullSecrets", names)
	}
}

// secretNames returns a list of the names that are given, nil for none.
func secretNames(values []value[string]) (out *yaml.Node) {
	for _, v := range values {
		if v.isSet() {
			if out == nil {
				out = list(v.node)
			}
			out.Content = append(out.Content, v.node)
		}
	}
	return out
}

// nestedPull warns of how the launcher pulls images.
func (r *reader) nestedPull(name string, p nestedPull) {
	if keys, at := given(p); at != nil {
		r.warnf(CodeLauncher, at, "configure the registry in the workers' container runtime, and name pullSecrets",
			"%s: imagePull.%s has no effect: the kubelet pulls the images", name, strings.Join(keys, ", imagePull."))
	}
}

// launcher warns of settings of the launcher.
func (r *reader) launcher(name string, l launcherSpec) {
	if keys, at := given(l); at != nil {
		r.warnf(CodeLauncher, at, "remove it", "%s: deployment.%s has no effect: there is no launcher", name, strings.Join(keys, ", deployment."))
	}
}

// oneOf reports whether a value is one of those that its field accepts.
func (r *reader) oneOf(v value[string], field string, known []string) bool {
	if slices.Contains(known, v.V) {
		return true
	}
	r.errorf(CodeValue, v.node, "use "+strings.Join(known, ", "), "%s is %q", field, v.V)
	return false
}

// compileExpose gives the nodes their Services. probed are the ports that must be reachable
// for probes.
func (r *reader) compileExpose(b *block, probed map[string]int) {
	at := b.at
	kind := text(at, "LoadBalancer")
	var e exposeSpec
	if b.expose != nil {
		e = *b.expose
	}
	if e.ExposeType.V != "" && r.oneOf(e.ExposeType, "expose.exposeType", exposeTypes) {
		kind = e.ExposeType.node
	}
	if e.DisableExpose.V {
		kind = text(e.DisableExpose.node, "None")
	}
	base := defaultPorts
	portsAt := at
	if e.DisableAutoExpose.V {
		base, portsAt = nil, e.DisableAutoExpose.node
	}
	if e.UseIPv6.V && kind.Value == "LoadBalancer" {
		if e.UseIPv4.V {
			r.warnf(CodeIgnored, e.UseIPv6.node, "remove it", "expose.useNodeMgmtIpv6Address has no effect: the load balancer is asked for the IPv4 address")
		} else {
			r.warnf(CodeIgnored, e.UseIPv6.node, "give the nodes no IPv4 address, or set loadBalancerIP in an overlay",
				"expose.useNodeMgmtIpv6Address: the load balancer is asked for the IPv4 address of a node that has both")
		}
	}
	groups := map[int][]string{}
	for _, node := range b.nodes {
		groups[probed[node]] = append(groups[probed[node]], node)
	}
	for _, port := range slices.Sorted(maps.Keys(groups)) {
		ports := texts(portsAt, base...)
		if port > 0 && !slices.Contains(base, strconv.Itoa(port)) {
			ports.Content = append(ports.Content, number(portsAt, port))
		}
		expose := mapping(at)
		set(expose, at, "type", kind)
		if kind.Value != "None" {
			set(expose, portsAt, "ports", ports)
		}
		if kind.Value == "LoadBalancer" && (e.UseIPv4.V || e.UseIPv6.V) {
			flag := e.UseIPv4.node
			if !e.UseIPv4.V {
				flag = e.UseIPv6.node
			}
			set(expose, flag, "useMgmtAddress", boolean(flag, true))
		}
		r.policy.add(b.name, at, b.names(groups[port]), "expose", expose)
	}
}
