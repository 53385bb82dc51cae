package kinds

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// source is one file of a catalogue.
type source struct {
	file string
	node *yaml.Node
	name string
}

// abstract entries are only there to be extended.
func (s *source) abstract() bool { return strings.HasPrefix(s.name, "_") }

// LoadDir is Load for a folder on disk.
func LoadDir(base *Catalogue, dir string) (*Catalogue, []diag.Diagnostic) {
	return Load(base, os.DirFS(dir), dir)
}

// Load adds the kinds of a folder to base: each *.yaml file is one kind, which is
// new or takes the place of the one with its name in base. A file that has its
// own name under extends completes the kind of base. Template files lie in a
// folder templates beside it. dir names the folder in the positions of
// diagnostics. The catalogue is nil if any file cannot be used.
func Load(base *Catalogue, files fs.FS, dir string) (*Catalogue, []diag.Diagnostic) {
	return load(base, files, dir)
}

func load(base *Catalogue, files fs.FS, dir string) (*Catalogue, []diag.Diagnostic) {
	l := &loader{files: files, dir: dir, base: base, sources: map[string]*source{}}
	l.readAll()
	c := l.catalogue()
	if l.problems.HasErrors() {
		return nil, l.problems.All()
	}
	return c, nil
}

type loader struct {
	files    fs.FS
	dir      string
	base     *Catalogue
	sources  map[string]*source
	problems diag.List
}

func (l *loader) readAll() {
	names, err := fs.Glob(l.files, "*.yaml")
	if err != nil || len(names) == 0 {
		l.problems.Errorf(CodeKindFile, diag.Pos{File: l.dir}, "put one <kind>.yaml file per kind there",
			"no kind files (*.yaml) in the folder")
		return
	}
	for _, name := range names {
		l.read(name)
	}
}

func (l *loader) read(file string) {
	at := diag.Pos{File: path.Join(l.dir, file)}
	data, err := fs.ReadFile(l.files, file)
	if err != nil {
		l.problems.Errorf(CodeKindFile, at, "", "%v", err)
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		l.problems.Add(strictyaml.SyntaxError(CodeKindFile, at.File, string(data), err))
		return
	}
	if len(doc.Content) == 0 {
		l.problems.Errorf(CodeKindFile, at, "", "the file holds no kind")
		return
	}
	s := &source{file: at.File, node: doc.Content[0]}
	if !l.check(s) {
		return
	}
	if name := value(s.node, "name"); name != nil {
		s.name = name.Value
	}
	at.Line, at.Column = s.node.Line, s.node.Column
	switch {
	case s.name == "":
		l.problems.Errorf(CodeKindFile, at, "add name: with the word that topologies use", "the kind has no name")
	case l.sources[s.name] != nil:
		l.problems.Errorf(CodeKindFile, at, "", "kind %s is also in %s", s.name, l.sources[s.name].file)
	default:
		l.sources[s.name] = s
	}
}

// check reports unknown fields and values of the wrong type. The built-in entries, which
// have no base, are decoded only once, when they are resolved.
func (l *loader) check(s *source) bool {
	return l.base == nil || l.decode(s.file, s.node, &Kind{})
}

// decode reads a kind, and reports whether it could be read without problems.
func (l *loader) decode(file string, node *yaml.Node, k *Kind) bool {
	var problems diag.List
	d := strictyaml.Decoder{
		File: file, Diags: &problems, Top: "in a kind", AllKeys: "docs/reference/kinds.md lists the fields", AnyText: true,
		Codes: strictyaml.OneCode(CodeKindFile),
	}
	d.Decode(node, k, "")
	l.problems.Append(problems.All())
	return !problems.HasErrors()
}

// catalogue resolves every entry, those of base included.
func (l *loader) catalogue() *Catalogue {
	c := &Catalogue{byName: map[string]*Kind{}, sources: map[string]*source{}}
	if l.base != nil {
		c.templates = slices.Clone(l.base.templates)
		maps.Copy(c.sources, l.base.sources)
	}
	c.templates = append(c.templates, l.files)
	maps.Copy(c.sources, l.sources)
	for _, name := range slices.Sorted(maps.Keys(c.sources)) {
		if c.sources[name].abstract() {
			continue
		}
		if k := l.resolve(c.sources[name]); k != nil {
			l.add(c, k)
			if l.sources[name] != nil {
				l.validate(l.sources[name], k, c)
			}
		}
	}
	c.names = slices.Sorted(maps.Keys(c.byName))
	return c
}

// add registers k under its names.
func (l *loader) add(c *Catalogue, k *Kind) {
	c.kinds = append(c.kinds, k)
	for _, name := range append([]string{k.Name}, k.Aliases...) {
		name = strings.ToLower(name)
		if other := c.byName[name]; other != nil {
			at := c.sources[k.Name]
			if l.sources[k.Name] == nil {
				at = c.sources[other.Name]
			}
			l.problems.Errorf(CodeKindFile, diag.Pos{File: at.file, Line: at.node.Line}, "choose another name",
				"kinds %s and %s are both called %s", other.Name, k.Name, name)
			continue
		}
		c.byName[name] = k
	}
}

// resolve merges an entry with what it extends and prepares it for use.
func (l *loader) resolve(s *source) *Kind {
	if l.sources[s.name] == nil && l.base != nil {
		if k := l.base.byName[strings.ToLower(s.name)]; k != nil && k.Name == s.name {
			return k
		}
	}
	at := diag.Pos{File: s.file, Line: s.node.Line, Column: s.node.Column}
	node, err := l.merged(s, nil)
	if err != nil {
		l.problems.Errorf(CodeKindFile, at, "", "%v", err)
		return nil
	}
	k := &Kind{custom: l.base != nil}
	if !l.decode(s.file, node, k) {
		return nil
	}
	if err = compileKeys(k.Keys); err != nil {
		l.problems.Errorf(CodeKindFile, at, "docs/reference/kinds.md lists the fields", "%v", err)
		return nil
	}
	if k.mapper, err = newMapper(k.Interfaces); err != nil {
		l.problems.Errorf(CodeKindFile, at, "", "%v", err)
		return nil
	}
	return k
}

// merged is the entry's mapping completed with those of its ancestors.
func (l *loader) merged(s *source, below []*source) (*yaml.Node, error) {
	parent := value(s.node, "extends")
	if parent == nil || parent.Value == "" {
		return s.node, nil
	}
	p := l.sources[parent.Value]
	if (p == nil || p == s) && l.base != nil {
		p = l.base.sources[parent.Value]
	}
	if p == nil {
		return nil, fmt.Errorf("extends %s, which is not in the catalogue", parent.Value)
	}
	if p == s || slices.Contains(below, p) {
		return nil, fmt.Errorf("extends itself over %s", parent.Value)
	}
	base, err := l.merged(p, append(below, s))
	if err != nil {
		return nil, err
	}
	if p.name != s.name {
		base = without(base, "aliases")
	}
	return merge(base, s.node), nil
}

// without is a mapping less one key.
func without(mapping *yaml.Node, key string) *yaml.Node {
	out := *mapping
	out.Content = nil
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value != key {
			out.Content = append(out.Content, mapping.Content[i], mapping.Content[i+1])
		}
	}
	return &out
}

// merge lays the mapping over over under, key by key.
func merge(under, over *yaml.Node) *yaml.Node {
	if under.Kind != yaml.MappingNode || over.Kind != yaml.MappingNode {
		return over
	}
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: over.Tag, Line: over.Line, Column: over.Column}
	for i := 0; i < len(under.Content); i += 2 {
		key, old := under.Content[i], under.Content[i+1]
		switch v := value(over, key.Value); {
		case v == nil:
			out.Content = append(out.Content, key, old)
		case v.Tag != "!!null":
			out.Content = append(out.Content, key, merge(old, v))
		}
	}
	for i := 0; i < len(over.Content); i += 2 {
		if key := over.Content[i]; value(under, key.Value) == nil && over.Content[i+1].Tag != "!!null" {
			out.Content = append(out.Content, key, over.Content[i+1])
		}
	}
	return out
}

// value finds a key of a mapping, nil where there is none.
func value(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
