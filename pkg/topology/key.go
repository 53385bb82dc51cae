package topology

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// Key is a key of a kind on a node, a group, a kind or the defaults. What it may
// hold depends on the kind.
type Key struct {
	Name  string
	Pos   diag.Pos
	Value Value
}

// Value is a value of any type.
type Value struct {
	Pos diag.Pos
	// List and Fields are the parts of a list and of a mapping.
	List   []Value
	Fields []Key

	node *yaml.Node
}

// CollectKey keeps a key that is not generic for the kinds.
func (n *NodeDef) CollectKey(d *strictyaml.Decoder, e strictyaml.Entry, path string) {
	n.Keys = append(n.Keys, readKey(d, e, path))
}

// GenericKeys are the keys that a node of any kind can have.
func GenericKeys() []string { return slices.Clone(strictyaml.Keys(reflect.TypeFor[NodeDef]())) }

func readKey(d *strictyaml.Decoder, e strictyaml.Entry, path string) Key {
	out := Key{Name: e.Key, Pos: d.Pos(e.KeyNode), Value: Value{Pos: d.Pos(e.Value), node: e.Value}}
	if !strictyaml.IsNull(e.Value) {
		out.Value.DecodeYAML(d, e.Value, path+"."+e.Key)
	}
	return out
}

func (v *Value) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	*v = Value{Pos: d.Pos(n), node: n}
	switch n.Kind {
	case yaml.MappingNode:
		for _, e := range d.Entries(n) {
			v.Fields = append(v.Fields, readKey(d, e, path))
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item = d.Deref(item); item == nil {
				return
			}
			var entry Value
			entry.DecodeYAML(d, item, path+"[]")
			v.List = append(v.List, entry)
		}
	default:
		d.Text(n, path) // reports characters that no text can have
	}
}

// IsNull reports whether nothing is written. That counts as set, to the default.
func (v Value) IsNull() bool { return v.node != nil && strictyaml.IsNull(v.node) }

// IsList and IsMap report what the value is.
func (v Value) IsList() bool { return v.node != nil && v.node.Kind == yaml.SequenceNode }
func (v Value) IsMap() bool  { return v.node != nil && v.node.Kind == yaml.MappingNode }

// Text is a scalar as it is written.
func (v Value) Text() (string, bool) {
	if v.node == nil || v.node.Kind != yaml.ScalarNode || v.IsNull() {
		return "", false
	}
	return v.node.Value, true
}

// Int is a whole number in any of YAML 1.1's bases.
func (v Value) Int() (int, bool) {
	text, ok := v.Text()
	if !ok || v.quoted() {
		return 0, false
	}
	return parseInt(text)
}

// Bool is a boolean in YAML 1.1's words.
func (v Value) Bool() (value, ok bool) {
	text, ok := v.Text()
	if !ok || v.quoted() {
		return false, false
	}
	value, ok = yamlBools[strings.ToLower(text)]
	return value, ok
}

func (v Value) quoted() bool {
	return v.node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
}

// Describe names the value in a message.
func (v Value) Describe() string { return strictyaml.Describe(v.node) }
