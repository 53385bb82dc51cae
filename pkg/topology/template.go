package topology

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/gotemplate"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/reach"
)

// renderTemplate executes the topology as a Go template, with the templates of
// clab_templates/ next to it and the variables of varsFiles (or, without any, of
// the files <topology>_vars.yaml|yml|json).
func renderTemplate(ctx context.Context, src *Source, varsFiles []string, diags *diag.List) ([]byte, bool) {
	if !src.IsTemplate() && len(varsFiles) == 0 {
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
		for _, name := range subTemplates(src) {
			text, err := src.Reach.ReadFile(name, gotemplate.MaxText)
			if err == nil {
				_, err = tmpl.New(filepath.Base(name)).Parse(string(text))
			}
			if err != nil {
				return fail(err)
			}
		}
	}
	vars, err := templateVars(src, varsFiles)
	if err != nil {
		diags.Errorf(CodeTemplate, diag.Pos{File: src.Name}, "correct the variables file, or name another with --vars", "%v", err)
		return nil, false
	}
	if !src.IsTemplate() {
		diags.Warnf(CodeTemplate, diag.Pos{File: src.Name}, "write {{ .name }} where a value belongs, or leave --vars out", "the topology is no template: the variables of --vars have no effect")
		return src.Data, true
	}
	var data any
	if vars != nil {
		data = vars
	}
	out, err := gotemplate.Execute(ctx, tmpl, data)
	if err != nil {
		return fail(err)
	}
	if before, _, missing := bytes.Cut(out, []byte("<no value>")); missing {
		diags.Warnf(CodeNoValue, diag.Pos{File: src.Name, Line: bytes.Count(before, []byte("\n")) + 1}, "define it in a variables file",
			"a variable of the template has no value; the output contains \"<no value>\"")
	}
	return out, true
}

// subTemplates are the files clab_templates/*.gotmpl next to the topology, in name order.
func subTemplates(src *Source) []string {
	dir := filepath.Join(src.Dir, "clab_templates")
	entries, err := src.Reach.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".gotmpl" {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

// IsTemplate reports whether the topology is executed as a Go template. The lines in
// diagnostics are then those of the template's output, except errors of the
// template itself.
func (s *Source) IsTemplate() bool { return len(s.Parts) == 0 && bytes.Contains(s.Data, []byte("{{")) }

// templateVars merges the variables files; nil means that there are none.
func templateVars(src *Source, files []string) (map[string]any, error) {
	read := readOwn
	if len(files) == 0 {
		files, read = findVarsFiles(src), src.Reach.ReadFile
	}
	if len(files) == 0 {
		return nil, nil
	}
	vars := map[string]any{}
	for _, name := range files {
		data, err := read(name, gotemplate.MaxText)
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

// readOwn reads a file that the user named.
func readOwn(name string, limit int64) ([]byte, error) {
	return (*reach.Reach)(nil).ReadFile(name, limit)
}

// findVarsFiles are <topology without last extension>_vars.*, in name order.
func findVarsFiles(src *Source) []string {
	if src.Dir == "" {
		return nil
	}
	prefix := strings.TrimSuffix(src.Base, filepath.Ext(src.Base)) + "_vars."
	entries, err := src.Reach.ReadDir(src.Dir)
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
