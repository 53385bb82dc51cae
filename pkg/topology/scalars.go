package topology

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
)

func (s *Str) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	text, ok := d.Text(n, path)
	if !ok {
		return
	}
	*s = Str{Value: text, Pos: d.Pos(n)}
}

func (p *PrefixStr) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	p.Str.DecodeYAML(d, n, path)
	p.Set = p.Str.Pos.Line > 0
}

// yamlBools are YAML 1.1's words for booleans, which containerlab's parser takes.
var yamlBools = map[string]bool{
	"y": true, "yes": true, "on": true, "true": true,
	"n": false, "no": false, "off": false, "false": false,
}

func (b *Bool) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	v, ok := yamlBools[strings.ToLower(n.Value)]
	if n.Kind != yaml.ScalarNode || !ok || (n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle)) != 0 {
		d.WrongType(n, path, strictyaml.WantBool)
		return
	}
	*b = Bool{Value: v, Set: true, Pos: d.Pos(n)}
}

func (i *Int) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	v, ok := parseInt(n.Value)
	if n.Kind != yaml.ScalarNode || !ok || (n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle)) != 0 {
		d.WrongType(n, path, strictyaml.WantInt)
		return
	}
	*i = Int{Value: v, Set: true, Pos: d.Pos(n)}
}

// parseInt reads an integer in YAML 1.1's forms: 10, 0x1f, 0b11, 017, 0o17,
// 1_000, and a float without a fraction.
func parseInt(text string) (int, bool) {
	plain := strings.ReplaceAll(text, "_", "")
	if v, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return int(v), true
	}
	if f, err := strconv.ParseFloat(plain, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int(f), true
	}
	return 0, false
}

func (f *Float) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(v) || math.IsInf(v, 0) ||
		(n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle)) != 0 {
		d.WrongType(n, path, strictyaml.WantNumber)
		return
	}
	*f = Float{Value: v, Set: true, Pos: d.Pos(n)}
}

func (l *List) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	*l = List{Set: true, Pos: d.Pos(n)}
	if n.Kind != yaml.SequenceNode {
		d.WrongType(n, path, strictyaml.WantList)
		return
	}
	for _, item := range n.Content {
		if item = d.Deref(item); item == nil {
			return
		}
		text, ok := d.Text(item, path+"[]")
		if !ok {
			continue
		}
		l.Items = append(l.Items, Str{Value: text, Pos: d.Pos(item)})
	}
}

// Values are the texts of the list.
func (l List) Values() []string {
	out := make([]string, 0, len(l.Items))
	for _, item := range l.Items {
		out = append(out, item.Value)
	}
	return out
}

func (m *Map) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	*m = Map{Set: true, Pos: d.Pos(n)}
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, path, strictyaml.WantMap)
		return
	}
	for _, e := range d.Entries(n) {
		text, ok := d.Text(e.Value, path+" "+e.Key)
		if !ok {
			continue
		}
		m.Items = append(m.Items, KeyValue{Key: e.Key, Value: text, Pos: d.Pos(e.KeyNode)})
	}
}

func (a *AnyMap) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(n, path, strictyaml.WantMapping)
		return
	}
	v, _ := anyValue(d, n).(map[string]any)
	*a = AnyMap{Value: v, Pos: d.Pos(n)}
}

// anyValue reads free-form data.
func anyValue(d *strictyaml.Decoder, n *yaml.Node) any {
	if n = d.Deref(n); n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for _, e := range d.Entries(n) {
			out[e.Key] = anyValue(d, e.Value)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			out = append(out, anyValue(d, item))
		}
		return out
	default:
		return anyScalar(n)
	}
}

// anyScalar is a scalar of free-form data; what is not JSON stays text.
func anyScalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return yamlBools[strings.ToLower(n.Value)]
	case "!!int":
		if v, ok := parseInt(n.Value); ok {
			return v
		}
	case "!!float":
		if v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	}
	return n.Value
}

func (l *Defs) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		l.Broken = true
		d.WrongType(n, path, strictyaml.WantMapping)
		return
	}
	entries := d.Entries(n)
	l.Items = make([]Def, 0, len(entries))
	l.index = make(map[string]int, len(entries))
	for _, e := range entries {
		def := Def{Name: e.Key, Pos: d.Pos(e.KeyNode)}
		if !strictyaml.IsNull(e.Value) {
			def.Node = &NodeDef{}
			d.Decode(e.Value, def.Node, path+"."+e.Key)
		}
		l.index[e.Key] = len(l.Items)
		l.Items = append(l.Items, def)
	}
}

// DecodeYAML reads one management network, or a list of at least one, each with its
// name.
func (m *Mgmt) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		d.DecodeStruct(n, m, path, nil)
		return
	}
	if len(n.Content) == 0 {
		d.Errorf(CodeMissingField, n, "list a network, or remove mgmt", "mgmt is an empty list")
		return
	}
	*m = Mgmt{}
	for i, item := range n.Content {
		if item = d.Deref(item); item == nil {
			return
		}
		var entry Mgmt
		d.DecodeStruct(item, &entry, path+"[]", nil)
		if item.Kind == yaml.MappingNode && !entry.Network.IsSet() {
			d.Errorf(CodeMissingField, item, "add network: with a name", "mgmt[%d] has no network", i)
		}
		if i == 0 {
			*m = entry
			m.List = true
		} else {
			m.Others = append(m.Others, entry)
		}
	}
}

func (c *ComponentList) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		d.WrongType(n, path, strictyaml.WantList)
		return
	}
	c.Items = make([]Component, 0, len(n.Content))
	for _, item := range n.Content {
		var comp Component
		d.Decode(item, &comp, path+"[]")
		c.Items = append(c.Items, comp)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
