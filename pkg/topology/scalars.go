package topology

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

func (s *Str) decodeYAML(d *decoder, n *yaml.Node, path string) {
	text, ok := d.text(n, path)
	if !ok {
		return
	}
	*s = Str{Value: text, Pos: d.pos(n)}
}

func (p *PrefixStr) decodeYAML(d *decoder, n *yaml.Node, path string) {
	p.Str.decodeYAML(d, n, path)
	p.Set = p.Str.Pos.Line > 0
}

// yamlBools are YAML 1.1's words for booleans, which containerlab's parser takes.
var yamlBools = map[string]bool{
	"y": true, "yes": true, "on": true, "true": true,
	"n": false, "no": false, "off": false, "false": false,
}

func (b *Bool) decodeYAML(d *decoder, n *yaml.Node, path string) {
	v, ok := yamlBools[strings.ToLower(n.Value)]
	if n.Kind != yaml.ScalarNode || !ok || (n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle)) != 0 {
		d.wrongType(n, path, wantBool)
		return
	}
	*b = Bool{Value: v, Set: true, Pos: d.pos(n)}
}

func (i *Int) decodeYAML(d *decoder, n *yaml.Node, path string) {
	v, ok := parseInt(n.Value)
	if n.Kind != yaml.ScalarNode || !ok || (n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle)) != 0 {
		d.wrongType(n, path, wantInt)
		return
	}
	*i = Int{Value: v, Set: true, Pos: d.pos(n)}
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

func (f *Float) decodeYAML(d *decoder, n *yaml.Node, path string) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(v) || math.IsInf(v, 0) ||
		(n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle)) != 0 {
		d.wrongType(n, path, wantNumber)
		return
	}
	*f = Float{Value: v, Set: true, Pos: d.pos(n)}
}

func (l *List) decodeYAML(d *decoder, n *yaml.Node, path string) {
	*l = List{Set: true, Pos: d.pos(n)}
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, wantList)
		return
	}
	for _, item := range n.Content {
		if item = d.deref(item); item == nil {
			return
		}
		text, ok := d.text(item, path+"[]")
		if !ok {
			continue
		}
		l.Items = append(l.Items, Str{Value: text, Pos: d.pos(item)})
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

func (m *Map) decodeYAML(d *decoder, n *yaml.Node, path string) {
	*m = Map{Set: true, Pos: d.pos(n)}
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, wantMap)
		return
	}
	for _, e := range d.entries(n) {
		text, ok := d.text(e.value, path+" "+e.key)
		if !ok {
			continue
		}
		m.Items = append(m.Items, KeyValue{Key: e.key, Value: text, Pos: d.pos(e.keyNode)})
	}
}

func (a *AnyMap) decodeYAML(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, wantMapping)
		return
	}
	v, _ := d.any(n).(map[string]any)
	*a = AnyMap{Value: v, Pos: d.pos(n)}
}

// any reads free-form data.
func (d *decoder) any(n *yaml.Node) any {
	if n = d.deref(n); n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for _, e := range d.entries(n) {
			out[e.key] = d.any(e.value)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			out = append(out, d.any(item))
		}
		return out
	default:
		return d.anyScalar(n)
	}
}

// anyScalar is a scalar of free-form data; what is not JSON stays text.
func (d *decoder) anyScalar(n *yaml.Node) any {
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

func (l *Defs) decodeYAML(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(n, path, wantMapping)
		return
	}
	entries := d.entries(n)
	l.Items = make([]Def, 0, len(entries))
	l.index = make(map[string]int, len(entries))
	for _, e := range entries {
		def := Def{Name: e.key, Pos: d.pos(e.keyNode)}
		if !isNull(e.value) {
			def.Node = &NodeDef{}
			d.decode(e.value, def.Node, path+"."+e.key)
		}
		l.index[e.key] = len(l.Items)
		l.Items = append(l.Items, def)
	}
}

func (c *ComponentList) decodeYAML(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(n, path, wantList)
		return
	}
	c.Items = make([]Component, 0, len(n.Content))
	for _, item := range n.Content {
		var comp Component
		d.decode(item, &comp, path+"[]")
		c.Items = append(c.Items, comp)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
