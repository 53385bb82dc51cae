package kinds

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed fields.md
var fieldsMarkdown string

// Markdown is the page on the kinds of a catalogue: how to add one, a table of
// all, and what each does.
func Markdown(c *Catalogue) []byte {
	var b strings.Builder
	b.WriteString("# Kinds\n\n<!-- Written from the catalogue by: go test ./pkg/plan/kinds -update -->\n\n")
	kinds := c.All()
	fmt.Fprintf(&b, "c9s supports the %d kinds of containerlab %s to 0.81 under their %d names. Each kind is a file in\n"+
		"`pkg/plan/kinds/data`. [Plans](plan.md) explains how c9s uses it.\n\n", len(kinds), ContainerlabVersion, len(c.Names()))
	b.WriteString("| kind | also called | what it is | runs | login | startup-config | licence |\n|---|---|---|---|---|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s | %s | %s |\n", k.Name, strings.ToLower(k.Name), strings.Join(k.Aliases, ", "),
			k.Description, k.runs(), k.login(), code(k.startupTarget()), k.License.Policy)
	}
	b.WriteString("\n" + fieldsMarkdown + "\n## The kinds\n")
	for _, k := range kinds {
		k.section(&b)
	}
	return []byte(b.String())
}

func (k *Kind) runs() string {
	switch {
	case k.Refused != "":
		return "not at all"
	case k.RootNamespace:
		return "without a container"
	case k.VM:
		return "a VM (KVM)"
	}
	return "a container"
}

func (k *Kind) login() string {
	if k.Credentials.Username == "" {
		return ""
	}
	return code(k.Credentials.Username) + " / " + code(k.Credentials.Password)
}

func (k *Kind) startupTarget() string {
	if k.Startup.File == "" && len(k.Startup.Extensions) > 0 {
		targets := slices.Collect(maps.Values(k.Startup.Extensions))
		slices.Sort(targets)
		return strings.Join(slices.Compact(targets), ", ")
	}
	return k.Startup.File
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", "\\|") + "`"
}

// section is what a user wants to know of one kind.
func (k *Kind) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s\n\n%s.", k.Name, k.Description)
	if len(k.Aliases) > 0 {
		fmt.Fprintf(b, " Also called %s.", strings.Join(k.Aliases, ", "))
	}
	b.WriteString("\n\n")
	item := func(label, text string) {
		if text != "" {
			fmt.Fprintf(b, "- %s: %s\n", label, text)
		}
	}
	if k.Refused != "" {
		item("refused", k.Refused)
		item("instead", k.RefusedHint)
		return
	}
	help := k.Interfaces.Help
	if help == "" {
		help = "any name"
	}
	item("interfaces", help)
	if len(k.Types.Values) > 0 {
		types := strings.Join(slices.Sorted(maps.Keys(k.Types.Values)), ", ")
		if k.Types.Open {
			types += ", and any other"
		}
		item("types", types)
	}
	item("keys", k.keyNames())
	item("since containerlab", k.Since)
	item("type without one", code(k.Types.Default+k.Types.Assumed))
	item("needs", k.needs())
	item("managed at", k.ports())
	item("certificate", map[string]string{"always": "issued always", "optional": "issued with `certificate.issue`"}[k.Certificate])
	item("startup-config", k.startupText())
	item("licence", k.licenseText())
	var mounts []string
	for _, m := range k.Container.Mounts {
		mounts = append(mounts, code(m.Target))
	}
	item("mounts", strings.Join(mounts, ", "))
	var steps []string
	for _, s := range k.Steps {
		steps = append(steps, s.Name)
	}
	item("after the start", strings.Join(steps, "; "))
	if k.Readiness != nil {
		item("ready when", code(strings.Join(k.Readiness.Test, " ")))
	}
	item("change of links", k.LinkApplyMode)
	item("stops with", k.StopSignal)
	item("keeps what is saved in", codes(k.Persist))
	item("`c9s save`", k.saveText())
	item("`c9s reset`", k.resetText())
	item("`c9s test` reads neighbours of", strings.Join(slices.Sorted(maps.Keys(k.Neighbours)), ", "))
	for _, m := range k.Missing {
		item("**not supported**", m)
	}
	for _, d := range k.Differs {
		item("differs from containerlab", d)
	}
}

func (k *Kind) saveText() string {
	s := k.Save
	if s == nil {
		return ""
	}
	var parts []string
	if n := s.NETCONF; n != nil && n.Copy != "" {
		parts = append(parts, "NETCONF copies running to "+n.Copy)
	}
	if n := s.NETCONF; n != nil && n.Get != "" {
		parts = append(parts, "NETCONF gets "+n.Get)
	}
	if s.SSH != nil {
		parts = append(parts, "SSH "+code(strings.Join(s.SSH.Lines, "; ")))
	}
	if len(s.Argv) > 0 {
		parts = append(parts, code(strings.Join(s.Argv, " ")))
	}
	if s.Fetch != "" {
		parts = append(parts, code(s.Fetch))
	}
	text := strings.Join(parts, ", then ")
	if s.Without != "" {
		text += "; not if " + s.Without
	}
	return text
}

func (k *Kind) resetText() string {
	r := k.Reset
	if r == nil {
		return ""
	}
	lines := strings.Join(r.Argv, " ")
	if r.Input != "" {
		lines += ": " + r.Input
	}
	text := code(strings.ReplaceAll(strings.TrimSpace(lines), "\n", "; "))
	if r.Put != "" {
		text = "writes the declared configuration to " + code(r.Put) + ", then runs " + text
	}
	if len(r.Probe) > 0 {
		text += ", if this succeeds: " + code(strings.Join(r.Probe, " "))
	}
	return text
}

func (k *Kind) keyNames() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(k.Keys)) {
		key := k.Keys[name]
		text := code(name) + " (" + key.Wants()
		if key.Default != "" {
			text += ", default " + key.Default
		}
		out = append(out, text+")")
	}
	return strings.Join(out, "; ")
}

func codes(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = code(s)
	}
	return strings.Join(out, ", ")
}

func (k *Kind) ports() string {
	out := make([]string, len(k.Ports))
	for i, p := range k.Ports {
		out[i] = fmt.Sprintf("%s %d", p.Name, p.Port)
		if p.Protocol == "udp" {
			out[i] += "/udp"
		}
	}
	return strings.Join(out, ", ")
}

func (k *Kind) needs() string {
	var out []string
	if k.VM {
		out = append(out, "KVM")
	}
	if k.Needs.SSSE3 {
		out = append(out, "SSSE3")
	}
	if k.Needs.MinCPU > 0 {
		out = append(out, fmt.Sprintf("%d CPUs", k.Needs.MinCPU))
	}
	if k.Needs.MinMemory > 0 {
		out = append(out, fmt.Sprintf("%d GiB of memory", k.Needs.MinMemory))
	}
	return strings.Join(out, ", ")
}

func (k *Kind) startupText() string {
	s := k.Startup
	target := k.startupTarget()
	if target == "" {
		if k.RootNamespace {
			return ""
		}
		return "ignored"
	}
	text := code(target) + ", executed as a template"
	if s.Raw {
		text = code(target) + ", taken as it is"
	}
	switch s.Partial {
	case "only":
		text += "; partial ones only"
	case "none":
		text += "; partial ones are not applied"
	case "merge", "append":
		text += "; partial ones are added to the default"
	}
	return text
}

func (k *Kind) licenseText() string {
	var out []string
	if k.License.Policy != "" {
		out = append(out, map[string]string{"required": "required", "warn": "expected"}[k.License.Policy])
	}
	if k.License.File != "" {
		out = append(out, "a Secret, at "+code(k.License.File))
	}
	if k.License.InConfig {
		out = append(out, "a Secret, in the configuration")
	}
	return strings.Join(out, "; ")
}
