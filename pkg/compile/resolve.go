package compile

import (
	"maps"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// resolved are the definitions that apply to one node, the most specific first:
// node, group, kind, defaults. Those that the file does not have are omitted.
type resolved struct {
	// own is the node's own definition, nil for a node with nothing under it.
	own    *topology.NodeDef
	levels []*topology.NodeDef
	kind   string
	group  string
	pos    diag.Pos
}

// resolveNode finds the levels of a node as containerlab does.
func resolveNode(t *topology.Topology, def topology.Def) resolved {
	r := resolved{own: def.Node, pos: def.Pos}
	defaults := t.Defaults
	if defaults == nil {
		defaults = &topology.NodeDef{}
	}
	r.kind = kindOf(t, def.Node, defaults)
	r.group = defaults.Group.Value
	if def.Node != nil {
		if g := def.Node.Group.Value; g != "" {
			r.group = g
		} else if k, _, ok := kindBlock(t, r.kind); ok && k != nil && k.Group.Value != "" {
			r.group = k.Group.Value
		}
		r.levels = append(r.levels, def.Node)
	}
	if g, ok := t.Groups.Get(r.group); ok && g != nil {
		r.levels = append(r.levels, g)
	}
	if k, _, ok := kindBlock(t, r.kind); ok && k != nil {
		r.levels = append(r.levels, k)
	}
	r.levels = append(r.levels, defaults)
	return r
}

// kindBlock is the block of topology.kinds for a kind: the one of that very name,
// else the first by name that differs only in case, as in containerlab 0.80. It also
// returns the entry that has it.
func kindBlock(t *topology.Topology, kind string) (*topology.NodeDef, topology.Def, bool) {
	var found *topology.Def
	for i, def := range t.Kinds.Items {
		if def.Name == kind {
			return def.Node, def, true
		}
		if strings.EqualFold(def.Name, kind) && (found == nil || def.Name < found.Name) {
			found = &t.Kinds.Items[i]
		}
	}
	if found == nil {
		return nil, topology.Def{}, false
	}
	return found.Node, *found, true
}

// kindOf is the kind as written: the node's, its group's, that of the defaults'
// group, the defaults'.
func kindOf(t *topology.Topology, own, defaults *topology.NodeDef) string {
	if own != nil && own.Kind.Value != "" {
		return own.Kind.Value
	}
	groups := []string{defaults.Group.Value}
	if own != nil {
		groups = []string{own.Group.Value, defaults.Group.Value}
	}
	for _, name := range groups {
		if g, ok := t.Groups.Get(name); ok && g != nil && g.Kind.Value != "" {
			return g.Kind.Value
		}
	}
	return defaults.Kind.Value
}

// str is the first level's text that is not empty.
func (r *resolved) str(get func(*topology.NodeDef) topology.Str) topology.Str {
	for _, d := range r.levels {
		if s := get(d); s.IsSet() {
			return s
		}
	}
	return topology.Str{Pos: r.pos}
}

// boolean returns the value of the first level that sets it. As in containerlab, an empty
// node uses only the defaults.
func (r *resolved) boolean(get func(*topology.NodeDef) topology.Bool) topology.Bool {
	levels := r.levels
	if r.own == nil {
		levels = levels[len(levels)-1:]
	}
	for _, d := range levels {
		if b := get(d); b.Set {
			return b
		}
	}
	return topology.Bool{}
}

// integer is the first level's number that is not 0.
func (r *resolved) integer(get func(*topology.NodeDef) topology.Int) topology.Int {
	for _, d := range r.levels {
		if i := get(d); i.Value != 0 {
			return i
		}
	}
	return topology.Int{}
}

// first is the first level's pointer that is not nil.
func first[T any](r *resolved, get func(*topology.NodeDef) *T) *T {
	for _, d := range r.levels {
		if p := get(d); p != nil {
			return p
		}
	}
	return nil
}

// union are the lists of all levels from the defaults up, without repetitions.
func (r *resolved) union(get func(*topology.NodeDef) topology.List) []topology.Str {
	var out []topology.Str
	seen := map[string]bool{}
	for _, d := range slices.Backward(r.levels) {
		for _, s := range get(d).Items {
			if !seen[s.Value] {
				seen[s.Value] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// merged are the maps of all levels, key by key, the most specific winning.
func (r *resolved) merged(get func(*topology.NodeDef) topology.Map) map[string]topology.KeyValue {
	var out map[string]topology.KeyValue
	for _, d := range slices.Backward(r.levels) {
		for _, kv := range get(d).Items {
			if out == nil {
				out = map[string]topology.KeyValue{}
			}
			out[kv.Key] = kv
		}
	}
	return out
}

// firstList is the list of the first level that has any entry.
func (r *resolved) firstList(get func(*topology.NodeDef) topology.List) []topology.Str {
	for _, d := range r.levels {
		if l := get(d); len(l.Items) > 0 {
			return l.Items
		}
	}
	return nil
}

// plainMap drops the positions of a merged map; nil stays nil.
func plainMap(m map[string]topology.KeyValue) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, kv := range m {
		out[k] = kv.Value
	}
	return out
}

// sortedEntries are a merged map's entries by key.
func sortedEntries(m map[string]topology.KeyValue) []topology.KeyValue {
	out := make([]topology.KeyValue, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// mergeVars merges config.vars recursively, the most specific winning.
func (r *resolved) mergeVars() map[string]any {
	if r.own == nil {
		return nil
	}
	var out map[string]any
	// containerlab merges these defaults < kind < group < node.
	for _, d := range slices.Backward(r.levels) {
		if d.Config != nil && len(d.Config.Vars.Value) > 0 {
			out = mergeAny(out, d.Config.Vars.Value)
		}
	}
	return out
}

func mergeAny(dst, src map[string]any) map[string]any {
	out := maps.Clone(dst)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range src {
		a, aok := out[k].(map[string]any)
		b, bok := v.(map[string]any)
		if aok && bok {
			v = mergeAny(a, b)
		}
		out[k] = v
	}
	return out
}
