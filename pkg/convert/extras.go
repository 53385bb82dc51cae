package convert

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/yamltext"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// moved are the places of extras whose values are keys of kinds since containerlab 0.81.
var moved = []struct {
	path []string
	key  string
}{
	{[]string{"ceos-copy-to-flash"}, "copy-to-flash"},
	{[]string{"frr", "daemons"}, "daemons"},
	{[]string{"k8s_kind", "deploy", "kubeconfig"}, "kubeconfig"},
	{[]string{"k8s_kind", "deploy", "wait"}, "wait"},
}

// extras puts what extras has on the node itself.
func (r *rewriter) extras() {
	for _, m := range r.defs {
		if old, ok := yamltext.Find(m, "extras"); ok {
			r.extra(m, old)
		}
	}
}

func (r *rewriter) extra(m *yaml.Node, old yamltext.Entry) {
	var inner []yamltext.Entry
	var keys, none []string
	for _, p := range moved {
		e, ok := old, true
		for _, step := range p.path {
			if e, ok = yamltext.Find(yamltext.Deref(e.Value), step); !ok {
				break
			}
		}
		with, without := r.split(m, func(k *kinds.Kind) bool { _, has := k.Keys[p.key]; return has })
		if !ok {
			if r.hides(m, with, p.path) && !r.has(with, p.key) {
				none = append(none, p.key)
			}
			continue
		}
		switch {
		case len(with) == 0 && len(without) > 0:
			r.dropped(e.Key, "extras.%s had no effect, since the kind does not have it", strings.Join(p.path, "."))
		case len(without) > 0 || r.has(with, p.key):
			value, ok := r.Written(e)
			if !ok || !r.give(r.lacking(with, p.key), p.key, value) {
				r.byHand(e.Key, "not all of the nodes that inherit extras.%s can get the key %s", strings.Join(p.path, "."), p.key)
			}
		default:
			inner, keys = append(inner, e), append(keys, p.key)
		}
	}
	for _, name := range []string{"srl-agents", "mysocket-proxy"} {
		if e, ok := yamltext.Find(yamltext.Deref(old.Value), name); ok {
			r.dropped(e.Key, "extras.%s has had no effect in containerlab since 0.74", name)
		}
	}
	// A level with extras took nothing from those of the levels below it.
	for _, key := range none {
		r.Insert(old, key, "[]", nil)
	}
	r.replaceExtras(old, inner, keys)
}

// hides reports whether the extras of a definition hide a part of those of a less
// specific one from one of the nodes.
func (r *rewriter) hides(m *yaml.Node, nodes []string, path []string) bool {
	for _, other := range r.defs {
		if r.ranks[other] <= r.ranks[m] || !slices.ContainsFunc(nodes, func(n string) bool { return r.users[other][n] }) {
			continue
		}
		e, ok := yamltext.Find(other, "extras")
		for _, step := range path {
			if ok {
				e, ok = yamltext.Find(yamltext.Deref(e.Value), step)
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// replaceExtras writes the keys in place of extras.
func (r *rewriter) replaceExtras(old yamltext.Entry, inner []yamltext.Entry, keys []string) {
	if len(inner) == 0 {
		r.Drop(old)
		return
	}
	from, to := r.Extent(old)
	elsewhere := func(e yamltext.Entry) bool { // in braces, or behind an alias
		at := r.Offset(e.Key)
		return yamltext.Flow(e.In) || at < from || at >= to
	}
	if !yamltext.Flow(old.In) && !slices.ContainsFunc(inner, elsewhere) {
		r.Hoist(old, inner, keys)
		return
	}
	var parts []string
	for i, e := range inner {
		value, ok := r.Written(e)
		if !ok {
			r.byHand(e.Key, "extras.%s has a value over several lines", e.Key.Value)
			return
		}
		parts = append(parts, r.KeyLike(old.Key, keys[i])+": "+value)
	}
	if yamltext.Flow(old.In) {
		text := r.Text[from:to]
		rest := text[len(strings.TrimRight(text, ", \t\r\n")):]
		r.Replace(from, to, strings.Join(parts, ", ")+rest)
		return
	}
	end := ""
	if strings.HasSuffix(r.Text[from:to], "\n") {
		end = "\n"
	}
	comment := ""
	if old.Value.LineComment != "" {
		comment = " " + old.Value.LineComment
	}
	r.Replace(from, to, strings.Join(parts, "\n"+r.Indent(from))+comment+end)
}
