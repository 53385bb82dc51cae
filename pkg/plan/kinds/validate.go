package kinds

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	texttemplate "text/template"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// validate tells what an entry says that cannot be, at the line of its field.
func (l *loader) validate(s *source, k *Kind, c *Catalogue) {
	at := func(field string) diag.Pos {
		pos := diag.Pos{File: s.file, Line: s.node.Line}
		if v := value(s.node, field); v != nil {
			pos.Line, pos.Column = v.Line, v.Column
		}
		return pos
	}
	wrong := func(field, format string, args ...any) {
		l.problems.Errorf(CodeKindFile, at(field), "docs/reference/kinds.md lists the fields", "%s: %s", field, fmt.Sprintf(format, args...))
	}
	oneOf := func(field, text string, allowed ...string) {
		if text != "" && !slices.Contains(allowed, text) {
			wrong(field, "%q is none of %s", text, strings.Join(allowed, ", "))
		}
	}
	template := func(field, name string) {
		if name == "" {
			return
		}
		if _, err := c.Template("templates/" + name); err != nil {
			wrong(field, "there is no file templates/%s", name)
		}
	}
	oneOf("linkApplyMode", k.LinkApplyMode, "live", "restart", "recreate")
	oneOf("certificate", k.Certificate, "always", "optional", "never")
	oneOf("license", k.License.Policy, "required", "warn")
	oneOf("startup", k.Startup.Partial, "whole", "merge", "append", "only", "none")
	oneOf("startup", k.Startup.Data, "node", "ios")
	for _, part := range k.Decides {
		oneOf("decides", part, DecidesSteps, DecidesStartup)
	}
	template("startup", k.Startup.Default)
	template("startup", k.Startup.Append)
	for _, m := range k.Container.Mounts {
		if !path.IsAbs(m.Target) || (m.Path == "") == (m.Host == "") {
			wrong("container", "the mount at %q needs an absolute target and one of path and host", m.Target)
		}
	}
	for _, f := range k.Files {
		if f.Path == "" || path.IsAbs(f.Path) || strings.HasPrefix(path.Clean(f.Path), "..") {
			wrong("files", "%q is not a path in the node's folder", f.Path)
		}
		if count(f.Dir, f.Link != "", f.Certificate != "", f.Content != "", f.Template != "") > 1 {
			wrong("files", "%s has more than one of dir, link, certificate, content and template", f.Path)
		}
		oneOf("files", f.Certificate, "ca.crt", "tls.crt", "tls.key")
		template("files", f.Template)
	}
	for i, p := range k.Ports {
		if p.Name == "" || p.Port == 0 || slices.ContainsFunc(k.Ports[:i], func(q Port) bool { return q.Name == p.Name }) {
			wrong("ports", "port %d needs a name of its own and a number", i+1)
		}
		oneOf("ports", p.Protocol, "tcp", "udp")
	}
	if s := k.Save; s != nil {
		gets := s.NETCONF != nil && s.NETCONF.Get != ""
		switch {
		case count(len(s.Argv) > 0, s.SSH != nil, gets) > 1 || count(len(s.Argv) > 0, s.SSH != nil, gets, s.Fetch != "") == 0:
			wrong("save", "it needs one of argv, ssh, netconf.get and fetch for the configuration")
		case s.SSH != nil && len(s.SSH.Lines) == 0:
			wrong("save", "ssh has no lines")
		case s.NETCONF != nil && s.NETCONF.Copy == "" && !gets:
			wrong("save", "netconf needs copy or get")
		}
		patterns := slices.Concat(s.Drop, s.Ignore)
		if s.SSH != nil {
			patterns = append(patterns, s.SSH.Fails)
		}
		for _, pattern := range patterns {
			if _, err := regexp.Compile(pattern); err != nil {
				wrong("save", "%v", err)
			}
		}
		if s.Fetch != "" && !path.IsAbs(s.Fetch) || s.Target != "" && !path.IsAbs(s.Target) {
			wrong("save", "fetch and target need absolute paths")
		}
		if (len(s.Probe) == 0) != (s.Without == "") {
			wrong("save", "probe and without belong together")
		}
		if strings.ContainsAny(s.Extension, "/ ") || strings.HasPrefix(s.Extension, ".") {
			wrong("save", "%q is not the extension of a file", s.Extension)
		}
	}
	if r := k.Reset; r != nil {
		if len(r.Argv) == 0 {
			wrong("reset", "it needs argv")
		}
		if r.Put != "" && !path.IsAbs(r.Put) {
			wrong("reset", "put needs an absolute path")
		}
		if _, err := regexp.Compile(r.Fails); err != nil {
			wrong("reset", "%v", err)
		}
	}
	for protocol, n := range k.Neighbours {
		_, readErr := texttemplate.New("").Parse(n.Read)
		_, upErr := regexp.Compile(n.Up)
		switch {
		case len(n.Argv) == 0 || n.Read == "" || n.Up == "":
			wrong("neighbours", "%s needs argv, read and up", protocol)
		case readErr != nil:
			wrong("neighbours", "%s: read: %v", protocol, readErr)
		case upErr != nil:
			wrong("neighbours", "%s: up: %v", protocol, upErr)
		}
	}
	for _, word := range k.Ping {
		if _, err := texttemplate.New("").Parse(word); err != nil {
			wrong("ping", "%v", err)
		}
	}
	for i, step := range k.Steps {
		if count(step.Run != nil, step.Wait != nil, step.Write != nil, step.CLI != nil) != 1 {
			wrong("steps", "step %d needs one of run, wait, write and cli", i+1)
		}
		if step.Write != nil {
			template("steps", step.Write.Template)
		}
	}
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
