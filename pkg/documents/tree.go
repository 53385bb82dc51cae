package documents

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// The functions below build YAML trees whose values are where another value is, so that
// diagnostics about them point into the document.

func text(at *yaml.Node, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: at.Line, Column: at.Column}
}

func number(at *yaml.Node, value int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(value), Line: at.Line, Column: at.Column}
}

func boolean(at *yaml.Node, value bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(value), Line: at.Line, Column: at.Column}
}

func list(at *yaml.Node, items ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items, Line: at.Line, Column: at.Column}
}

func texts(at *yaml.Node, values ...string) *yaml.Node {
	out := list(at)
	for _, v := range values {
		out.Content = append(out.Content, text(at, v))
	}
	return out
}

func mapping(at *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line, Column: at.Column}
}

// set adds a key to a mapping, or replaces its value.
func set(m *yaml.Node, at *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i+1] = value
			return
		}
	}
	m.Content = append(m.Content, text(at, key), value)
}

// own returns the value of a key that is written in a mapping itself.
func own(m *yaml.Node, key string) *yaml.Node {
	if m == nil {
		return nil
	}
	for m.Kind == yaml.AliasNode {
		m = m.Alias
	}
	if m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			v := m.Content[i+1]
			for v.Kind == yaml.AliasNode {
				v = v.Alias
			}
			return v
		}
	}
	return nil
}

// lookup returns the value of a key of a mapping, with what "<<" merges in.
func lookup(m *yaml.Node, key string) *yaml.Node {
	if m == nil {
		return nil
	}
	for m.Kind == yaml.AliasNode {
		m = m.Alias
	}
	if m.Kind != yaml.MappingNode {
		return nil
	}
	quiet := &strictyaml.Decoder{Diags: &diag.List{}}
	for _, e := range quiet.Entries(m) {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// shift moves the positions of a tree.
func shift(n *yaml.Node, move func(line, column int) (int, int)) {
	n.Line, n.Column = move(n.Line, n.Column)
	for _, c := range n.Content {
		shift(c, move)
	}
}
