package gotemplate

import (
	"context"
	"strings"
	"testing"
	"text/template"
	"time"
)

// loop is a template that writes nothing and calls nothing: of a long list it runs for
// hours. Those here are over soon, for a test cannot end one either.
const loop = `{{range .}}{{range $}}{{range $}}{{end}}{{end}}{{end}}`

func list(n int) []int { return make([]int, n) }

// TestLoopsEnd: by the caller's word, and after a time. The test ends only if they do.
func TestLoopsEnd(t *testing.T) {
	tmpl := template.Must(template.New("t").Parse(loop))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Execute(ctx, tmpl, list(200)); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("cancelled: %v", err)
	}
	_, err := within(t.Context(), time.Millisecond, func(ctx context.Context) ([]byte, error) { return Inline(ctx, tmpl, list(200)) })
	if err == nil || !strings.Contains(err.Error(), "more than 1ms") {
		t.Errorf("out of time: %v", err)
	}
	writing := template.Must(template.New("t").Parse(`{{range .}}{{range $}}x{{end}}{{end}}`))
	if _, err := Inline(ctx, writing, list(10_000)); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("a template goes on writing after its context: %v", err)
	}
}

// TestNothingWritten: the result does not depend on whether a buffer was used before.
func TestNothingWritten(t *testing.T) {
	empty := template.Must(template.New("t").Parse(`{{if .}}x{{end}}`))
	for _, data := range []bool{false, true, false} {
		if out, err := Inline(t.Context(), empty, data); err != nil || (out == nil) == data {
			t.Errorf("%v: %#v, %v", data, out, err)
		}
	}
}

// TestBombs have little text and would take all memory.
func TestBombs(t *testing.T) {
	for name, text := range map[string]string{
		"output":  `{{range .}}{{range $}}` + strings.Repeat("x", 1<<14) + `{{end}}{{end}}`,
		"print":   `{{$x := "xxxxxxxxxxxxxxxx"}}{{range .}}{{$x = print $x $x}}{{end}}`,
		"printf":  `{{$x := "xxxxxxxxxxxxxxxx"}}{{range .}}{{$x = printf "%s%s" $x $x}}{{end}}`,
		"format":  `{{$x := "%s%s"}}{{range .}}{{$x = printf $x $x $x}}{{end}}`,
		"println": `{{$x := "xxxxxxxxxxxxxxxx"}}{{range .}}{{$x = println $x $x}}{{end}}`,
		"html":    `{{$x := "&&&&&&&&&&&&&&&&"}}{{range .}}{{$x = print (html $x) (html $x)}}{{end}}`,
		"js":      `{{$x := "''''''''''''''''"}}{{range .}}{{$x = print (js $x) (js $x)}}{{end}}`,
		"url":     `{{$x := "%%%%%%%%%%%%%%%%"}}{{range .}}{{$x = print (urlquery $x) $x}}{{end}}`,
	} {
		tmpl := template.Must(template.New("t").Funcs(Funcs()).Parse(text))
		if _, err := Execute(t.Context(), tmpl, list(10_000)); err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	shared := []any{"x"}
	for range 60 {
		shared = []any{shared, shared}
	}
	// The functions would write it out in full.
	for _, text := range []string{`{{print .}}`, `{{println .}}`, `{{printf "%v" .}}`, `{{html .}}`, `{{js .}}`, `{{urlquery .}}`} {
		tmpl := template.Must(template.New("t").Funcs(Funcs()).Parse(text))
		if _, err := Execute(t.Context(), tmpl, shared); err == nil || !strings.Contains(err.Error(), "parts") {
			t.Errorf("%s of a list of 2^60 texts: %v", text, err)
		}
	}
	for _, c := range []struct {
		format string
		args   []any
	}{
		{strings.Repeat("%[1]s", 1<<18), []any{strings.Repeat("x", 1<<20)}}, {strings.Repeat("%1000000d", 1<<18), []any{1}},
		// These are just over the bound: each makes some 300 MB if nothing stops it.
		{strings.Repeat("%[1]*[1]d", 300), []any{1_000_000}}, {strings.Repeat("%[1]*[1]d", 300), []any{-1_000_000}}, {"%1000d", []any{list(300_000)}},
		{"%.1000000f", []any{make([]float64, 300)}},
	} {
		if _, err := Funcs()["printf"].(func(string, ...any) (string, error))(c.format, c.args...); err == nil || !strings.Contains(err.Error(), "a format may need more than") {
			t.Errorf("%.20s: %v", c.format, err)
		}
	}
	if text, err := Funcs()["printf"].(func(string, ...any) (string, error))("%05d|%-*s|%6.2f|%[2]d|%%", 7, 4, "ab", 3.14159); err != nil || text != "00007|ab  |  3.14|4|%" {
		t.Errorf("an ordinary format: %q, %v", text, err)
	}
	long := strings.Repeat("x", MaxValue)
	if _, err := Short(long); err != nil {
		t.Error(err)
	}
	if _, err := Short(long + "x"); err == nil {
		t.Error("a long text is short")
	}
	for name, v := range map[string]any{
		"a list of 2^60 texts": shared, "a long text": long + "x", "a long key": map[string]int{long + "x": 1}, "long texts": []string{long, "x"},
		"many empty texts": make([]string, MaxParts+1), "many numbers": list(MaxParts + 1),
	} {
		if err := Fits(v); err == nil {
			t.Errorf("%s fits", name)
		}
	}
	if err := Fits(map[string]any{"a": []any{1, "two", nil, list(1000)}}); err != nil {
		t.Error(err)
	}
}
