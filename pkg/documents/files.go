package documents

import (
	"encoding/base64"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
)

// filesFolder is where the files of nodes are in a topology: files/NODE/PATH.
const filesFolder = "files"

// The modes of files.
const (
	modeRead    = 0o444
	modeExecute = 0o555
)

// nodeFiles are the files of one node.
type nodeFiles struct {
	node string
	r    *reader
	// paths are the cleaned paths of its files, in order, by the entries that name them.
	paths []placedPath
	// mounted are the files that the Pod mounts, for the policy.
	mounted *yaml.Node
}

type placedPath struct {
	path   string
	folder bool
	at     *yaml.Node
	used   bool
	// external is set for a file whose ConfigMap or Secret is not in the input.
	external *external
}

// external is an object of the cluster that holds a file.
type external struct {
	kind      string // ConfigMap or Secret
	name, key value[string]
	mode      value[string]
	// reported is set once an error says that the file is needed.
	reported bool
}

// name is the path that the topology has for a path of the node.
func (f *nodeFiles) name(p string) string { return path.Join(filesFolder, f.node, path.Clean("/"+p)) }

// files compiles the lists of files of a node. def is its definition, and levels are those
// that it inherits from, the nearest first.
func (r *reader) files(node string, def *yaml.Node, levels []*yaml.Node, spec *nodeSpec) {
	f := &nodeFiles{node: node, r: r}
	for _, e := range spec.FilesFromConfigMap {
		if r.filePath(e, "filesFromConfigMap") {
			r.dataFile(f, e, "ConfigMap", e.ConfigMapName, e.ConfigMapPath)
		}
	}
	for _, e := range spec.FilesFromSecret {
		if r.filePath(e, "filesFromSecret") {
			r.dataFile(f, e, "Secret", e.SecretName, e.SecretPath)
		}
	}
	for _, e := range spec.FilesFromURL {
		if r.filePath(e, "filesFromURL") {
			r.urlFile(f, e)
		}
	}
	if len(f.paths) > 0 {
		r.place(f, def, levels)
	}
}

func (r *reader) filePath(e fileSpec, what string) bool {
	if e.FilePath.V != "" {
		return true
	}
	if e.node != nil {
		r.errorf(CodeMissingField, e.node, "add filePath", "an entry of %s has no filePath", what)
	}
	return false
}

// dataFile adds the file or folder that a ConfigMap or Secret holds.
func (r *reader) dataFile(f *nodeFiles, e fileSpec, kind string, name, key value[string]) {
	if name.V == "" {
		r.errorf(CodeMissingField, e.node, "name the "+kind, "the file %s names no %s", e.FilePath.V, kind)
		return
	}
	mode := uint32(modeRead)
	if e.Mode.V != "" {
		if !r.oneOf(e.Mode, "mode", []string{"read", "execute"}) {
			return
		}
		if e.Mode.V == "execute" {
			mode = modeExecute
		}
	}
	p := placedPath{path: path.Clean(e.FilePath.V), folder: key.V == "", at: e.FilePath.node}
	source := r.data[kind+" "+name.V]
	if source == nil {
		p.external = &external{kind: kind, name: name, key: key, mode: e.Mode}
		f.paths = append(f.paths, p)
		return
	}
	contents := r.contents(source, kind)
	if key.V != "" {
		data, ok := contents[key.V]
		if !ok {
			r.errorf(CodeFile, key.node, "use one of its keys", "%s %s has no key %s", kind, name.V, key.V)
		}
		f.paths = append(f.paths, p)
		r.out.Files[f.name(p.path)] = File{Data: data, Mode: mode, Secret: kind == "Secret", Pos: r.d.Pos(e.node)}
		return
	}
	f.paths = append(f.paths, p)
	for key, data := range contents {
		r.out.Files[f.name(path.Join(p.path, path.Clean("/"+key)))] = File{Data: data, Mode: mode, Secret: kind == "Secret", Pos: r.d.Pos(e.node)}
	}
}

// contents are the files of a ConfigMap or Secret by key.
func (r *reader) contents(o *data, kind string) map[string][]byte {
	out := map[string][]byte{}
	each := func(m *yaml.Node, encoded bool) {
		if m == nil {
			return
		}
		if m.Kind != yaml.MappingNode {
			r.d.WrongType(m, "data", "a mapping of names to texts")
			return
		}
		for _, e := range r.d.Entries(m) {
			if e.Value.Kind != yaml.ScalarNode || e.Value.ShortTag() != "!!str" && !strictyaml.IsNull(e.Value) {
				r.d.WrongType(e.Value, e.Key, strictyaml.WantText)
				out[e.Key] = nil
				continue
			}
			data := []byte(e.Value.Value)
			if encoded {
				var err error
				if data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(e.Value.Value), "")); err != nil {
					r.errorf(CodeValue, e.Value, "encode it in base64", "key %s of %s %s is not base64", e.Key, kind, o.Metadata.Name.V)
				}
			}
			out[e.Key] = data
		}
	}
	each(o.Data.node, kind == "Secret")
	each(o.BinaryData.node, true)
	each(o.StringData.node, false)
	return out
}

var digest = regexp.MustCompile(`^(sha256:)?[0-9a-f]{64}$`)

// urlFile adds a file that has to be fetched.
func (r *reader) urlFile(f *nodeFiles, e fileSpec) {
	if e.URL.V == "" {
		r.errorf(CodeMissingField, e.node, "add url", "the file %s has no url", e.FilePath.V)
		return
	}
	if !strings.HasPrefix(e.URL.V, "http://") && !strings.HasPrefix(e.URL.V, "https://") {
		r.errorf(CodeValue, e.URL.node, "use an http or https URL", "url is %q", e.URL.V)
		return
	}
	sum := e.Digest.V
	if sum != "" && !digest.MatchString(sum) {
		r.errorf(CodeValue, e.Digest.node, "write sha256: and 64 hexadecimal digits", "digest is %q", sum)
		return
	}
	if sum != "" && !strings.HasPrefix(sum, "sha256:") {
		sum = "sha256:" + sum
	}
	p := placedPath{path: path.Clean(e.FilePath.V), at: e.FilePath.node}
	f.paths = append(f.paths, p)
	r.out.Files[f.name(p.path)] = File{Mode: modeRead, URL: e.URL.V, Digest: sum, Pos: r.d.Pos(e.URL.node)}
}

// find returns the topology's path for a path that the node's definition has: of a file, or
// of a folder that holds files. The contents of a file of the cluster are unknown, so that
// none is found; withExternal reports it.
func (f *nodeFiles) find(written string, withExternal bool) (string, bool) {
	p := path.Clean(written)
	found := false
	for i := range f.paths {
		file := &f.paths[i]
		if file.external != nil && !withExternal {
			continue
		}
		if p == file.path || strings.HasPrefix(file.path, p+"/") || file.folder && strings.HasPrefix(p, file.path+"/") {
			file.used, found = true, true
			f.needed(file)
		}
	}
	return f.name(p), found && p != "." && p != "/"
}

// place makes the definition name the files: where it has their paths, and by binds for
// others.
func (r *reader) place(f *nodeFiles, def *yaml.Node, levels []*yaml.Node) {
	magic := strings.NewReplacer("__clabNodeName__", f.node)
	for _, key := range []string{"startup-config", "license"} {
		v := inherited(key, def, levels)
		if v == nil || v.Kind != yaml.ScalarNode || strings.Contains(v.Value, "\n") {
			continue
		}
		if name, ok := f.find(magic.Replace(v.Value), true); ok {
			set(def, v, key, text(v, name))
		}
	}
	f.placeList(def, levels, magic, "env-files")
	f.placeList(def, levels, magic, "extras", "srl-agents")
	f.placeList(def, levels, magic, "extras", "ceos-copy-to-flash")
	binds := own(def, "binds")
	f.mounted = list(f.paths[0].at)
	copied := list(f.paths[0].at)
	if binds != nil && binds.Kind == yaml.SequenceNode {
		copied = list(binds)
		for _, b := range binds.Content {
			if placed := f.bind(b, magic); placed != nil {
				copied.Content = append(copied.Content, placed)
			}
		}
	}
	for _, level := range levels {
		inherited := lookup(level, "binds")
		if inherited == nil || inherited.Kind != yaml.SequenceNode {
			continue
		}
		for _, b := range inherited.Content {
			if placed := f.bind(b, magic); placed != nil && placed != b && !hasTarget(copied, placed.Value) {
				copied.Content = append(copied.Content, placed)
			}
		}
	}
	for i := range f.paths {
		p := &f.paths[i]
		switch {
		case p.used:
		case path.IsAbs(p.path) && p.external != nil:
			f.mount(p, p.at, p.path, p.external.key)
		case path.IsAbs(p.path):
			copied.Content = append(copied.Content, text(p.at, f.name(p.path)+":"+p.path+":ro"))
		default:
			r.warnf(CodeFileUnused, p.at, "correct the path, or write an absolute one to mount it", "Node %s: nothing names the file %s, so it is not mounted", f.node, p.path)
		}
	}
	if len(copied.Content) > 0 || binds != nil {
		set(def, copied, "binds", copied)
	}
	if len(f.mounted.Content) > 0 {
		r.policy.add("files-"+f.node, f.mounted, []string{f.node}, "files", f.mounted)
	}
}

// mount has the Pod mount a file of the cluster at a path of the node.
func (f *nodeFiles) mount(p *placedPath, at *yaml.Node, target string, key value[string]) {
	e := p.external
	entry := mapping(at)
	set(entry, at, "path", text(at, target))
	set(entry, e.name.node, map[string]string{"ConfigMap": "configMap", "Secret": "secret"}[e.kind], text(e.name.node, e.name.V))
	if key.V != "" {
		set(entry, key.node, "key", text(key.node, key.V))
	}
	if e.mode.V != "" {
		set(entry, e.mode.node, "mode", text(e.mode.node, e.mode.V))
	}
	f.mounted.Content = append(f.mounted.Content, entry)
	f.r.warnf(CodeFile, e.name.node, "create it in the lab's namespace before you deploy, or add it to the input",
		"Node %s: %s %s of the file %s is not in the input; the Pod mounts that of its namespace", f.node, e.kind, e.name.V, p.path)
}

// needed reports a file whose contents c9s needs to render the node, and that only the
// cluster holds.
func (f *nodeFiles) needed(p *placedPath) {
	e := p.external
	if e == nil || e.reported || f.r.allowMissing {
		return
	}
	e.reported = true
	f.r.errorf(CodeFile, e.name.node, "add it to the input: kubectl get "+strings.ToLower(e.kind)+" "+e.name.V+" -o yaml",
		"%s %s of the file %s is not in the input, and Node %s cannot be rendered without it", e.kind, e.name.V, p.path, f.node)
	f.r.out.Files[f.name(p.path)] = File{Mode: modeRead} // one error is enough
}

// bind is a bind with the topology's path as its source, or the bind itself; nil if all that
// it mounts is the cluster's.
func (f *nodeFiles) bind(b *yaml.Node, magic *strings.Replacer) *yaml.Node {
	source, rest, ok := strings.Cut(b.Value, ":")
	if b.Kind != yaml.ScalarNode || !ok {
		return b
	}
	target, _, _ := strings.Cut(rest, ":")
	external := f.bindExternal(b, path.Clean(magic.Replace(source)), target)
	if name, found := f.find(magic.Replace(source), false); found {
		f.mountPoints(path.Clean(magic.Replace(source)))
		return text(b, name+":"+rest)
	}
	if external {
		return nil
	}
	return b
}

// mountPoints adds empty files to a folder where files of the cluster are mounted: the folder
// may be read-only in the node.
func (f *nodeFiles) mountPoints(folder string) {
	for i := range f.paths {
		if p := &f.paths[i]; p.external != nil && !p.folder && strings.HasPrefix(p.path, folder+"/") {
			f.r.out.Files[f.name(p.path)] = File{Mode: modeRead}
		}
	}
}

// bindExternal mounts the files of the cluster that a bind has as its source. It reports
// whether there is one.
func (f *nodeFiles) bindExternal(at *yaml.Node, source, target string) bool {
	found := false
	for i := range f.paths {
		p := &f.paths[i]
		if p.external == nil {
			continue
		}
		below, isBelow := strings.CutPrefix(p.path, source+"/")
		inside, isInside := strings.CutPrefix(source, p.path+"/")
		key, mounted := p.external.key, target
		switch {
		case source == p.path:
		case isBelow:
			mounted = path.Join(target, below)
		case isInside && p.folder && !strings.Contains(inside, "/"):
			key = value[string]{V: inside, node: at}
		default:
			continue
		}
		p.used, found = true, true
		f.mount(p, at, mounted, key)
	}
	return found
}

// hasTarget reports whether a list of binds has the target of a bind.
func hasTarget(binds *yaml.Node, bind string) bool {
	target := func(s string) string {
		parts := strings.SplitN(s, ":", 3)
		if len(parts) < 2 {
			return ""
		}
		return path.Clean(parts[1])
	}
	return slices.ContainsFunc(binds.Content, func(b *yaml.Node) bool { return target(b.Value) == target(bind) })
}

// placeList makes a list of files name the topology's paths.
func (f *nodeFiles) placeList(def *yaml.Node, levels []*yaml.Node, magic *strings.Replacer, keys ...string) {
	from := inherited(keys[0], def, levels)
	values := from
	for _, key := range keys[1:] {
		values = lookup(values, key)
	}
	if values == nil || values.Kind != yaml.SequenceNode {
		return
	}
	out, changed := list(values), false
	for _, v := range values.Content {
		if name, ok := f.find(magic.Replace(v.Value), true); ok && v.Kind == yaml.ScalarNode {
			v, changed = text(v, name), true
		}
		out.Content = append(out.Content, v)
	}
	if !changed {
		return
	}
	if len(keys) == 1 {
		set(def, values, keys[0], out)
		return
	}
	parent := mapping(from)
	parent.Content = slices.Clone(from.Content)
	set(parent, values, keys[1], out)
	set(def, from, keys[0], parent)
}

// inherited is the value of a key: the node's own, else that of the nearest level.
func inherited(key string, def *yaml.Node, levels []*yaml.Node) *yaml.Node {
	for _, level := range append([]*yaml.Node{def}, levels...) {
		if v := lookup(level, key); v != nil {
			return v
		}
	}
	return nil
}
