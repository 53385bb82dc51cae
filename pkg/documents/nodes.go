package documents

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The labels of clabernetes that say something about a lab.
const (
	labelOwner        = "c9s.run/topologyOwner"
	labelAppProtocols = "c9s.run/appProtocols"
	annotationReset   = "c9s.run/device-state-reset"
)

// compileNodes builds the topology of Nodes and Links.
func (r *reader) compileNodes() {
	at := r.first
	root := mapping(at)
	name := r.labName()
	set(root, name, "name", name)
	nodes, topo := mapping(at), mapping(at)
	specs := map[string]*nodeSpec{}
	bare := &block{name: "defaults", at: at}
	var names []string
	pulls := map[string]bool{}
	for _, o := range r.nodes {
		name := o.Metadata.Name.V
		spec := &nodeSpec{}
		if o.Spec.node != nil {
			r.d.DecodeStruct(o.Spec.node, spec, "", nil)
		}
		specs[name] = spec
		names = append(names, name)
		def := r.nodeDef(o, spec)
		set(nodes, o.Metadata.Name.node, name, def)
		nodes.Content[len(nodes.Content)-2] = o.Metadata.Name.node
		r.files(name, def, nil, spec)
		pulls[name] = own(def, "image-pull-policy") != nil
		if p := r.refer(name, spec); p != nil {
			p.used = append(p.used, name)
		} else {
			bare.nodes = append(bare.nodes, name)
		}
		r.adoptNode(o)
	}
	set(topo, at, "nodes", nodes)
	pullsItself := func(n string) bool { return pulls[n] }
	for _, p := range r.order {
		r.compileProfile(p, len(p.used) == len(names), pullsItself)
	}
	bare.all, bare.pullsItself = len(bare.nodes) == len(names), pullsItself
	r.compileBlock(bare)
	if mgmt := r.compileMgmt(); mgmt != nil {
		set(root, mgmt, "mgmt", mgmt)
	}
	if links := r.compileLinks(); len(links.Content) > 0 {
		set(topo, at, "links", links)
	}
	set(root, at, "topology", topo)
	r.out.Topology = root
}

// labName is the lab's name: the owner that all nodes have, else the namespace.
func (r *reader) labName() *yaml.Node {
	var owner *yaml.Node
	for i, o := range r.nodes {
		v := own(o.Metadata.Labels.node, labelOwner)
		if v == nil || i > 0 && (owner == nil || owner.Value != v.Value) {
			if v != nil && owner != nil && owner.Value != v.Value {
				r.errorf(CodeMixed, v, "render the Nodes of each Topology on their own", "the Nodes are of two Topologies: %s (%s) and %s", owner.Value, r.d.Pos(owner), v.Value)
				return owner
			}
			owner = nil
			break
		}
		owner = v
	}
	switch {
	case owner != nil:
		return owner
	case r.out.Namespace != "":
		return r.namespaced
	}
	r.errorf(CodeName, r.first, "set metadata.namespace, or the label "+labelOwner, "the documents do not name the lab")
	return text(r.first, "lab")
}

// nodeDef is a Node as the definition of a topology's node.
func (r *reader) nodeDef(o *object, spec *nodeSpec) *yaml.Node {
	at := o.node
	if o.Spec.node != nil {
		at = o.Spec.node
	}
	def := mapping(at)
	for _, e := range spec.keys {
		v := e.Value
		switch e.Key {
		case "labels":
			r.errorf(CodeUnknownField, e.KeyNode, "move them to metadata.labels", "spec.labels does not exist")
			continue
		case "restart-policy":
			if lower := strings.ToLower(v.Value); v.Kind == yaml.ScalarNode && lower != v.Value {
				v = text(v, lower)
			}
		}
		def.Content = append(def.Content, e.KeyNode, v)
	}
	if labels := r.nodeLabels(o, spec); len(labels.Content) > 0 {
		set(def, labels, "labels", labels)
	}
	if a := own(o.Metadata.Annotations.node, annotationReset); a != nil {
		r.warnf(CodeIgnored, a, "run c9s reset NODE once to start it afresh", "the annotation %s has no effect", annotationReset)
	}
	return def
}

// nodeLabels are the labels of a node that are the user's.
func (r *reader) nodeLabels(o *object, spec *nodeSpec) *yaml.Node {
	at := o.node
	if o.Metadata.Labels.node != nil {
		at = o.Metadata.Labels.node
	}
	out := mapping(at)
	if m := o.Metadata.Labels.node; m != nil {
		if m.Kind != yaml.MappingNode {
			r.d.WrongType(m, "metadata.labels", "a mapping of names to texts")
			return out
		}
		for _, e := range r.d.Entries(m) {
			if prefix, _, ok := strings.Cut(e.Key, "/"); !ok || !ownedPrefix(prefix) {
				out.Content = append(out.Content, e.KeyNode, e.Value)
			}
		}
	}
	var protocols []string
	var place *yaml.Node
	for _, p := range spec.AppProtocols {
		switch {
		case !p.Port.isSet():
			r.errorf(CodeMissingField, at, "add port: 57400/tcp", "an entry of appProtocols has no port")
		case p.AppProtocol.V != "": // an empty one suppresses a default that c9s does not have
			if place == nil {
				place = p.Port.node
			}
			protocols = append(protocols, p.Port.V+"="+p.AppProtocol.V)
		}
	}
	if len(protocols) > 0 {
		set(out, place, labelAppProtocols, text(place, strings.Join(protocols, ",")))
	}
	return out
}

// ownedPrefix reports whether labels with the prefix are of a tool and not the user's.
func ownedPrefix(prefix string) bool {
	return slices.Contains([]string{"c9s.run", "clabernetes", "app.kubernetes.io", "kubernetes.io", "argocd.argoproj.io", "helm.sh"}, prefix) ||
		strings.HasSuffix(prefix, ".kubernetes.io") || strings.HasSuffix(prefix, ".fluxcd.io") || strings.HasSuffix(prefix, ".k8s.io")
}

// compileLinks builds the links.
func (r *reader) compileLinks() *yaml.Node {
	out := list(r.first)
	for _, o := range r.links {
		spec, ok := r.linkSpec(o)
		if !ok {
			continue
		}
		a, b := spec.EndpointA, spec.EndpointB
		if a.NodeName.V == hostNode {
			a, b = b, a
		}
		at := o.Spec.node
		link := mapping(at)
		switch {
		case a.NodeName.V == hostNode:
			r.errorf(CodeValue, b.NodeName.node, "name a Node at one end", "Link %s has the worker at both ends", o.Metadata.Name.V)
			continue
		case b.NodeName.V == hostNode:
			end := mapping(a.NodeName.node)
			set(end, a.NodeName.node, "node", a.NodeName.node)
			set(end, a.InterfaceName.node, "interface", a.InterfaceName.node)
			set(link, at, "type", text(at, "host"))
			set(link, at, "endpoint", end)
			set(link, b.InterfaceName.node, "host-interface", b.InterfaceName.node)
		default:
			set(link, at, "endpoints", list(at,
				text(a.NodeName.node, a.NodeName.V+":"+a.InterfaceName.V), text(b.NodeName.node, b.NodeName.V+":"+b.InterfaceName.V)))
		}
		if spec.MTU.V != 0 {
			set(link, spec.MTU.node, "mtu", spec.MTU.node)
		}
		out.Content = append(out.Content, link)
		r.adoptLink(o, spec)
	}
	return out
}

// hostNode is the name of the worker at an end of a Link.
const hostNode = "host"

// linkSpec decodes a Link. It reports whether both ends are there.
func (r *reader) linkSpec(o *object) (linkSpec, bool) {
	var spec linkSpec
	if o.Spec.node == nil {
		r.errorf(CodeMissingField, o.node, "add spec: {endpointA: ..., endpointB: ...}", "Link %s has no spec", o.Metadata.Name.V)
		return spec, false
	}
	r.d.Decode(o.Spec.node, &spec, "spec")
	ok := true
	for key, end := range map[string]endpointSpec{"endpointA": spec.EndpointA, "endpointB": spec.EndpointB} {
		if end.NodeName.V == "" || end.InterfaceName.V == "" {
			ok = false
			place := own(o.Spec.node, key)
			if place == nil {
				place = o.Spec.node
			}
			r.errorf(CodeMissingField, place, "add nodeName and interfaceName", "%s of Link %s has no nodeName or no interfaceName", key, o.Metadata.Name.V)
		}
	}
	return spec, ok
}
