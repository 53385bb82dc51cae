package topology

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"text/template"

	"github.com/c9s-lab/c9s/internal/gotemplate"
)

// TestTemplateBombs have little text and would take all memory by what containerlab's
// functions make of it.
func TestTemplateBombs(t *testing.T) {
	for name, text := range map[string]string{
		"lists of lists":      `{{$x := slice "x"}}{{range seq 60}}{{$x = slice $x $x}}{{end}}{{$x}}`,
		"ToJSON":              `{{$x := "''"}}{{range seq 60}}{{$x = ToJSON (slice $x $x)}}{{end}}`,
		"ToJSONPretty":        `{{$x := "''"}}{{range seq 60}}{{$x = ToJSONPretty (slice $x $x) "" "  "}}{{end}}`,
		"ReplaceAll":          `{{$x := "x"}}{{range seq 60}}{{$x = strings.ReplaceAll "x" "xx" $x}}{{end}}`,
		"Join":                `{{$x := "x"}}{{range seq 60}}{{$x = conv.Join (slice $x $x) ""}}{{end}}`,
		"separator":           `{{$x := "x"}}{{range seq 60}}{{$x = conv.Join (seq 1000) $x}}{{end}}`,
		"Split":               `{{$x := "x"}}{{range seq 21}}{{$x = print $x $x}}{{end}}{{strings.Split "" $x}}`,
		"ReplaceAll, by much": `{{$x := "x"}}{{range seq 21}}{{$x = print $x $x}}{{end}}{{strings.ReplaceAll "x" $x $x}}`,
		"Join, by much":       `{{$x := "x"}}{{range seq 21}}{{$x = print $x $x}}{{end}}{{conv.Join (seq 1000000) $x}}`,
		"escapes":             `{{$x := "<"}}{{range seq 21}}{{$x = print $x $x}}{{end}}{{ToJSON $x}}`,
		"escapes, pretty":     `{{$x := "<"}}{{range seq 21}}{{$x = print $x $x}}{{end}}{{ToJSONPretty $x "" ""}}`,
		"indent":              `{{$x := " "}}{{range seq 11}}{{$x = print $x $x}}{{end}}{{ToJSONPretty (seq 10000) "" $x}}`,
		"prefix":              `{{$x := " "}}{{range seq 11}}{{$x = print $x $x}}{{end}}{{ToJSONPretty (seq 10000) $x ""}}`,
		"seq":                 `{{seq 9223372036854775807}}`,
		"seq, around":         `{{seq -9223372036854775808 9223372036854775807 1}}`,
		"indent, deep":        `{{$i := " "}}{{range seq 10}}{{$i = print $i $i}}{{end}}{{$x := slice 1}}{{range seq 300}}{{$x = slice $x 1 1 1 1 1}}{{end}}{{ToJSONPretty $x "" $i}}`,
		"printf":              `{{$f := "%[1]s"}}{{range seq 18}}{{$f = print $f $f}}{{end}}{{$x := "x"}}{{range seq 20}}{{$x = print $x $x}}{{end}}{{printf $f $x}}`,
	} {
		_, diags := Load(t.Context(), &Source{Name: "t", Base: "t", Data: []byte(text)}, Options{})
		if len(diags) != 1 || diags[0].Code != CodeTemplate || !strings.Contains(diags[0].Message, "more than") || strings.Contains(diags[0].Message, "runs for") {
			t.Errorf("%s: %v", name, diags)
		}
	}
	// Values that a template cannot make, as its variables may hold.
	shared := []any{"x"}
	for range 60 {
		shared = []any{shared, shared}
	}
	for _, text := range []string{`{{ToJSON .}}`, `{{ToJSONPretty . "" ""}}`, `{{slice .}}`, `{{strings.Split "," .}}`, `{{strings.ReplaceAll "a" "b" .}}`, `{{conv.Join . ""}}`} {
		tmpl := template.Must(template.New("t").Funcs(TemplateFuncs()).Parse(text))
		if _, err := gotemplate.Execute(t.Context(), tmpl, shared); err == nil || !strings.Contains(err.Error(), "parts") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestTemplateEndsWithItsContext has the loop that outlived Ctrl-C. The test ends only if
// the loop does not hold it up.
func TestTemplateEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, diags := Load(ctx, &Source{Name: "t", Base: "t", Data: []byte(`{{$s := seq 200}}{{range $s}}{{range $s}}{{range $s}}{{end}}{{end}}{{end}}`)}, Options{})
	if len(diags) != 1 || diags[0].Code != CodeTemplate || !strings.Contains(diags[0].Message, "canceled") {
		t.Error(diags)
	}
}

// TestIndented: what is computed of a text is what it takes, or little more.
func TestIndented(t *testing.T) {
	for _, v := range []any{nil, "a\"[,{", []any{}, map[string]any{"a": []any{1, map[string]any{"b": "\\"}}, "c:": ",["}, []any{[]any{[]any{}}}} {
		text, _ := json.Marshal(v)
		pretty, _ := json.MarshalIndent(v, "> ", "   ")
		if n := indented(text, "> ", "   "); n < len(pretty) || n > 2*len(pretty)+20 {
			t.Errorf("%s takes %d bytes, and %d are computed", text, len(pretty), n)
		}
	}
}
