package topology

import (
	"context"
	"strings"
	"testing"
)

// TestTemplateBombs have little text and would take all memory by what containerlab's
// functions make of it.
func TestTemplateBombs(t *testing.T) {
	for name, text := range map[string]string{
		"lists of lists": `{{$x := slice "x"}}{{range seq 60}}{{$x = slice $x $x}}{{end}}{{$x}}`,
		"ToJSON":         `{{$x := "''"}}{{range seq 60}}{{$x = ToJSON (slice $x $x)}}{{end}}`,
		"ToJSONPretty":   `{{$x := "''"}}{{range seq 60}}{{$x = ToJSONPretty (slice $x $x) "" "  "}}{{end}}`,
		"ReplaceAll":     `{{$x := "x"}}{{range seq 60}}{{$x = strings.ReplaceAll "x" "xx" $x}}{{end}}`,
		"Join":           `{{$x := "x"}}{{range seq 60}}{{$x = conv.Join (slice $x $x) ""}}{{end}}`,
		"separator":      `{{$x := "x"}}{{range seq 60}}{{$x = conv.Join (seq 1000) $x}}{{end}}`,
		"Split":          `{{$x := "x"}}{{range seq 60}}{{$x = print $x $x}}{{end}}{{strings.Split "" $x}}`,
		"seq":            `{{seq 9223372036854775807}}`,
		"seq, around":    `{{seq -9223372036854775808 9223372036854775807 1}}`,
	} {
		_, diags := Load(t.Context(), &Source{Name: "t", Base: "t", Data: []byte(text)}, Options{})
		if len(diags) != 1 || diags[0].Code != CodeTemplate || !strings.Contains(diags[0].Message, "more than") {
			t.Errorf("%s: %v", name, diags)
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
