package topology

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/c9s-lab/c9s/pkg/diag"
	"go.yaml.in/yaml/v3"
)

// maxRendered bounds what a template may produce, in bytes.
const maxRendered = 64 << 20

// renderTemplate executes the topology as a Go template, with the templates of
// clab_templates/ beside it and the variables of varsFiles (or, without any, of
// the files <topology>_vars.yaml|yml|json).
func renderTemplate(src *Source, varsFiles []string, diags *diag.List) ([]byte, bool) {
	if !src.IsTemplate() {
		return src.Data, true
	}
	fail := func(err error) ([]byte, bool) {
		diags.Errorf(CodeTemplate, templatePos(src, err), "correct the template; containerlab executes the whole file as a Go text/template", "%s", trimTemplateError(err))
		return nil, false
	}
	tmpl, err := template.New(src.Base).Funcs(TemplateFuncs()).Parse(string(src.Data))
	if err != nil {
		return fail(err)
	}
	if src.Dir != "" {
		fsys := os.DirFS(src.Dir)
		if subs, err := fs.Glob(fsys, "clab_templates/*.gotmpl"); err == nil && len(subs) > 0 {
			if tmpl, err = tmpl.ParseFS(fsys, subs...); err != nil {
				return fail(err)
			}
		}
	}
	vars, err := templateVars(src, varsFiles)
	if err != nil {
		diags.Errorf(CodeTemplate, diag.Pos{File: src.Name}, "correct the variables file, or name another with --vars", "%v", err)
		return nil, false
	}
	out := &limitedBuffer{limit: maxRendered}
	var data any
	if vars != nil {
		data = vars
	}
	if err := tmpl.Execute(out, data); err != nil {
		return fail(err)
	}
	if before, _, missing := bytes.Cut(out.Bytes(), []byte("<no value>")); missing {
		diags.Warnf(CodeNoValue, diag.Pos{File: src.Name, Line: bytes.Count(before, []byte("\n")) + 1}, "define it in a variables file",
			"a variable of the template has no value; its place says \"<no value>\"")
	}
	return out.Bytes(), true
}

// IsTemplate tells that the topology is executed as a Go template. The lines in
// diagnostics are then those of the template's output, but for errors of the
// template itself.
func (s *Source) IsTemplate() bool { return bytes.Contains(s.Data, []byte("{{")) }

// limitedBuffer refuses to grow past its limit.
type limitedBuffer struct {
	bytes.Buffer
	limit int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		return 0, fmt.Errorf("the template produces more than %d bytes", b.limit)
	}
	return b.Buffer.Write(p)
}

// templateVars merges the variables files; nil means that there are none.
func templateVars(src *Source, files []string) (map[string]any, error) {
	if len(files) == 0 {
		files = findVarsFiles(src)
	}
	if len(files) == 0 {
		return nil, nil
	}
	vars := map[string]any{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the variables file: %w", err)
		}
		var one map[string]any
		if err := yaml.Unmarshal(data, &one); err != nil {
			return nil, fmt.Errorf("variables file %s: %w", filepath.Base(name), err)
		}
		mergeVars(vars, one)
	}
	return vars, nil
}

// findVarsFiles are <topology without last extension>_vars.*, in name order.
func findVarsFiles(src *Source) []string {
	if src.Dir == "" {
		return nil
	}
	prefix := strings.TrimSuffix(src.Base, filepath.Ext(src.Base)) + "_vars."
	entries, err := os.ReadDir(src.Dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			out = append(out, filepath.Join(src.Dir, e.Name()))
		}
	}
	return out
}

// mergeVars puts src over dst; mappings are merged key by key.
func mergeVars(dst, src map[string]any) {
	for k, v := range src {
		if sub, ok := v.(map[string]any); ok {
			if old, ok := dst[k].(map[string]any); ok {
				mergeVars(old, sub)
				continue
			}
		}
		dst[k] = v
	}
}

var templateLine = regexp.MustCompile(`^template: [^:]*:(\d+)(?::(\d+))?: `)

// templatePos reads the line out of an error of text/template.
func templatePos(src *Source, err error) diag.Pos {
	pos := diag.Pos{File: src.Name}
	if m := templateLine.FindStringSubmatch(err.Error()); m != nil {
		pos.Line, _ = strconv.Atoi(m[1])
		if m[2] != "" {
			pos.Column, _ = strconv.Atoi(m[2])
			pos.Column++
		}
	}
	return pos
}

func trimTemplateError(err error) string {
	return "template: " + templateLine.ReplaceAllString(err.Error(), "")
}
