// Package strictyaml decodes YAML into Go types. It rejects unknown and duplicate keys and
// values of the wrong type, and it collects every problem with its position instead of
// stopping at the first.
package strictyaml

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// maxVisits bounds the values that aliases may unfold to, so that a small file
// of nested aliases cannot take all memory.
const maxVisits = 4_000_000

// Codes are the codes of a file's diagnostics.
type Codes struct {
	WrongType, UnknownKey, DuplicateKey, BadValue, TooLarge diag.Code
}

// Decoder reads the YAML tree of one file.
type Decoder struct {
	File  string
	Diags *diag.List
	Codes Codes
	// Top is where the keys at the top of the file are, for messages. AllKeys says how to
	// list the keys of a type with many.
	Top, AllKeys string
	// AnyText: a text may be written as a number or as true and false.
	AnyText bool
	// Hint, if not nil, returns a hint for an unknown key, or "".
	Hint func(key, path string) string
	// Locate, if not nil, corrects the position of a value.
	Locate func(diag.Pos) diag.Pos
	// Seen, if not nil, is called with each key of a struct.
	Seen func(t reflect.Type, key string, n *yaml.Node)

	visits int
	blown  bool
	// merging are the mappings whose merge keys are being followed.
	merging map[*yaml.Node]bool
}

// Unmarshaler is a value that decodes itself.
type Unmarshaler interface {
	DecodeYAML(d *Decoder, n *yaml.Node, path string)
}

func (d *Decoder) Pos(n *yaml.Node) diag.Pos {
	p := diag.Pos{File: d.File, Line: n.Line, Column: n.Column}
	if d.Locate != nil {
		return d.Locate(p)
	}
	return p
}

func (d *Decoder) Errorf(code diag.Code, n *yaml.Node, hint, format string, args ...any) {
	d.Diags.Errorf(code, d.Pos(n), hint, format, args...)
}

func (d *Decoder) WrongType(n *yaml.Node, path, want string) {
	d.Errorf(d.Codes.WrongType, n, howTo[want], "%s must be %s, not %s", LastKey(path), want, Describe(n))
}

// The types that a value may have to have, as messages name them.
const (
	WantText    = "text"
	WantBool    = "true or false"
	WantInt     = "a whole number"
	WantNumber  = "a number"
	WantList    = "a list"
	WantMapping = "a mapping"
	WantMap     = "a mapping of names to texts"
)

// howTo explains how to write each type.
var howTo = map[string]string{
	WantText:    "write one value, in quotes if it has special characters",
	WantBool:    "write true or false, without quotes",
	WantInt:     "write digits only, without quotes",
	WantNumber:  "write a number such as 2 or 0.5, without quotes",
	WantList:    "write [a, b], or a line \"- a\" for each entry",
	WantMapping: "write {key: value}, or a line \"key: value\" for each, indented",
	WantMap:     "write {NAME: value}, or a line \"NAME: value\" for each, indented",
}

// Deref follows an alias; it returns nil once the file unfolds to too much.
func (d *Decoder) Deref(n *yaml.Node) *yaml.Node {
	d.visits++
	if d.visits > maxVisits {
		if !d.blown {
			d.blown = true
			d.Errorf(d.Codes.TooLarge, n, "write the values without aliases, or nest fewer of them",
				"the aliases of the file expand to more than %d values", maxVisits)
		}
		return nil
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Entry is one key of a mapping after merge keys and aliases are resolved.
type Entry struct {
	Key     string
	KeyNode *yaml.Node
	Value   *yaml.Node
}

// Entries flattens a mapping: its own keys first, then what "<<" merges in.
// A key that is written twice is an error.
func (d *Decoder) Entries(n *yaml.Node) []Entry {
	out := make([]Entry, 0, len(n.Content)/2)
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := d.Deref(n.Content[i])
		v := d.Deref(n.Content[i+1])
		if k == nil || v == nil {
			return out
		}
		if k.Tag == "!!merge" || (k.Value == "<<" && k.Style == 0 && k.Kind == yaml.ScalarNode) {
			merges = append(merges, v)
			continue
		}
		if k.Kind != yaml.ScalarNode {
			d.Errorf(d.Codes.WrongType, k, howTo[WantText], "a key must be text, not %s", Describe(k))
			continue
		}
		if strings.ContainsRune(k.Value, 0) {
			d.Errorf(d.Codes.BadValue, k, "remove \"\\0\"", "key %q contains a NUL character", k.Value)
			continue
		}
		if first, dup := seen[k.Value]; dup {
			d.Errorf(d.Codes.DuplicateKey, k, "remove one of the two", "key %q occurs twice (first at line %d)", k.Value, first.Line)
			continue
		}
		seen[k.Value] = k
		out = append(out, Entry{k.Value, k, v})
	}
	if len(merges) == 0 {
		return out
	}
	if d.merging == nil {
		d.merging = map[*yaml.Node]bool{}
	}
	d.merging[n] = true
	for _, m := range merges {
		out = d.merge(out, seen, m)
	}
	delete(d.merging, n)
	return out
}

// merge adds the keys of a "<<" value that do not exist yet.
func (d *Decoder) merge(out []Entry, seen map[string]*yaml.Node, m *yaml.Node) []Entry {
	switch m.Kind {
	case yaml.MappingNode:
		if d.merging[m] {
			d.Errorf(d.Codes.BadValue, m, "use another mapping", "a merge key (<<) refers back to its own mapping")
			return out
		}
		for _, e := range d.Entries(m) {
			if seen[e.Key] == nil {
				seen[e.Key] = e.KeyNode
				out = append(out, e)
			}
		}
	case yaml.SequenceNode:
		for _, item := range m.Content {
			if item = d.Deref(item); item == nil {
				return out
			}
			if item.Kind != yaml.MappingNode {
				d.Errorf(d.Codes.WrongType, item, "use an alias of a mapping: \"<<: *name\"", "a merge key (<<) takes only mappings, not %s", Describe(item))
				continue
			}
			out = d.merge(out, seen, item)
		}
	default:
		d.Errorf(d.Codes.WrongType, m, "use an alias of a mapping: \"<<: *name\"", "a merge key (<<) takes a mapping, not %s", Describe(m))
	}
	return out
}

// Decode reads n into target, a pointer.
func (d *Decoder) Decode(n *yaml.Node, target any, path string) {
	if n = d.Deref(n); n == nil {
		return
	}
	v := reflect.ValueOf(target).Elem()
	if IsNull(n) {
		if l, ok := target.(Nullable); ok {
			l.SetNull(d.Pos(n))
		}
		return
	}
	if u, ok := target.(Unmarshaler); ok {
		u.DecodeYAML(d, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		elem := reflect.New(v.Type().Elem())
		d.Decode(n, elem.Interface(), path)
		v.Set(elem)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.WrongType(n, path, WantList)
			return
		}
		for _, item := range n.Content {
			elem := reflect.New(v.Type().Elem())
			d.Decode(item, elem.Interface(), path+"[]")
			d.placeNull(item, elem.Elem())
			v.Set(reflect.Append(v, elem.Elem()))
		}
	case reflect.Map:
		d.decodeMap(n, v, path)
	case reflect.Struct:
		if j, ok := target.(json.Unmarshaler); ok {
			d.decodeJSON(n, j, path)
			return
		}
		d.DecodeStruct(n, target, path, nil)
	default:
		d.decodeScalar(n, v, path)
	}
}

// placeNull sets the position of an entry of a list that is null, for complaints about it.
func (d *Decoder) placeNull(n *yaml.Node, entry reflect.Value) {
	if n = d.Deref(n); n == nil || !IsNull(n) || entry.Kind() != reflect.Struct {
		return
	}
	if f := fieldsOf(entry.Type()); f.pos != nil {
		entry.FieldByIndex(f.pos).Set(reflect.ValueOf(d.Pos(n)))
	}
}

// decodeMap reads a mapping with free keys.
func (d *Decoder) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, path, WantMapping)
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range d.Entries(n) {
		elem := reflect.New(v.Type().Elem())
		d.Decode(e.Value, elem.Interface(), path+"."+e.Key)
		v.SetMapIndex(reflect.ValueOf(e.Key).Convert(v.Type().Key()), elem.Elem())
	}
}

// decodeJSON reads a value that has its own JSON form, such as a quantity.
func (d *Decoder) decodeJSON(n *yaml.Node, to json.Unmarshaler, path string) {
	var value any
	err := n.Decode(&value)
	if err == nil {
		var data []byte
		if data, err = json.Marshal(value); err == nil {
			err = to.UnmarshalJSON(data)
		}
	}
	if err != nil {
		d.Errorf(d.Codes.BadValue, n, "", "%s: %v", LastKey(path), err)
	}
}

// decodeScalar reads a text, a number or a boolean in YAML's own form.
func (d *Decoder) decodeScalar(n *yaml.Node, v reflect.Value, path string) {
	want, tags := WantNumber, []string{"!!int", "!!float"}
	switch v.Kind() {
	case reflect.String:
		if d.AnyText {
			text, _ := d.Text(n, path)
			v.SetString(text)
			return
		}
		want, tags = WantText, []string{"!!str"}
	case reflect.Bool:
		want, tags = WantBool, []string{"!!bool"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint16, reflect.Uint32:
		want, tags = WantInt, []string{"!!int"}
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.Tag) || n.Decode(v.Addr().Interface()) != nil {
		d.WrongType(n, path, want)
	}
}

// Collector is a struct that takes the keys that it has no field for.
type Collector interface {
	CollectKey(d *Decoder, e Entry, path string)
}

// Nullable is a value that takes note of an explicit null.
type Nullable interface{ SetNull(pos diag.Pos) }

// DecodeStruct reads a mapping into a struct. only, if not nil, limits the keys.
func (d *Decoder) DecodeStruct(n *yaml.Node, target any, path string, only []string) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, path, WantMapping)
		return
	}
	v := reflect.ValueOf(target).Elem()
	f := fieldsOf(v.Type())
	if f.pos != nil {
		v.FieldByIndex(f.pos).Set(reflect.ValueOf(d.Pos(n)))
	}
	for _, e := range d.Entries(n) {
		i, ok := f.byKey[e.Key]
		if !ok || (only != nil && !slices.Contains(only, e.Key)) {
			known := f.keys
			if only != nil {
				known = only
			} else if c, takes := target.(Collector); takes {
				c.CollectKey(d, e, path)
				continue
			}
			d.UnknownKey(e, path, known)
			continue
		}
		if d.Seen != nil {
			d.Seen(v.Type(), e.Key, e.KeyNode)
		}
		sub := path + "." + e.Key
		if path == "" {
			sub = e.Key
		}
		d.Decode(e.Value, v.FieldByIndex(i).Addr().Interface(), sub)
	}
}

// shortList is how many keys a hint names before it is a wall of text.
const shortList = 16

// UnknownKey reports a key that is not among those known at path.
func (d *Decoder) UnknownKey(e Entry, path string, known []string) {
	where := d.Top
	if path != "" {
		where = "in " + path
	}
	hint := d.AllKeys
	if len(known) <= shortList || hint == "" {
		hint = "known keys: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
	}
	if near := Nearest(e.Key, known); near != "" {
		hint = "did you mean \"" + near + "\"?"
	} else if d.Hint != nil {
		hint = cmp.Or(d.Hint(e.Key, path), hint)
	}
	d.Errorf(d.Codes.UnknownKey, e.KeyNode, hint, "unknown key %q %s", e.Key, where)
}

// fields are the keys of a struct type, from its yaml or else its json tags.
type fields struct {
	byKey map[string][]int
	keys  []string
	pos   []int
}

var fieldCache sync.Map

func fieldsOf(t reflect.Type) *fields {
	if f, ok := fieldCache.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{byKey: map[string][]int{}}
	f.collect(t, nil)
	fieldCache.Store(t, f)
	return f
}

// Keys returns the keys of a struct type.
func Keys(t reflect.Type) []string { return fieldsOf(t).keys }

func (f *fields) collect(t reflect.Type, index []int) {
	for i := range t.NumField() {
		field := t.Field(i)
		at := append(slices.Clone(index), i)
		if field.Name == "Pos" {
			f.pos = at
		}
		tag := field.Tag.Get("yaml")
		if tag == "" {
			tag = field.Tag.Get("json")
		}
		key, options, _ := strings.Cut(tag, ",")
		switch {
		case options == "inline" && field.Type.Kind() == reflect.Struct:
			f.collect(field.Type, at)
		case key != "" && key != "-":
			f.byKey[key] = at
			f.keys = append(f.keys, key)
		}
	}
}

func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Text is a scalar's text, or nothing after an error was reported. A NUL character
// ends a text for Linux, so neither names nor values can have one.
func (d *Decoder) Text(n *yaml.Node, path string) (string, bool) {
	text, ok := scalarText(n)
	switch {
	case !ok:
		d.WrongType(n, path, WantText)
	case strings.ContainsRune(text, 0):
		d.Errorf(d.Codes.BadValue, n, "remove \"\\0\"", "%s contains a NUL character", LastKey(path))
		return "", false
	case ownTag(n):
		d.Diags.Warnf(d.Codes.WrongType, d.Pos(n), "write the value itself", "%s has the tag %s, which has no meaning here; the value is the text %q", LastKey(path), n.Tag, text)
	}
	return text, ok
}

// ownTag reports whether a value has a tag that is not one of YAML's, such as !include.
func ownTag(n *yaml.Node) bool {
	return n.Tag != "" && n.Tag != "!" && !strings.HasPrefix(n.ShortTag(), "!!")
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
	if IsNull(n) {
		return "", true
	}
	return n.Value, true
}

// Describe names a YAML value in a message.
func Describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if IsNull(n) {
			return "nothing"
		}
		text := n.Value
		if len(text) > 40 {
			text = text[:40] + "..."
		}
		switch {
		case ownTag(n):
			return "the tag " + n.Tag + ", which has no meaning here"
		case n.Tag == "!!int" || n.Tag == "!!float":
			return "the number " + text
		case n.Tag == "!!bool":
			return text
		}
		return "the text " + strconv.Quote(text)
	default:
		return "this"
	}
}

func LastKey(path string) string {
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
