package plan

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/c9s-lab/c9s/internal/gotemplate"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// kindFuncs are the functions of templates in the catalogue.
var kindFuncs = template.FuncMap{
	"lower":   strings.ToLower,
	"upper":   strings.ToUpper,
	"trim":    strings.TrimSpace,
	"split":   strings.Split,
	"ceil":    func(f float64) int { return int(math.Ceil(f)) },
	"mib":     mebibytes,
	"replace": func(old, with, s string) string { return strings.ReplaceAll(s, old, with) },
}

// mebibytes converts a number of bytes, rounding up.
func mebibytes(bytes string) (int64, error) {
	n, err := strconv.ParseInt(bytes, 10, 64)
	if err == nil && n < 1_000_000 {
		err = fmt.Errorf("memory of %d bytes is less than 1 MB", n)
	}
	return (n + 1<<20 - 1) >> 20, err
}

// texts caches parsed templates by their text.
type texts struct {
	funcs  template.FuncMap
	parsed sync.Map
}

type parsedText struct {
	tmpl *template.Template
	err  error
}

func newTexts(funcs template.FuncMap) *texts { return &texts{funcs: funcs} }

// parse parses a text, named for error messages, at its first use.
func (t *texts) parse(name, text string) (*template.Template, error) {
	if p, ok := t.parsed.Load(text); ok {
		return p.(parsedText).tmpl, p.(parsedText).err
	}
	tmpl, err := template.New(name).Option("missingkey=zero").Funcs(t.funcs).Parse(text)
	t.parsed.Store(text, parsedText{tmpl, err})
	return tmpl, err
}

// execute returns the text unchanged if it has no template actions.
func (t *texts) execute(ctx context.Context, name, text string, data any) (string, error) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	tmpl, err := t.parse(name, text)
	if err != nil {
		return "", err
	}
	out, err := gotemplate.Inline(ctx, tmpl, data)
	return string(out), err
}

// expand executes a text of the catalogue with the data of the node.
func (d *draft) expand(text string) string {
	out, err := d.planner.texts.execute(d.ctx, d.kind.Name, text, d.data)
	if err != nil {
		d.problems.Errorf(CodeKindData, diag.Pos{File: d.node.Pos.File, Line: d.node.Pos.Line, Column: d.node.Pos.Column},
			"correct the entry of the kind", "node %q: the entry of kind %s fails: %v", d.node.Name, d.kind.Name, err)
	}
	return out
}

func (d *draft) expandAll(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = d.expand(text)
	}
	return out
}

// expandMap expands the values in the order of their keys.
func (d *draft) expandMap(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out[k] = d.expand(m[k])
	}
	return out
}

// holds reports whether a condition of the catalogue is met: it is empty, or its result is
// not only white space.
func (d *draft) holds(when string) bool {
	return when == "" || strings.TrimSpace(d.expand(when)) != ""
}

// templateFile returns the output of a template file of the catalogue. Plans share the
// output of one without template actions.
func (d *draft) templateFile(name string, data any) []byte {
	file, err := d.planner.file(name)
	if err == nil {
		if file.tmpl == nil {
			return file.static
		}
		var out []byte
		if out, err = gotemplate.Inline(d.ctx, file.tmpl, data); err == nil {
			return out
		}
	}
	d.problems.Errorf(CodeKindData, d.node.Pos, "correct the template file", "node %q: template %s of kind %s: %v",
		d.node.Name, name, d.kind.Name, err)
	return nil
}

// textFile is a template file; tmpl is nil if it has no template actions.
type textFile struct {
	static []byte
	tmpl   *template.Template
}

// file reads and parses a template file at its first use.
func (b *Builtin) file(name string) (*textFile, error) {
	if f, ok := b.files.Load(name); ok {
		return f.(*textFile), nil
	}
	raw, err := b.catalogue.Template("templates/" + name)
	if err != nil {
		return nil, err
	}
	f := &textFile{static: raw}
	if bytes.Contains(raw, []byte("{{")) {
		if f.tmpl, err = b.texts.parse(name, string(raw)); err != nil {
			return nil, err
		}
	}
	b.files.Store(name, f)
	return f, nil
}
