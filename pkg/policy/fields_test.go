package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/topology"
)

// comments are the comments of the fields of this package's structs, by TYPE.FIELD. A field
// without a comment has that of the field before it, if that names it.
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			before := ""
			for _, field := range s.Fields.List {
				text := strings.Join(strings.Fields(field.Doc.Text()), " ")
				for _, id := range field.Names {
					if text == "" && strings.Contains(before, id.Name) {
						text = before
					}
					out[spec.Name.Name+"."+id.Name] = text
				}
				before = text
			}
			return false
		})
	}
	return out
}

// withKeys replaces the names of a struct's fields by their keys.
func withKeys(of reflect.Type, text string) string {
	for i := range of.NumField() {
		f := of.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key != "" && key != "-" {
			text = regexp.MustCompile(`\b`+f.Name+`\b`).ReplaceAllString(text, key)
		}
	}
	return text
}

// typeWord is what a user writes for a type.
func typeWord(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[topology.Str]():
		return "text"
	case reflect.TypeFor[topology.Bool]():
		return "true or false"
	case reflect.TypeFor[topology.List]():
		return "list of text"
	case reflect.TypeFor[Gateway]():
		return "mapping or text"
	case reflect.TypeFor[Members]():
		return "mapping or list of mapping"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeWord(t.Elem())
	case reflect.Slice:
		return "list of " + typeWord(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		if strings.Contains(t.Name(), "IntOrString") {
			return "text or number"
		}
		return "mapping"
	default:
		return "number"
	}
}

// TestFields holds fields.txt against the types and their comments.
func TestFields(t *testing.T) {
	doc := comments(t)
	var b strings.Builder
	var walk func(of reflect.Type, path string)
	walk = func(of reflect.Type, path string) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of == reflect.TypeFor[Selector]() {
			of = reflect.TypeFor[Match]()
		}
		if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[File]().PkgPath() {
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key == "" || key == "-" {
				continue
			}
			text := withKeys(of, doc[of.Name()+"."+f.Name])
			if text == "" {
				t.Errorf("%s.%s has no comment", of.Name(), f.Name)
			}
			fmt.Fprintf(&b, "%s\t%s\t%s\n", path+key, typeWord(f.Type), text)
			walk(f.Type, path+key+".")
		}
	}
	walk(reflect.TypeFor[File](), "")
	const file = "fields.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("%s is not up to date; run go test ./pkg/policy -update: %s", file, diff)
	}
}

func TestLookupField(t *testing.T) {
	for path, want := range map[string]string{
		"segments.forward":                 "segments.forward",
		"policy.segments[].gateway":        "segments.gateway segments.gateway.node segments.gateway.interface segments.gateway.address",
		"management":                       "management management.from management.from.names management.from.kinds management.from.groups management.from.labels management.from.expression management.to management.to.names management.to.kinds management.to.groups management.to.labels management.to.expression management.allow",
		"profiles.set.persistence.enabled": "profiles.set.persistence.enabled",
		"segments.forwards":                "? segments.forward",
	} {
		found, nearest := LookupField(path)
		var paths []string
		for _, f := range found {
			paths = append(paths, f.Path)
		}
		if len(found) == 0 {
			paths = []string{"?", nearest}
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
