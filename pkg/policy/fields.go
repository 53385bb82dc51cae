package policy

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/c9s-lab/c9s/internal/strictyaml"
)

// Field describes a key of the policy file.
type Field struct {
	// Path has the keys from the top of the file: "segments.gateway.node".
	Path string
	// Type is text, number, true or false, mapping, or a list of one of them.
	Type string
	Text string
}

// fieldsText has a line for each field: path, type and text between tabs. A test writes it
// from the comments of the types.
//
//go:embed fields.txt
var fieldsText string

// Fields are all keys of the policy file, in the order of the types.
var Fields = sync.OnceValue(func() []Field {
	var out []Field
	for line := range strings.Lines(fieldsText) {
		part := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		out = append(out, Field{part[0], part[1], part[2]})
	}
	return out
})

// LookupField returns the field with this path, which may begin with "policy." and have "[]"
// after lists, and the fields below it. If there is none, nearest is the most similar path.
func LookupField(path string) (found []Field, nearest string) {
	path = strings.ReplaceAll(strings.TrimPrefix(path, "policy."), "[]", "")
	var all []string
	for _, f := range Fields() {
		all = append(all, f.Path)
		if f.Path == path || strings.HasPrefix(f.Path, path+".") {
			found = append(found, f)
		}
	}
	if len(found) > 0 {
		return found, ""
	}
	return nil, strictyaml.Nearest(path, all)
}
