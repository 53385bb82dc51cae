package conform

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/plan"
)

// facts are what a plan says, as "field name" to text: what a device would notice, and
// what is kept of it. The words of generated files and the names of steps are not facts,
// but for those of a user's startup-config.
func facts(p *plan.Plan) map[string]string {
	out := hookFacts(p)
	for _, f := range p.Files {
		if f.Seed {
			out["seed "+f.Path] = "a saved one wins"
		}
		if f.Secret {
			out["secret "+f.Path] = "kept out of ConfigMaps"
		}
		for line := range strings.Lines(string(f.Content)) {
			if strings.Contains(line, marker) {
				out["startup-config "+f.Path] = strings.TrimSpace(line)
			}
		}
		if f.Ref != nil && !f.Ref.Placeholder {
			out["content "+f.Path] = string(f.Ref.Digest)
		}
	}
	out["persist"] = strings.Join(p.Persist, " ")
	for _, port := range p.Ports {
		out["ports "+port.Name] = fmt.Sprint(port)
	}
	if r := p.Readiness; r != nil {
		out["readiness"] = r.Reason + fmt.Sprint(r.Healthcheck)
	}
	maps.DeleteFunc(out, func(_, v string) bool { return v == "" })
	return out
}

// hookFacts are those facts that hooks have an opinion of. What c9s adds to them from
// its catalogue is not among them.
func hookFacts(p *plan.Plan) map[string]string {
	out := map[string]string{}
	put := func(field, name, value string) { out[strings.TrimSpace(field+" "+name)] = value }
	for _, d := range p.Diagnostics {
		if d.Severity == "error" {
			put("error", string(d.Code), d.Message)
		}
	}
	for _, c := range p.Containers {
		name := c.Name
		put("image", name, c.Image)
		put("entrypoint", name, strings.Join(c.Entrypoint, " "))
		put("cmd", name, strings.Join(c.Cmd, " "))
		put("user", name, c.User)
		put("privileged", name, fmt.Sprint(c.Privileged))
		put("capabilities", name, sorted(c.CapAdd))
		put("devices", name, sorted(c.Devices))
		put("shm-size", name, fmt.Sprint(c.ShmSize))
		put("memory", name, fmt.Sprint(c.Memory))
		put("restart-policy", name, c.RestartPolicy)
		for k, v := range c.Env {
			put("env", name+" "+k, v)
		}
		for k, v := range c.Sysctls {
			put("sysctls", name+" "+k, v)
		}
		for k, v := range c.Tmpfs {
			put("tmpfs", name+" "+k, v)
		}
		for _, m := range c.Mounts {
			put("mounts", name+" "+path.Clean(m.Target), fmt.Sprintf("%s%s%s ro=%v", m.Path, m.HostPath, m.Volume, m.ReadOnly))
		}
	}
	for _, f := range p.Files {
		what := "file"
		switch {
		case f.Dir:
			what = "folder"
		case f.Link != "":
			what = "link to " + f.Link
		case f.Certificate != "":
			what = "certificate " + f.Certificate
		}
		put("files", f.Path, fmt.Sprintf("%s %04o", what, f.Mode))
	}
	var names []string
	for _, i := range p.Interfaces {
		names = append(names, i.Name)
	}
	put("interfaces", "", strings.Join(names, " "))
	for i, text := range steps(p) {
		put("exec", fmt.Sprintf("%02d", i+1), text)
	}
	if len(p.Containers) > 0 {
		put("credentials", "", strings.TrimSpace(p.Credentials.Username+" "+p.Credentials.Password))
	}
	put("link-apply-mode", "", p.LinkApplyMode)
	put("stop-signal", "", p.StopSignal)
	put("needs", "", fmt.Sprintf("kvm=%v ssse3=%v cpu=%d memory=%d license=%s certificate=%v", p.Needs.KVM, p.Needs.SSSE3, p.Needs.MinCPU, p.Needs.MinMemory, p.Needs.License, p.Needs.Certificate))
	maps.DeleteFunc(out, func(_, v string) bool { return v == "" })
	return out
}

// steps are what is done in the containers, without what only moves about in a
// command line.
func steps(p *plan.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		at := ""
		if s.Container != "" {
			at = s.Container + ": "
		}
		switch {
		case s.Run != nil:
			out = append(out, at+"run "+strings.Join(s.Run.Argv, " "))
		case s.Wait != nil:
			out = append(out, at+"wait "+strings.Join(s.Wait.Argv, " ")+" => "+s.Wait.Contains)
		case s.Write != nil:
			out = append(out, at+"write "+s.Write.Path)
		case s.CLI != nil:
			lines := slices.DeleteFunc(slices.Clone(s.CLI.Lines), func(l string) bool {
				return l == "exit" || l == "end" || strings.HasPrefix(l, "terminal ") || l == "enable" || strings.HasPrefix(l, "configure")
			})
			out = append(out, at+"type into "+strings.Join(s.CLI.Argv, " ")+": "+strings.Join(lines, " / "))
		}
	}
	return out
}

func sorted(list []string) string {
	return strings.Join(slices.Sorted(slices.Values(list)), " ")
}
