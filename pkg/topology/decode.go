package topology

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/c9s-lab/c9s/pkg/diag"
	"go.yaml.in/yaml/v3"
)

// maxVisits bounds the values that aliases may unfold to, so that a small file
// of nested aliases cannot take all memory.
const maxVisits = 4_000_000

// decoder reads a YAML tree strictly into the types of this package and
// collects every problem instead of stopping at the first.
type decoder struct {
	file   string
	diags  *diag.List
	visits int
	blown  bool
	// merging are the mappings whose merge keys are being followed.
	merging map[*yaml.Node]bool
	// uses are the keys that c9s does not support in full.
	uses []Use
}

// unmarshaler is a value that reads itself.
type unmarshaler interface {
	decodeYAML(d *decoder, n *yaml.Node, path string)
}

func (d *decoder) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: d.file, Line: n.Line, Column: n.Column}
}

func (d *decoder) errorf(code diag.Code, n *yaml.Node, hint, format string, args ...any) {
	d.diags.Errorf(code, d.pos(n), hint, format, args...)
}

func (d *decoder) wrongType(n *yaml.Node, path, want string) {
	d.errorf(CodeWrongType, n, howTo[want], "%s must be %s, not %s", lastKey(path), want, describe(n))
}

// The types that a value may have to have, as messages name them.
const (
	wantText    = "text"
	wantBool    = "true or false"
	wantInt     = "a whole number"
	wantNumber  = "a number"
	wantList    = "a list"
	wantMapping = "a mapping"
	wantMap     = "a mapping of names to texts"
)

// howTo says how each type is written.
var howTo = map[string]string{
	wantText:    "write one value, in quotes if it has special characters",
	wantBool:    "write true or false, without quotes",
	wantInt:     "write digits only, without quotes",
	wantNumber:  "write a number such as 2 or 0.5, without quotes",
	wantList:    "write [a, b], or a line \"- a\" for each entry",
	wantMapping: "write {key: value}, or a line \"key: value\" for each, indented",
	wantMap:     "write {NAME: value}, or a line \"NAME: value\" for each, indented",
}

// deref follows an alias; it returns nil once the file unfolds to too much.
func (d *decoder) deref(n *yaml.Node) *yaml.Node {
	d.visits++
	if d.visits > maxVisits {
		if !d.blown {
			d.blown = true
			d.errorf(CodeTooLarge, n, "write the values out, or use fewer nested aliases",
				"the file's aliases unfold to more than %d values", maxVisits)
		}
		return nil
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// entry is one key of a mapping after merge keys and aliases are resolved.
type entry struct {
	key     string
	keyNode *yaml.Node
	value   *yaml.Node
}

// entries flattens a mapping: its own keys first, then what "<<" merges in.
// A key that is written twice is an error.
func (d *decoder) entries(n *yaml.Node) []entry {
	out := make([]entry, 0, len(n.Content)/2)
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := d.deref(n.Content[i])
		v := d.deref(n.Content[i+1])
		if k == nil || v == nil {
			return out
		}
		if k.Tag == "!!merge" || (k.Value == "<<" && k.Style == 0 && k.Kind == yaml.ScalarNode) {
			merges = append(merges, v)
			continue
		}
		if k.Kind != yaml.ScalarNode {
			d.errorf(CodeWrongType, k, howTo[wantText], "a key must be text, not %s", describe(k))
			continue
		}
		if strings.ContainsRune(k.Value, 0) {
			d.errorf(CodeBadValue, k, "remove \"\\0\"", "key %q has a NUL character, which Linux cannot pass on", k.Value)
			continue
		}
		if first, dup := seen[k.Value]; dup {
			d.errorf(CodeDuplicateKey, k, "remove one of the two", "key %q is written twice (first in line %d)", k.Value, first.Line)
			continue
		}
		seen[k.Value] = k
		out = append(out, entry{k.Value, k, v})
	}
	if len(merges) == 0 {
		return out
	}
	d.merging[n] = true
	for _, m := range merges {
		out = d.merge(out, seen, m)
	}
	delete(d.merging, n)
	return out
}

// merge adds the keys of a "<<" value that are not there yet.
func (d *decoder) merge(out []entry, seen map[string]*yaml.Node, m *yaml.Node) []entry {
	switch m.Kind {
	case yaml.MappingNode:
		if d.merging[m] {
			d.errorf(CodeBadValue, m, "let it name another mapping", "a merge key (<<) leads back to the mapping that it is in")
			return out
		}
		for _, e := range d.entries(m) {
			if seen[e.key] == nil {
				seen[e.key] = e.keyNode
				out = append(out, e)
			}
		}
	case yaml.SequenceNode:
		for _, item := range m.Content {
			if item = d.deref(item); item == nil {
				return out
			}
			if item.Kind != yaml.MappingNode {
				d.errorf(CodeWrongType, item, "give it an alias of a mapping: \"<<: *name\"", "a merge key (<<) takes mappings only, not %s", describe(item))
				continue
			}
			out = d.merge(out, seen, item)
		}
	default:
		d.errorf(CodeWrongType, m, "give it an alias of a mapping: \"<<: *name\"", "a merge key (<<) takes a mapping, not %s", describe(m))
	}
	return out
}

// decode reads n into target, a pointer.
func (d *decoder) decode(n *yaml.Node, target any, path string) {
	if n = d.deref(n); n == nil {
		return
	}
	v := reflect.ValueOf(target).Elem()
	if isNull(n) {
		if l, ok := target.(nullable); ok {
			l.setNull(d.pos(n))
		}
		return
	}
	if u, ok := target.(unmarshaler); ok {
		u.decodeYAML(d, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		elem := reflect.New(v.Type().Elem())
		if _, own := elem.Interface().(unmarshaler); !own && n.Kind != yaml.MappingNode {
			d.wrongType(n, path, wantMapping)
			return
		}
		d.decode(n, elem.Interface(), path)
		v.Set(elem)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.wrongType(n, path, wantList)
			return
		}
		for _, item := range n.Content {
			elem := reflect.New(v.Type().Elem())
			d.decode(item, elem.Interface(), path+"[]")
			v.Set(reflect.Append(v, elem.Elem()))
		}
	default:
		d.decodeStruct(n, target, path, nil)
	}
}

// nullable is a value that takes note of an explicit null.
type nullable interface{ setNull(pos diag.Pos) }

// decodeStruct reads a mapping into a struct. only, if not nil, limits the keys.
func (d *decoder) decodeStruct(n *yaml.Node, target any, path string, only []string) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, wantMapping)
		return
	}
	v := reflect.ValueOf(target).Elem()
	f := fieldsOf(v.Type())
	if f.pos >= 0 {
		v.Field(f.pos).Set(reflect.ValueOf(d.pos(n)))
	}
	for _, e := range d.entries(n) {
		i, ok := f.byKey[e.key]
		if !ok || (only != nil && !slices.Contains(only, e.key)) {
			d.unknownKey(e, path, f, only)
			continue
		}
		if field := prefixes[v.Type()] + e.key; treatments[field] != Supported {
			d.uses = append(d.uses, Use{Field: field, Pos: d.pos(e.keyNode)})
		}
		sub := path + "." + e.key
		if path == "" {
			sub = e.key
		}
		if e.key == "endpoints" && only != nil && isBrief(only, n) {
			sub += ".brief"
		}
		d.decode(e.value, v.Field(i).Addr().Interface(), sub)
	}
}

// isBrief tells whether a link mapping has no type, or the type "brief".
func isBrief(_ []string, n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "type" {
			t := n.Content[i+1].Value
			return t == "" || strings.EqualFold(t, "brief") || n.Content[i+1].Tag == "!!null"
		}
	}
	return true
}

// shortList is how many keys a hint names before it is a wall of text.
const shortList = 16

func (d *decoder) unknownKey(e entry, path string, f *fields, only []string) {
	known := only
	if known == nil {
		known = f.keys
	}
	where := "at the top of a topology file"
	if path != "" {
		where = "in " + path
	}
	hint := "`c9s explain` lists all keys"
	if len(known) <= shortList {
		hint = "known keys: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
	}
	if near := Nearest(e.key, known); near != "" {
		hint = "did you mean \"" + near + "\"?"
	} else if path == "" && fieldsOf(reflect.TypeFor[Topology]()).has(e.key) {
		hint = "move it under topology: it is topology." + e.key
	}
	d.errorf(CodeUnknownField, e.keyNode, hint, "key %q is not known %s", e.key, where)
}

// fields are the YAML keys of a struct type.
type fields struct {
	byKey map[string]int
	keys  []string
	pos   int
}

func (f *fields) has(key string) bool { _, ok := f.byKey[key]; return ok }

var fieldCache sync.Map

func fieldsOf(t reflect.Type) *fields {
	if f, ok := fieldCache.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{byKey: map[string]int{}, pos: -1}
	for i := range t.NumField() {
		if t.Field(i).Name == "Pos" {
			f.pos = i
		}
		if key := t.Field(i).Tag.Get("yaml"); key != "" {
			f.byKey[key] = i
			f.keys = append(f.keys, key)
		}
	}
	fieldCache.Store(t, f)
	return f
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// text is a scalar's text, or nothing after an error was told. A NUL character
// ends a text for Linux, so neither names nor values can have one.
func (d *decoder) text(n *yaml.Node, path string) (string, bool) {
	text, ok := scalarText(n)
	switch {
	case !ok:
		d.wrongType(n, path, wantText)
	case strings.ContainsRune(text, 0):
		d.errorf(CodeBadValue, n, "remove \"\\0\"", "%s has a NUL character, which Linux cannot pass on", lastKey(path))
		return "", false
	}
	return text, ok
}

// scalarText is the text of a scalar as a string field receives it.
func scalarText(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		return "", false
	}
	if n.Tag == "!!binary" {
		if raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), "")); err == nil {
			return string(raw), true
		}
	}
	if isNull(n) {
		return "", true
	}
	return n.Value, true
}

// describe names a YAML value in a message.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if isNull(n) {
			return "nothing"
		}
		text := n.Value
		if len(text) > 40 {
			text = text[:40] + "..."
		}
		if n.Tag != "" && !strings.HasPrefix(n.ShortTag(), "!!") {
			return "the tag " + n.Tag + ", which means nothing in a topology"
		}
		return "the text " + strconv.Quote(text)
	default:
		return "this"
	}
}

func lastKey(path string) string {
	path = strings.TrimSuffix(path, ".brief")
	if i := strings.LastIndex(path, "."); i >= 0 {
		path = path[i+1:]
	}
	if key, list := strings.CutSuffix(path, "[]"); list {
		return "an entry of " + key
	}
	if path == "" {
		return "the file"
	}
	return path
}
