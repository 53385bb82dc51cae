package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// encode returns the canonical JSON of obj: compact, apiVersion, kind and
// metadata first, every other key in alphabetical order, without the leftovers
// that the API's Go types write for nothing.
func encode(obj runtime.Object) ([]byte, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(obj); err != nil {
		return nil, err
	}
	tree, err := parseTree(raw.Bytes())
	if err != nil {
		return nil, err
	}
	clean(&tree)
	order(&tree, true)
	return tree.appendJSON(make([]byte, 0, raw.Len())), nil
}

// clean removes the empty structs and nulls of the API's Go types: they say
// nothing, and a status is not the writer's to give.
func clean(tree *value) {
	tree.drop("status")
	cleanMeta(tree)
	spec := tree.get("spec")
	if spec == nil {
		return
	}
	if spec.empty() {
		tree.drop("spec")
		return
	}
	dropEmpty(spec, "strategy")
	dropEmpty(spec, "resources")
	if template := spec.get("template"); template != nil {
		cleanMeta(template)
		if pod := template.get("spec"); pod != nil {
			cleanContainers(pod.get("initContainers"))
			cleanContainers(pod.get("containers"))
		}
	}
}

func cleanMeta(v *value) {
	if meta := v.get("metadata"); meta != nil {
		dropEmpty(meta, "creationTimestamp")
	}
}

func cleanContainers(list *value) {
	if list == nil {
		return
	}
	for i := range list.items {
		dropEmpty(&list.items[i], "resources")
	}
}

func dropEmpty(v *value, key string) {
	if member := v.get(key); member != nil && member.empty() {
		v.drop(key)
	}
}

// order sorts the keys of v and of all below it; at the top, what names the
// object comes first.
func order(v *value, top bool) {
	for i := range v.items {
		order(&v.items[i], false)
	}
	if v.kind != kindObject || !top && slices.IsSorted(v.keys) {
		return
	}
	index := make([]int, len(v.keys))
	for i := range index {
		index[i] = i
	}
	slices.SortFunc(index, func(a, b int) int {
		x, y := v.keys[a], v.keys[b]
		if top && rankKey(x) != rankKey(y) {
			return rankKey(x) - rankKey(y)
		}
		return strings.Compare(x, y)
	})
	keys, items := make([]string, len(index)), make([]value, len(index))
	for to, from := range index {
		keys[to], items[to] = v.keys[from], v.items[from]
	}
	v.keys, v.items = keys, items
}

func rankKey(key string) int {
	switch key {
	case "apiVersion":
		return 0
	case "kind":
		return 1
	case "metadata":
		return 2
	}
	return 3
}

// appendJSON writes v compactly.
func (v *value) appendJSON(b []byte) []byte {
	switch v.kind {
	case kindString:
		return appendQuoted(b, v.text)
	case kindArray:
		b = append(b, '[')
		for i := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.items[i].appendJSON(b)
		}
		return append(b, ']')
	case kindObject:
		b = append(b, '{')
		for i := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, v.keys[i]), ':')
			b = v.items[i].appendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, v.text...)
}

// appendIndented writes v with two spaces a level, starting at indent.
func (v *value) appendIndented(b []byte, indent int) []byte {
	if v.kind < kindArray || len(v.items) == 0 {
		return v.appendJSON(b)
	}
	opening, closing := byte('['), byte(']')
	if v.kind == kindObject {
		opening, closing = '{', '}'
	}
	b = append(b, opening)
	for i := range v.items {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSpaces(append(b, '\n'), indent+2)
		if v.kind == kindObject {
			b = append(appendQuoted(b, v.keys[i]), ": "...)
		}
		b = v.items[i].appendIndented(b, indent+2)
	}
	b = appendSpaces(append(b, '\n'), indent)
	return append(b, closing)
}

func appendSpaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}
