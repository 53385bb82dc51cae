package plan

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// startup stages the startup-config by the kind's rule.
func (d *draft) startup() {
	rule, n := d.kind.Startup, d.node
	if !d.kind.ReadsStartup() {
		if n.StartupConfig != nil {
			d.ignoredStartup()
		}
		return
	}
	target := d.expand(rule.File)
	if !d.startupWanted(target) {
		return
	}
	if n.StartupConfig != nil && d.data.TypeData["startup"] == "none" {
		d.problems.Errorf(kinds.CodeStartupConfigConflict, n.Pos, "remove startup-config, or set suppress-startup-config: true",
			"node %q: type %s of kind %s takes no startup-config", n.Name, d.data.NodeType, d.kind.Name)
		return
	}
	if n.StartupConfig == nil {
		if f, ok := d.defaultStartup(target); ok {
			d.addFile(f)
		}
		return
	}
	if rule.Extensions != nil {
		var ok bool
		if target, ok = rule.Extensions[strings.ToLower(path.Ext(n.StartupConfig.Name))]; !ok {
			d.problems.Errorf(CodeStartupConfigFormat, n.Pos,
				"give a file whose name ends in "+strings.Join(slices.Sorted(maps.Keys(rule.Extensions)), ", "),
				"node %q: kind %s cannot read startup-config %s", n.Name, d.kind.Name, n.StartupConfig.Name)
			return
		}
	}
	if !d.partialAllowed() {
		return
	}
	if f, ok := d.userStartup(target); ok {
		d.addFile(f)
	}
}

// baseConfig returns the configuration that a partial one completes: the kind's, or that of
// the key bootstrap-config.
func (d *draft) baseConfig() []byte {
	switch own := d.node.Keys["bootstrap-config"].(type) {
	case string: // none
		return []byte(cmp.Or(d.data.PartialCfg, "\n"))
	case lab.NamedFile:
		out, err := d.planner.configs.execute(d.ctx, own.Name, string(d.lab.Files[own.File.Digest]), d.configData())
		if err != nil {
			d.problems.Errorf(CodeStartupConfigTemplate, d.node.Pos, "a bootstrap-config is a Go text/template; write {{\"{{\"}} for two plain braces",
				"node %q: bootstrap-config %s: %v", d.node.Name, own.Name, err)
		}
		return []byte(out)
	}
	return d.templateFile(d.kind.Startup.Default, d.configData())
}

// startupWanted checks the options and reports whether a file is to be staged.
func (d *draft) startupWanted(target string) bool {
	n := d.node
	switch {
	case n.EnforceStartupConfig && n.SuppressStartupConfig:
		d.problems.Errorf(kinds.CodeStartupConfigConflict, n.Pos, "keep one of the two",
			"node %q: enforce-startup-config and suppress-startup-config exclude each other", n.Name)
		return false
	case n.EnforceStartupConfig && n.StartupConfig == nil:
		d.problems.Errorf(kinds.CodeStartupConfigConflict, n.Pos, "add startup-config, or leave out enforce-startup-config",
			"node %q: enforce-startup-config without a startup-config", n.Name)
		return false
	case n.SuppressStartupConfig && !d.kind.Startup.Rewritten: // hooks that rewrite it ignore the option
		d.suppressed = target
		return false
	}
	return true
}

// partialAllowed checks that the configuration is partial or complete, as the kind
// requires.
func (d *draft) partialAllowed() bool {
	n, partial := d.node, d.node.StartupConfig.Partial
	switch rule := d.kind.Startup.Partial; {
	case rule == "only" && !partial:
		d.problems.Errorf(CodeStartupConfigPartial, n.Pos, "name the file with .partial, for example node.partial.cfg",
			"node %q: kind %s takes partial startup-configs only", n.Name, d.kind.Name)
		return false
	case rule == "none" && partial:
		d.problems.Errorf(CodeStartupConfigPartial, n.Pos,
			"save the whole configuration of a running node and give that, in a file without .partial in its name",
			"node %q: startup-config %s is partial, which kind %s gets over SSH from outside after its start; c9s cannot do that",
			n.Name, n.StartupConfig.Name, d.kind.Name)
		return false
	}
	return true
}

func (d *draft) ignoredStartup() {
	d.problems.Warnf(CodeStartupConfigIgnored, d.node.Pos, "mount a file with binds, or type the configuration with exec",
		"kind %s does not read startup-config", d.kind.Name)
}

// defaultStartup returns the configuration of a node that declares none.
func (d *draft) defaultStartup(target string) (File, bool) {
	rule := d.kind.Startup
	if rule.Default == "" && !rule.Empty && rule.Append == "" {
		return File{}, false
	}
	d.defaults = map[string]bool{target: true}
	f := d.startupFile(target)
	if rule.Default != "" {
		f.Content = d.baseConfig()
	}
	f.Content = slices.Concat(f.Content, d.appended())
	return f, true
}

func (d *draft) startupFile(target string) File {
	rule := d.kind.Startup
	return File{
		Path: target, Mode: cmp.Or(rule.Mode, 0o644), GID: rule.GID,
		Seed:   !rule.Rewritten && !d.node.EnforceStartupConfig,
		Secret: d.data.LicenseText != "",
	}
}

// appended returns what the kind appends to every configuration.
func (d *draft) appended() []byte {
	if d.kind.Startup.Append == "" {
		return nil
	}
	return d.templateFile(d.kind.Startup.Append, d.configData())
}

// userStartup returns the user's configuration as the device receives it.
func (d *draft) userStartup(target string) (File, bool) {
	rule, cfg := d.kind.Startup, d.node.StartupConfig
	f := d.startupFile(target)
	f.Secret = f.Secret || cfg.File.Secret
	raw := d.lab.Files[cfg.File.Digest]
	text := string(raw)
	switch {
	case cfg.File.Placeholder:
	case rule.Partial == "merge" && cfg.Partial:
		if d.templatePartial = strings.Contains(text, "{{"); d.templatePartial {
			var ok bool
			if text, ok = d.render(text); !ok {
				return f, false
			}
		}
		d.data.PartialCfg = text
		text = string(d.baseConfig())
	case rule.Raw || cfg.Verbatim:
	default:
		var ok bool
		if text, ok = d.render(text); !ok {
			return f, false
		}
		if rule.Partial == "append" && cfg.Partial {
			text = joinLines(string(d.templateFile(rule.Default, d.configData())), text)
		}
	}
	if more := d.appended(); len(more) > 0 {
		text = joinLines(text, string(more))
	}
	if text == string(raw) {
		f.Ref = &cfg.File
		return f, true
	}
	f.Content = []byte(text)
	return f, true
}

// joinLines concatenates two texts, each on its own lines.
func joinLines(a, b string) string {
	if a != "" && !strings.HasSuffix(a, "\n") {
		a += "\n"
	}
	return a + b
}

// configData returns the data of a configuration template.
func (d *draft) configData() any {
	if d.kind.Startup.Data == "ios" {
		return newIOSData(d.data)
	}
	return d.data
}

// render expands variables in a startup-config, from the environment that compile recorded,
// and executes it as a template.
func (d *draft) render(text string) (string, bool) {
	if d.node.StartupConfig.Verbatim {
		return text, true
	}
	if d.kind.Startup.Data != "ios" && strings.Contains(text, "$") {
		d.leftOver(text)
		expanded, err := expandEnv(text, d.node.StartupConfig.Env)
		if err != nil {
			d.templateProblem(err)
			return "", false
		}
		text = expanded
	}
	name := path.Base(d.node.StartupConfig.Name)
	out, err := d.planner.configs.execute(d.ctx, name, text, d.configData())
	if err != nil {
		_, parsed := d.planner.configs.parse(name, text)
		d.unknownField = parsed == nil
		d.templateProblem(err)
		return "", false
	}
	return out, true
}

// expandEnv expands variables as in a topology file.
func expandEnv(text string, env map[string]string) (string, error) {
	list := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return topology.ExpandEnv(text, list)
}

// templateProblem reports a configuration that cannot be rendered, at the node.
func (d *draft) templateProblem(err error) {
	d.problems.Append([]diag.Diagnostic{templateProblem(d.node, err.Error())})
}

// TemplateProblem adds an error to p: the startup-config of n cannot be rendered. why is the
// error of text/template, possibly within a longer message.
func TemplateProblem(p *Plan, n *lab.Node, why string) {
	p.Diagnostics = append(p.Diagnostics, templateProblem(n, why))
}

func templateProblem(n *lab.Node, why string) diag.Diagnostic {
	var problems diag.List
	where := diag.Pos{File: cmp.Or(n.StartupConfig.File.Origin, n.StartupConfig.Name)}
	where.Line, why = templateFault(why)
	problems.Errorf(CodeStartupConfigTemplate, n.Pos,
		"a startup-config is a Go text/template; write {{\"{{\"}} for two plain braces",
		"node %q: startup-config %s: %s", n.Name, where, why)
	return problems.All()[0]
}

var (
	// "template: name:3:1: executing "name" at <.X>: why"; parts may be missing.
	templateError = regexp.MustCompile(`(?s)^.*?template: (?:[^:]*:(\d+)(?::\d+)?: )?(?:executing "[^"]*" )?(.*)$`)
	// An unterminated action is reported at the end of the text.
	templateStart = regexp.MustCompile(`^(.*) started at [^:]*:(\d+)$`)
	noField       = regexp.MustCompile(`^at <[^>]*>: can't evaluate field (\w+) in type \S+$`)
)

// templateFault returns the line and the reason in an error of text/template. The line is 0
// if the error has none.
func templateFault(text string) (line int, why string) {
	why = text
	if m := templateError.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		why = strings.TrimSpace(m[2])
	}
	if m := templateStart.FindStringSubmatch(why); m != nil {
		line, _ = strconv.Atoi(m[2])
		why = m[1]
	}
	if m := noField.FindStringSubmatch(why); m != nil {
		why = "the node has no field ." + m[1]
	}
	return line, why
}
