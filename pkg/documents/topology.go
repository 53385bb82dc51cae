package documents

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// compileTopology builds the topology of a Topology. Nodes and Links in the input must be
// those that it owns: they only have addresses and ids to adopt.
func (r *reader) compileTopology(o *object) {
	var spec topologySpec
	if o.Spec.node == nil {
		r.errorf(CodeMissingField, o.node, "add spec: {definition: {containerlab: ...}}", "Topology %s has no spec", o.Metadata.Name.V)
		return
	}
	r.d.Decode(o.Spec.node, &spec, "spec")
	r.owned(o)
	root := r.definition(o, &spec)
	if root == nil {
		return
	}
	if v := lookup(root, "name"); v == nil || v.Value == "" {
		set(root, o.Metadata.Name.node, "name", o.Metadata.Name.node)
	}
	topo := lookup(root, "topology")
	nodes := lookup(topo, "nodes")
	var names []string
	if nodes != nil && nodes.Kind == yaml.MappingNode {
		for _, e := range (&strictyaml.Decoder{Diags: &diag.List{}}).Entries(nodes) {
			names = append(names, e.Key)
		}
	}
	levels := func(node string) []*yaml.Node { return r.levels(topo, node) }
	r.topologyFiles(&spec, nodes, levels)
	b := &block{
		name: o.Metadata.Name.V, at: o.Spec.node, expose: &spec.Expose, pull: &spec.ImagePull, scheduling: spec.Deployment.Scheduling,
		persist: spec.Deployment.Persistence, probes: spec.StatusProbes, nodes: names, all: true, byNode: map[string]*yaml.Node{},
		pullsItself: func(n string) bool {
			return inherited("image-pull-policy", lookup(nodes, n), levels(n)) != nil
		},
	}
	for _, e := range r.entries(spec.Deployment.Resources.node, "deployment.resources") {
		if e.Key == "default" {
			b.resources = e.Value
		} else if r.knownNode(b, e.KeyNode, e.Key, "deployment.resources") {
			b.byNode[e.Key] = e.Value
		}
	}
	r.launcher(b.name, spec.Deployment.launcherSpec)
	r.rollout(b.name, spec.Rollout, spec.Deployment.Rollout)
	if keys, at := given(struct {
		Naming       raw `yaml:"naming"`
		Connectivity raw `yaml:"connectivity"`
	}{spec.Naming, spec.Connectivity}); at != nil {
		r.warnf(CodeLauncher, at, "remove it", "%s: %s has no effect", b.name, strings.Join(keys, ", "))
	}
	r.compileBlock(b)
	r.out.Topology = root
}

// owned checks that the Nodes and Links of the input are those of the Topology.
func (r *reader) owned(t *object) {
	isOwned := func(o *object) bool {
		if v := own(o.Metadata.Labels.node, labelOwner); v != nil && v.Value == t.Metadata.Name.V {
			return true
		}
		for _, ref := range o.Metadata.Owners {
			if ref.Kind.V == "Topology" && ref.Name.V == t.Metadata.Name.V {
				return true
			}
		}
		return false
	}
	check := func(kind string, o *object) bool {
		if isOwned(o) {
			return true
		}
		r.errorf(CodeMixed, o.node, "render it on its own, or add it to the Topology", "%s %s is not of Topology %s (%s)", kind, o.Metadata.Name.V, t.Metadata.Name.V, r.d.Pos(t.node))
		return false
	}
	for _, o := range r.nodes {
		if check("Node", o) {
			r.adoptNode(o)
		}
	}
	for _, o := range r.links {
		if check("Link", o) {
			if spec, ok := r.linkSpec(o); ok {
				r.adoptLink(o, spec)
			}
		}
	}
	for _, p := range r.order {
		check(p.kind, &object{node: p.node, Metadata: p.meta})
	}
}

// definition parses spec.definition.containerlab. Its values get the places that they have
// in the document.
func (r *reader) definition(o *object, spec *topologySpec) *yaml.Node {
	if kne := spec.Definition.KNE.node; kne != nil {
		r.errorf(CodeValue, kne, "rewrite it as a containerlab topology", "definition.kne is not supported")
		return nil
	}
	v := spec.Definition.Containerlab
	if v.V == "" {
		at := o.Spec.node
		if v.node != nil {
			at = v.node
		}
		r.errorf(CodeMissingField, at, "add definition: {containerlab: ...}", "Topology %s has no definition", o.Metadata.Name.V)
		return nil
	}
	move := r.mover(v.node)
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(v.V), &doc); err != nil {
		d := strictyaml.SyntaxError(topology.CodeSyntax, "", v.V, err)
		d.Line, d.Column = move(d.Line, d.Column)
		d.Pos = r.src.Locate(d.Pos)
		r.d.Diags.Add(d)
		return nil
	}
	if len(doc.Content) == 0 {
		r.errorf(CodeMissingField, v.node, "write a topology", "the definition of Topology %s is empty", o.Metadata.Name.V)
		return nil
	}
	shift(&doc, move)
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		r.errorf(CodeWrongType, root, "start with \"name:\" and \"topology:\"", "the definition must be a mapping, not %s", strictyaml.Describe(root))
		return nil
	}
	return root
}

// mover returns what turns a place in the text of a scalar into one in the input. Only in a
// literal block (|) is every line a line of the input; otherwise all is where the scalar is.
func (r *reader) mover(n *yaml.Node) func(line, column int) (int, int) {
	if n.Style&yaml.LiteralStyle == 0 {
		return func(int, int) (int, int) { return n.Line, n.Column }
	}
	indent := 0
	for i, line := range strings.Split(n.Value, "\n") {
		if strings.TrimSpace(line) == "" || n.Line+i >= len(r.lines) {
			continue
		}
		indent = spaces(r.lines[n.Line+i]) - spaces(line)
		break
	}
	return func(line, column int) (int, int) { return n.Line + line, column + max(0, indent) }
}

func spaces(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// levels are the definitions that a node inherits from, the nearest first.
func (r *reader) levels(topo *yaml.Node, node string) []*yaml.Node {
	def := lookup(lookup(topo, "nodes"), node)
	defaults := lookup(topo, "defaults")
	groupName, kindName := inherited("group", def, nil), inherited("kind", def, nil)
	var out []*yaml.Node
	if groupName != nil {
		if group := lookup(lookup(topo, "groups"), groupName.Value); group != nil {
			out = append(out, group)
			if kindName == nil {
				kindName = lookup(group, "kind")
			}
		}
	}
	if kindName == nil {
		kindName = lookup(defaults, "kind")
	}
	if kindName != nil {
		if kind := lookup(lookup(topo, "kinds"), kindName.Value); kind != nil {
			out = append(out, kind)
		}
	}
	if defaults != nil {
		out = append(out, defaults)
	}
	return out
}

// topologyFiles compiles the files of the nodes of a Topology.
func (r *reader) topologyFiles(spec *topologySpec, nodes *yaml.Node, levels func(string) []*yaml.Node) {
	var order []string
	specs := map[string]*nodeSpec{}
	for _, source := range []struct {
		key  string
		node *yaml.Node
	}{{"filesFromConfigMap", spec.Deployment.FilesFromConfigMap.node}, {"filesFromSecret", spec.Deployment.FilesFromSecret.node}, {"filesFromURL", spec.Deployment.FilesFromURL.node}} {
		for _, e := range r.entries(source.node, "deployment."+source.key) {
			if specs[e.Key] == nil {
				if lookup(nodes, e.Key) == nil && !hasKey(nodes, e.Key) {
					r.errorf(CodeValue, e.KeyNode, "name a node of the definition", "deployment.%s names %s, which is no node of the definition", source.key, e.Key)
					continue
				}
				specs[e.Key] = &nodeSpec{}
				order = append(order, e.Key)
			}
			var files []fileSpec
			r.d.Decode(e.Value, &files, source.key)
			s := specs[e.Key]
			switch source.key {
			case "filesFromConfigMap":
				s.FilesFromConfigMap = files
			case "filesFromSecret":
				s.FilesFromSecret = files
			default:
				s.FilesFromURL = files
			}
		}
	}
	for _, node := range order {
		r.files(node, editable(nodes, node), levels(node), specs[node])
	}
}

// editable returns the definition of a node as a mapping that is the node's alone.
func editable(nodes *yaml.Node, node string) *yaml.Node {
	for i := 0; i+1 < len(nodes.Content); i += 2 {
		if nodes.Content[i].Value != node {
			continue
		}
		from := nodes.Content[i+1]
		def := mapping(from)
		for from.Kind == yaml.AliasNode {
			from = from.Alias
		}
		if from.Kind == yaml.MappingNode {
			def.Style, def.Content = from.Style, slices.Clone(from.Content)
		}
		nodes.Content[i+1] = def
		return def
	}
	return mapping(nodes) // merged in from elsewhere
}

func hasKey(m *yaml.Node, key string) bool {
	for i := 0; m != nil && i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return true
		}
	}
	return false
}

// entries are those of a mapping by node; none if it is not given.
func (r *reader) entries(m *yaml.Node, field string) []strictyaml.Entry {
	if m == nil {
		return nil
	}
	if m.Kind != yaml.MappingNode {
		r.d.WrongType(m, field, strictyaml.WantMapping)
		return nil
	}
	return r.d.Entries(m)
}
