package policy

import (
	"path"
	"reflect"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// Match selects nodes: each of its fields that is set must hold.
type Match struct {
	// Names are glob patterns of node names ("spine*").
	Names []string `json:"names,omitempty"`
	// Kinds are kind names or aliases, Groups group names.
	Kinds  []string `json:"kinds,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Labels are labels of the topology that the node must have.
	Labels map[string]string `json:"labels,omitempty"`
	// Expression is in CEL, over the variable node: its name, kind, type, group, image,
	// position, labels, interfaces, memory (bytes) and cpu (cores).
	Expression string `json:"expression,omitempty"`
}

// Node is what an expression sees as node.
type Node struct {
	Name     string            `cel:"name" json:"name"`
	Kind     string            `cel:"kind" json:"kind"`
	Type     string            `cel:"type" json:"type"`
	Group    string            `cel:"group" json:"group"`
	Image    string            `cel:"image" json:"image"`
	Position string            `cel:"position" json:"position"`
	Labels   map[string]string `cel:"labels" json:"labels"`
	// Interfaces are the Linux names of the node's link ends, Peers the names
	// of the nodes at their far ends.
	Interfaces []string `cel:"interfaces" json:"interfaces"`
	// MemoryBytes and CPUCores are the topology's limits, 0 where not set.
	MemoryBytes int64   `cel:"memory" json:"memory"`
	CPUCores    float64 `cel:"cpu" json:"cpu"`
}

func viewOf(n *lab.Node) *Node {
	v := &Node{
		Name: n.Name, Kind: n.Kind, Type: n.Type, Group: n.Group, Image: n.Image, Position: n.Position,
		Labels: n.Labels, MemoryBytes: n.Memory, CPUCores: n.CPU, Interfaces: []string{},
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	for _, e := range n.Endpoints {
		v.Interfaces = append(v.Interfaces, e.Interface)
	}
	return v
}

// matcher is a compiled Match.
type matcher struct {
	Match
	pos     diag.Pos // of the expression
	program cel.Program
}

// Selector is a compiled Match, for other files that select nodes.
type Selector struct {
	match matcher
	// Pos is where it is written; it has no line if it is not.
	Pos diag.Pos
}

// DecodeYAML reads and compiles a match.
func (s *Selector) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	p := &profile{}
	(&reader{Decoder: *d}).match(n, strictyaml.LastKey(path), p)
	s.match, s.Pos = p.match, d.Pos(n)
}

// Set reports whether the selector is written.
func (s *Selector) Set() bool { return s.Pos.Line > 0 }

// Select returns those of nodes that match. An expression that fails for a node is an error
// in diags.
func (s *Selector) Select(nodes []*lab.Node, diags *diag.List) []*lab.Node {
	var out []*lab.Node
	for _, n := range nodes {
		var view *Node
		if s.match.program != nil {
			view = viewOf(n)
		}
		matched, err := s.match.matches(n, view)
		if err != nil {
			diags.Errorf(CodeExpression, s.match.pos, "write an expression that works for every node; has(...) tests whether a field exists", "the expression fails for node %q: %v", n.Name, err)
		} else if matched {
			out = append(out, n)
		}
	}
	return out
}

// maxCost bounds one evaluation of an expression, in CEL's cost units.
const maxCost = 100_000

// celEnv returns the CEL environment of expressions. It is made for the first one, because
// that takes milliseconds.
var celEnv = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[Node]()),
		cel.Variable("node", cel.ObjectType("policy.Node")),
		ext.Strings(),
	)
})

func (m *matcher) matches(n *lab.Node, view *Node) (bool, error) {
	if len(m.Names) > 0 && !slices.ContainsFunc(m.Names, func(pattern string) bool { return glob(pattern, n.Name) }) {
		return false, nil
	}
	if len(m.Kinds) > 0 && !slices.Contains(m.Kinds, n.Kind) && !slices.Contains(m.Kinds, n.WrittenKind) {
		return false, nil
	}
	if len(m.Groups) > 0 && !slices.Contains(m.Groups, n.Group) {
		return false, nil
	}
	for k, v := range m.Labels {
		if have, ok := n.Labels[k]; !ok || have != v {
			return false, nil
		}
	}
	if m.program == nil {
		return true, nil
	}
	out, _, err := m.program.Eval(map[string]any{"node": view})
	if err != nil {
		return false, err
	}
	return out.Value() == true, nil
}

// glob matches a shell pattern; patterns were checked when the file was read.
func glob(pattern, text string) bool {
	ok, _ := path.Match(pattern, text)
	return ok
}
