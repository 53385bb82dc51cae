package kinds

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/reference/kinds.md")

func TestMarkdownIsFresh(t *testing.T) {
	const page = "../../../docs/reference/kinds.md"
	got := Markdown(Builtin())
	if *update {
		if err := os.WriteFile(page, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference/kinds.md is stale: go test ./pkg/plan/kinds -update")
	}
}

func TestEveryFieldIsDocumented(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ.PkgPath() != reflect.TypeFor[Kind]().PkgPath() {
			return
		}
		for field := range typ.Fields() {
			name := field.Tag.Get("yaml")
			if name == "" {
				continue
			}
			if !strings.Contains(fieldsMarkdown, "`"+name+"`") && !strings.Contains(fieldsMarkdown, "."+name+"`") &&
				!strings.Contains(fieldsMarkdown, "`"+name+".") {
				t.Errorf("fields.md does not tell of %s.%s", typ.Name(), name)
			}
			walk(field.Type)
		}
	}
	walk(reflect.TypeFor[Kind]())
}
