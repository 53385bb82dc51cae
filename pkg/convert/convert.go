// Package convert rewrites topologies for a newer release of containerlab. It edits the
// text of the file, so that comments, order and layout stay.
package convert

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/yamltext"
	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Rewrite returns the text of a topology file as a release of containerlab ("0.80" or
// "0.81") reads it. f is the file as it was read, which says what nodes inherit. The
// diagnostics report what was dropped and what has to be rewritten by hand. The text must
// be YAML, not a template.
func Rewrite(text string, f *topology.File, cat *kinds.Catalogue, release string) (string, []diag.Diagnostic, error) {
	if unix := strings.ReplaceAll(text, "\r\n", "\n"); unix != text {
		if strings.Count(text, "\n") != strings.Count(text, "\r\n") {
			return text, nil, errors.New("its lines end in two ways: let all of them end in LF, or in CR LF")
		}
		out, diags, err := Rewrite(unix, f, cat, release)
		return strings.ReplaceAll(out, "\n", "\r\n"), diags, err
	}
	if strings.ContainsAny(text, "\r\u0085\u2028\u2029") {
		return text, nil, errors.New("it has line breaks other than LF and CR LF (CR, NEL, LS or PS), and cannot be rewritten")
	}
	d, err := yamltext.Parse(text)
	if err != nil || d.Root == nil || f == nil || f.Topology == nil {
		return text, nil, err
	}
	r := &rewriter{Document: d, file: f.Path, cat: cat, nodes: compile.Inherit(f.Topology), users: map[*yaml.Node]map[string]bool{}, ranks: map[*yaml.Node]int{}}
	r.readBlocks()
	r.variables()
	r.components()
	if release >= "0.81" {
		r.extras()
	}
	r.oldNames()
	out := r.Apply()
	if _, err := yamltext.Parse(out); err != nil {
		return text, nil, fmt.Errorf("the rewritten file would not be YAML: %w", err)
	}
	return out, r.diags.All(), nil
}

type rewriter struct {
	*yamltext.Document
	file  string
	cat   *kinds.Catalogue
	diags diag.List
	// nodes are what the nodes inherit from, own the mappings of those that have one of
	// their own, and keys the places of those that have none.
	nodes map[string]compile.Inherited
	own   map[string]*yaml.Node
	keys  map[string]*yaml.Node
	// defs are the mappings that define nodes, groups, kinds and defaults, or are merged
	// into such ones; users are the nodes that inherit from each.
	defs  []*yaml.Node
	users map[*yaml.Node]map[string]bool
	// ranks are lower for more specific definitions: nodes before groups, kinds and
	// defaults.
	ranks map[*yaml.Node]int
}

func (r *rewriter) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: r.file, Line: n.Line, Column: n.Column}
}

// byHand reports what is not rewritten.
func (r *rewriter) byHand(n *yaml.Node, format string, args ...any) {
	r.diags.Errorf(CodeByHand, r.pos(n), "rewrite it yourself; `c9s explain` describes the key", format, args...)
}

// dropped reports what is removed without a successor.
func (r *rewriter) dropped(n *yaml.Node, format string, args ...any) {
	r.diags.Warnf(CodeDropped, r.pos(n), "none needed", format, args...)
}

// readBlocks finds the definitions and the nodes that inherit from each.
func (r *rewriter) readBlocks() {
	r.own, r.keys = map[string]*yaml.Node{}, map[string]*yaml.Node{}
	topo, _ := yamltext.Find(r.Root, "topology")
	all := yamltext.Deref(topo.Value)
	every := slices.Sorted(maps.Keys(r.nodes))
	inherit := map[string]map[string][]string{"kinds": {}, "groups": {}, "nodes": {}}
	for _, node := range every {
		in := r.nodes[node]
		for section, name := range map[string]string{"kinds": in.Block, "groups": in.Group, "nodes": node} {
			inherit[section][name] = append(inherit[section][name], node)
		}
	}
	if e, ok := yamltext.Find(all, "defaults"); ok {
		r.define(e.Value, 3, every)
	}
	for i, section := range []string{"kinds", "groups", "nodes"} {
		s, _ := yamltext.Find(all, section)
		for _, e := range yamltext.Entries(yamltext.Deref(s.Value)) {
			name := e.Key.Value
			r.define(e.Value, 2-i, inherit[section][name])
			if section == "nodes" {
				r.keys[name] = e.Key
				if e.Value.Kind == yaml.MappingNode {
					r.own[name] = e.Value
				}
			}
		}
	}
}

// define notes a definition, and what it merges, with the nodes that inherit from it.
func (r *rewriter) define(n *yaml.Node, rank int, nodes []string) {
	m := yamltext.Deref(n)
	if m == nil || m.Kind != yaml.MappingNode {
		return
	}
	known := r.users[m] != nil
	if !known {
		r.users[m] = map[string]bool{}
		r.defs = append(r.defs, m)
		r.ranks[m] = rank
	}
	before := len(r.users[m])
	for _, node := range nodes {
		r.users[m][node] = true
	}
	if known && len(r.users[m]) == before {
		return // what it merges has these nodes too
	}
	for _, e := range yamltext.Entries(m) {
		if e.Key.Tag != "!!merge" {
			continue
		}
		merged := []*yaml.Node{e.Value}
		if v := yamltext.Deref(e.Value); v.Kind == yaml.SequenceNode {
			merged = v.Content
		}
		for _, other := range merged {
			r.define(other, rank, nodes)
		}
	}
}

// kindOf is the kind of a node in the catalogue, nil if it has none.
func (r *rewriter) kindOf(node string) *kinds.Kind {
	k, _ := r.cat.Lookup(r.nodes[node].Kind)
	return k
}

// split sorts the nodes that inherit from a definition by whether their kind is wanted.
func (r *rewriter) split(m *yaml.Node, wanted func(*kinds.Kind) bool) (with, without []string) {
	for _, node := range slices.Sorted(maps.Keys(r.users[m])) {
		if k := r.kindOf(node); k != nil && wanted(k) {
			with = append(with, node)
		} else {
			without = append(without, node)
		}
	}
	return with, without
}

// has reports whether any definition that one of the nodes inherits from has a key.
func (r *rewriter) has(nodes []string, key string) bool {
	for _, m := range r.defs {
		if _, ok := yamltext.Find(m, key); ok && slices.ContainsFunc(nodes, func(n string) bool { return r.users[m][n] }) {
			return true
		}
	}
	return false
}

// give writes a key on the nodes themselves, if others inherit from the definition at
// which it is written now and do not have the key.
func (r *rewriter) give(nodes []string, key, value string) bool {
	ok := true
	for _, node := range nodes {
		m, at := r.own[node], r.keys[node]
		switch {
		case m != nil && len(r.users[m]) == 1 && len(m.Content) > 0:
			r.Insert(yamltext.Entries(m)[0], key, value, nil)
		case m == nil && at != nil && strings.HasPrefix(r.Text[r.Offset(at)+len(r.Raw(at)):], ":\n"):
			end := r.Offset(at) + len(r.Raw(at)) + 1
			r.Replace(end, end, " {"+key+": "+value+"}")
		default:
			ok = false
		}
	}
	return ok
}

// variables replaces environment variables by the keys that containerlab has for them
// since 0.80.
func (r *rewriter) variables() {
	former := map[string]string{} // variable to key
	for _, k := range r.cat.All() {
		for name, spec := range k.Keys {
			if spec.EnvFormer {
				former[spec.Env] = name
			}
		}
	}
	// A variable can go if it can go for all that have it, by aliases and merges too.
	goes := map[*yaml.Node]bool{}
	for _, m := range r.defs {
		env, ok := yamltext.Find(m, "env")
		if !ok {
			continue
		}
		for _, e := range withMerged(yamltext.Deref(env.Value)) {
			if key := former[e.Key.Value]; key != "" {
				can := r.variable(m, env, e, key)
				before, known := goes[e.Key]
				goes[e.Key] = can && (before || !known)
			}
		}
	}
	for _, m := range r.defs {
		env, ok := yamltext.Find(m, "env")
		if !ok {
			continue
		}
		gone := slices.DeleteFunc(yamltext.Entries(env.Value), func(e yamltext.Entry) bool { return !goes[e.Key] })
		switch {
		case env.Value.Kind == yaml.AliasNode: // removed where it is written
		case r.Remove(gone):
		case env.Value.Anchor == "":
			r.Drop(env)
		default: // others refer to the mapping
			for _, e := range gone {
				r.Empty(e)
			}
		}
	}
}

// withMerged are the entries of a mapping and of those that it merges.
func withMerged(m *yaml.Node) []yamltext.Entry {
	out := yamltext.Entries(m)
	for _, e := range out {
		if v := yamltext.Deref(e.Value); e.Key.Tag == "!!merge" && v != m && v.Kind == yaml.MappingNode {
			out = append(out, yamltext.Entries(v)...)
		}
	}
	return out
}

// variable writes the key of one variable, and reports whether the variable can go.
func (r *rewriter) variable(m *yaml.Node, env, e yamltext.Entry, key string) bool {
	spec := func(k *kinds.Kind) (kinds.Key, bool) {
		s, ok := k.Keys[key]
		return s, ok && s.EnvFormer && s.Env == e.Key.Value
	}
	with, without := r.split(m, func(k *kinds.Kind) bool { _, ok := spec(k); return ok })
	if len(with) == 0 {
		return false
	}
	value, ok := r.Written(e)
	if s, _ := spec(r.kindOf(with[0])); s.EnvWhen != "" {
		value = s.EnvWhen
	}
	switch {
	case !ok:
		r.byHand(e.Key, "the variable %s is not a plain text", e.Key.Value)
		return false
	case len(without) == 0 && !r.has(with, key):
		r.Insert(env, key, value, e.Value)
		return true
	case r.give(r.lacking(with, key), key, value):
		return len(without) == 0
	default:
		r.byHand(e.Key, "not all of the nodes that inherit the variable %s can get the key %s", e.Key.Value, key)
		return false
	}
}

// lacking are the nodes that no definition gives a key: else the key wins over what it
// replaces.
func (r *rewriter) lacking(nodes []string, key string) []string {
	return slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return r.has([]string{n}, key) })
}

// components rewrites the cards of a chassis as containerlab 0.80 wants them.
func (r *rewriter) components() {
	for _, m := range r.defs {
		list, ok := yamltext.Find(m, "components")
		if !ok || list.Value.Kind != yaml.SequenceNode {
			continue
		}
		with, without := r.split(m, func(k *kinds.Kind) bool { return k.Components })
		switch {
		case len(with) == 0 && len(without) > 0:
			r.dropped(list.Key, "components had no effect, since the kind has no cards")
			r.Drop(list)
			continue
		case len(without) > 0:
			r.byHand(list.Key, "nodes of kinds without cards inherit components, which containerlab rejects")
		}
		gone := r.fabric(list, with)
		if len(with) > 0 && r.kindOf(with[0]).Name == "nokia_sros" {
			gone = append(gone, r.cardVariables(list.Value)...)
		}
		for _, item := range list.Value.Content {
			card := yamltext.Deref(item)
			r.Remove(slices.DeleteFunc(slices.Clone(gone), func(e yamltext.Entry) bool { return e.In != card }))
		}
	}
}

// fabric moves the switch fabric module from the cards to the node. It returns the
// entries of the cards that can go.
func (r *rewriter) fabric(list yamltext.Entry, nodes []string) []yamltext.Entry {
	var found []yamltext.Entry
	values := map[string]bool{}
	controlWithout, lineWithout := false, false
	for _, item := range list.Value.Content {
		if e, ok := yamltext.Find(yamltext.Deref(item), "sfm"); ok {
			found = append(found, e)
			text, _ := r.Written(e)
			values[text] = true
		} else if slot, _ := yamltext.Find(yamltext.Deref(item), "slot"); slot.Value == nil || kinds.IsCPMSlot(slot.Value.Value) {
			controlWithout = true
		} else {
			lineWithout = true
		}
	}
	switch {
	case len(found) == 0 || r.has(nodes, "sfm"): // the key wins
	case len(values) > 1 || lineWithout:
		r.byHand(found[0].Key, "the cards have several switch fabric modules, and containerlab 0.80 has one for the node")
		return nil
	default:
		if controlWithout {
			r.diags.Warnf(CodeChanged, r.pos(found[0].Key), "none needed: the module belongs to the chassis", "the control cards are told the switch fabric module too, as since containerlab 0.80")
		}
		text, _ := r.Written(found[0])
		r.Insert(list, "sfm", text, found[0].Value)
	}
	return found
}

// cardVariables writes the keys of the cards of nokia_sros that replace variables. It
// returns the environments, which can go.
func (r *rewriter) cardVariables(list *yaml.Node) []yamltext.Entry {
	keys := map[string]string{"cpu": "cpu", "ram": "ram", "max_nics": "max-nics"}
	var gone []yamltext.Entry
	for _, item := range list.Content {
		card := yamltext.Deref(item)
		env, ok := yamltext.Find(card, "env")
		if !ok || env.Value.Kind != yaml.MappingNode {
			continue
		}
		for _, e := range yamltext.Entries(env.Value) {
			key := keys[e.Key.Value]
			if key == "" {
				r.dropped(e.Key, "the variable %s of a card had no effect", e.Key.Value)
			} else if _, set := yamltext.Find(card, key); !set {
				r.Insert(env, key, e.Value.Value, e.Value)
			}
		}
		gone = append(gone, env)
	}
	return gone
}

// oldNames renames keys that containerlab still reads under their old names.
func (r *rewriter) oldNames() {
	renameIn := func(m *yaml.Node, old, key string) {
		e, ok := yamltext.Find(m, old)
		if !ok {
			return
		}
		if _, both := yamltext.Find(m, key); both {
			r.Drop(e)
		} else {
			r.Rename(e, key)
		}
	}
	mgmt, _ := yamltext.Find(r.Root, "mgmt")
	networks := []*yaml.Node{yamltext.Deref(mgmt.Value)}
	if m := networks[0]; m != nil && m.Kind == yaml.SequenceNode {
		networks = m.Content
	}
	for _, m := range networks {
		renameIn(yamltext.Deref(m), "ipv4_subnet", "ipv4-subnet")
		renameIn(yamltext.Deref(m), "ipv6_subnet", "ipv6-subnet")
	}
	topo, _ := yamltext.Find(r.Root, "topology")
	links, _ := yamltext.Find(yamltext.Deref(topo.Value), "links")
	if list := yamltext.Deref(links.Value); list != nil && list.Kind == yaml.SequenceNode {
		for _, item := range list.Content {
			renameIn(yamltext.Deref(item), "udp-port", "dst-port")
		}
	}
}
