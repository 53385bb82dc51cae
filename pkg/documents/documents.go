// Package documents compiles the documents of clabernetes, a tool with the same purpose,
// to the trees of a topology file and of a policy file. Every value keeps its place, so that
// later diagnostics point into the document.
package documents

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Lab is what documents come to.
type Lab struct {
	// Topology and Policy are the trees of a topology file and of a policy file. Topology
	// is nil if the documents could not be read.
	Topology, Policy *yaml.Node
	// Namespace is that of the documents, "" for none.
	Namespace string
	// Files are those that ConfigMaps, Secrets and URLs hold, by the path that the topology
	// has for them.
	Files map[string]File
	// Adopt are the addresses and ids in the status of the documents.
	Adopt lab.Adopted
	// Registries are those that a Config describes.
	Registries []Registry
}

// Registry says how to reach a registry.
type Registry struct {
	Host      string
	PlainHTTP bool
	// CA holds certificates in PEM to trust for it, nil for the system's only.
	CA []byte
}

// File is a file of a node.
type File struct {
	Data   []byte
	Mode   uint32
	Secret bool
	// URL is where the file has to be fetched, and Digest ("sha256:...") what it must have,
	// "" for anything.
	URL, Digest string
	// Pos is the place of the entry that names the file.
	Pos diag.Pos
}

// Read compiles the documents of a source. With errors among the diagnostics, the trees are
// incomplete. A ConfigMap or Secret that is not in the input is no error if allowMissing is
// set.
func Read(src *topology.Source, allowMissing bool) (*Lab, []diag.Diagnostic) {
	diags := &diag.List{}
	r := &reader{
		src: src, allowMissing: allowMissing,
		d: &strictyaml.Decoder{
			Diags: diags, Locate: src.Locate, Top: "at the top of a document",
			Codes: strictyaml.Codes{WrongType: CodeWrongType, UnknownKey: CodeUnknownField, DuplicateKey: topology.CodeDuplicateKey, BadValue: CodeValue, TooLarge: topology.CodeTooLarge},
		},
		seen: map[string]*yaml.Node{}, data: map[string]*data{}, profiles: map[string]*profile{},
		out: &Lab{Files: map[string]File{}, Adopt: lab.NewAdopted()},
	}
	if r.parse() {
		r.compile()
	}
	return r.out, diags.All()
}

// reader holds the documents of one input.
type reader struct {
	src          *topology.Source
	d            *strictyaml.Decoder
	allowMissing bool
	lines        []string // of all files

	seen       map[string]*yaml.Node // by kind and name
	topologies []*object
	nodes      []*object
	links      []*object
	configs    []*object
	profiles   map[string]*profile
	order      []*profile
	data       map[string]*data // by kind and name
	// first is the place of the first document.
	first      *yaml.Node
	namespaced *yaml.Node

	policy policyBuilder
	out    *Lab
}

func (r *reader) errorf(code diag.Code, at *yaml.Node, hint, format string, args ...any) {
	r.d.Errorf(code, at, hint, format, args...)
}

func (r *reader) warnf(code diag.Code, at *yaml.Node, hint, format string, args ...any) {
	r.d.Diags.Warnf(code, r.d.Pos(at), hint, format, args...)
}

// parse reads every document. It reports whether all are well-formed.
func (r *reader) parse() bool {
	ok := true
	before := 0
	for _, part := range r.src.Parts {
		r.lines = append(r.lines, strings.Split(string(part.Data), "\n")...)
		dec := yaml.NewDecoder(bytes.NewReader(part.Data))
		for {
			var doc yaml.Node
			err := dec.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				r.d.Diags.Add(strictyaml.SyntaxError(topology.CodeSyntax, part.Name, string(part.Data), err))
				ok = false
				break
			}
			shift(&doc, func(line, column int) (int, int) { return line + before, column })
			if n := r.d.Deref(doc.Content[0]); n != nil && !strictyaml.IsNull(n) {
				r.document(n)
			}
		}
		before += topology.Lines(part.Data)
	}
	return ok
}

// document sorts one document by its kind.
func (r *reader) document(n *yaml.Node) { r.item(n, false) }

// item sorts a document, or an item of a List.
func (r *reader) item(n *yaml.Node, inList bool) {
	if r.first == nil {
		r.first = n
	}
	if n.Kind != yaml.MappingNode {
		r.errorf(CodeWrongType, n, "begin with apiVersion and kind", "a document must be a mapping, not %s", strictyaml.Describe(n))
		return
	}
	var version, kind string
	for key, to := range map[string]*string{"apiVersion": &version, "kind": &kind} {
		if v := own(n, key); v != nil {
			*to = v.Value
		}
	}
	if version == "" || kind == "" {
		r.errorf(CodeMissingField, n, "begin with apiVersion and kind", "a document has no apiVersion or no kind")
		return
	}
	foreign := topology.ForeignGroup(version)
	switch {
	case strings.HasSuffix(kind, "List") && inList:
		r.errorf(CodeWrongType, n, "put its items into the outer one", "a %s is in another one", kind)
	case strings.HasSuffix(kind, "List") && (foreign || version == "v1"):
		if items := own(n, "items"); items != nil && items.Kind == yaml.SequenceNode {
			for _, item := range items.Content {
				if item = r.d.Deref(item); item != nil {
					r.item(item, true)
				}
			}
		}
	case version == "v1" && (kind == "ConfigMap" || kind == "Secret"):
		r.addData(n, kind)
	case foreign:
		r.addObject(n, version, kind)
	default:
		r.warnf(CodeIgnored, n, "apply it with kubectl if the lab needs it", "%s is not part of a lab and is ignored", named(kind, n))
	}
}

// named is a kind with the name of the object.
func named(kind string, n *yaml.Node) string {
	if name := own(own(n, "metadata"), "name"); name != nil {
		return kind + " " + name.Value
	}
	return kind
}

const version = "v1alpha1"

// kindsRead are the kinds that c9s reads.
var kindsRead = []string{"Topology", "Node", "Link", "NodeProfile", "LauncherProfile", "Config"}

func (r *reader) addObject(n *yaml.Node, apiVersion, kind string) {
	if _, v, _ := strings.Cut(apiVersion, "/"); v != version {
		r.errorf(CodeKind, own(n, "apiVersion"), "use "+version, "version %s is unknown", v)
		return
	}
	if kind == "ImageRequest" || kind == "Connectivity" {
		r.warnf(CodeIgnored, n, "remove it", "%s is clabernetes' own and is ignored", named(kind, n))
		return
	}
	if !slices.Contains(kindsRead, kind) {
		hint := "c9s reads " + strings.Join(kindsRead, ", ")
		if near := strictyaml.Nearest(kind, kindsRead); near != "" {
			hint = "did you mean \"" + near + "\"?"
		}
		r.errorf(CodeKind, own(n, "kind"), hint, "kind %s is unknown", kind)
		return
	}
	o := &object{node: n}
	r.d.DecodeStruct(n, o, "", nil)
	if !r.identify(n, kind, &o.Metadata) {
		return
	}
	switch kind {
	case "Topology":
		r.topologies = append(r.topologies, o)
	case "Node":
		r.nodes = append(r.nodes, o)
	case "Link":
		r.links = append(r.links, o)
	case "Config":
		r.configs = append(r.configs, o)
	default:
		r.addProfile(o, kind)
	}
}

// identify checks the name and the namespace of an object. It reports whether the object
// can be used.
func (r *reader) identify(n *yaml.Node, kind string, m *meta) bool {
	if m.Name.V == "" {
		r.errorf(CodeMissingField, n, "add metadata: {name: ...}", "a %s has no name", kind)
		return false
	}
	id := kind + " " + m.Name.V
	if first := r.seen[id]; first != nil {
		at := r.d.Pos(first)
		r.errorf(CodeDuplicate, n, "remove one of the two", "%s occurs twice (first at %s)", id, at)
		return false
	}
	r.seen[id] = n
	if kind == "Config" || m.Namespace.V == "" {
		return true
	}
	switch {
	case r.out.Namespace == "":
		r.out.Namespace, r.namespaced = m.Namespace.V, m.Namespace.node
	case r.out.Namespace != m.Namespace.V:
		r.errorf(CodeNamespaces, m.Namespace.node, "render the documents of each namespace on their own",
			"the documents are in two namespaces: %s (%s) and %s", r.out.Namespace, r.d.Pos(r.namespaced), m.Namespace.V)
	}
	return true
}

func (r *reader) addData(n *yaml.Node, kind string) {
	o := &data{node: n}
	r.d.DecodeStruct(n, o, "", nil)
	if r.identify(n, kind, &o.Metadata) {
		r.data[kind+" "+o.Metadata.Name.V] = o
	}
}

// compile builds the trees of all documents.
func (r *reader) compile() {
	switch {
	case len(r.topologies) > 1:
		r.errorf(CodeMixed, r.topologies[1].node, "render each Topology on its own", "the input has two Topologies: %s (%s) and %s",
			r.topologies[0].Metadata.Name.V, r.d.Pos(r.topologies[0].node), r.topologies[1].Metadata.Name.V)
		return
	case len(r.topologies) == 1:
		r.compileTopology(r.topologies[0])
	case len(r.nodes) > 0:
		r.compileNodes()
	default:
		if r.d.Diags.HasErrors() || r.first == nil {
			return
		}
		r.errorf(CodeMissingField, r.first, "add a Topology, or Nodes and Links", "the input has no Topology and no Node")
		return
	}
	for _, c := range r.configs {
		r.compileConfig(c)
	}
	r.out.Policy = r.policy.tree(r.first)
}
