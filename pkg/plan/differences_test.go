package plan

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// differences gives for each field that differs what was recorded and planned.
func differences(r *recordedPlan, p *Plan) map[string]string {
	out := map[string]string{}
	node := r.subject()
	compare := func(field string, recorded, planned any) {
		a, b := fmt.Sprintf("%v", recorded), fmt.Sprintf("%v", planned)
		if a != b {
			out[field] = fmt.Sprintf("recorded %s, planned %s", a, b)
		}
	}
	compare("link-apply-mode", node.LinkApplyMode, p.LinkApplyMode)
	compare("interfaces", recordedInterfaces(r), p.Interfaces)
	compare("containers", len(node.Containers), len(p.Containers))
	if len(node.Containers) != 1 || len(p.Containers) != 1 {
		return out
	}
	compare("stop-signal", node.StopSignal, p.StopSignal)
	compare("certificate", node.RequiresCert, p.Needs.Certificate)
	compare("needs", node.HostRequirements, struct {
		V, S bool
		C, M int
	}{p.Needs.KVM, p.Needs.SSSE3, p.Needs.MinCPU, int(p.Needs.MinMemory >> 30)})
	compare("license", strings.TrimSuffix(node.LicensePolicy, "none"), p.Needs.License)
	for _, c := range node.Containers {
		compareContainer(out, compare, &c, p)
	}
	compareFiles(out, r, p)
	compare("steps", recordedSteps(r), plannedSteps(p))
	return out
}

func compareContainer(out map[string]string, compare func(string, any, any), c *recordedContainer, p *Plan) {
	got := p.Containers[0]
	compareMaps(out, "env", normalMACs(c.Env), normalMACs(got.Env))
	compareMaps(out, "sysctl", c.Sysctls, got.Sysctls)
	compareMaps(out, "tmpfs", c.Tmpfs, got.Tmpfs)
	compare("cmd", normalCommand(shellWords(c.Cmd)), normalCommand(got.Cmd))
	compare("entrypoint", shellWords(c.Entrypoint), got.Entrypoint)
	compare("user", c.User, got.User)
	compare("cap-add", c.CapAdd, got.CapAdd)
	compare("devices", c.Devices, got.Devices)
	compare("shm-size", humanBytes(c.ShmSize), got.ShmSize)
	compare("memory", humanBytes(c.Memory), got.Memory)
	compare("restart-policy", c.RestartPolicy, got.RestartPolicy)
	compare("mgmt-mac", macShape(c.MacAddress), macShape(got.MgmtMAC))
	var mounts []string
	for _, b := range c.Binds {
		mounts = append(mounts, strings.TrimSuffix(strings.Replace(b, c.Labdir+"/", "", 1), ":rw"))
	}
	var planned []string
	for _, m := range got.Mounts {
		line := m.Path + m.HostPath + ":" + m.Target
		if m.ReadOnly {
			line += ":ro"
		}
		planned = append(planned, line)
	}
	compareLists(out, "mount", mounts, planned)
	var recorded, own any
	if c.Healthcheck != nil {
		recorded = *c.Healthcheck
	}
	if p.Readiness != nil && p.Readiness.Reason != "image" {
		own = p.Readiness.Healthcheck
	}
	compare("healthcheck", recorded, own)
}

func compareFiles(out map[string]string, r *recordedPlan, p *Plan) {
	recorded := map[string]string{}
	for _, f := range r.Files {
		if rest, ok := strings.CutPrefix(f.Path, "clab-"+r.Lab+"/n1/"); ok && f.Node == "n1" {
			recorded[rest] = f.Mode
		}
	}
	planned := map[string]string{}
	for _, f := range p.Files {
		mode := os.FileMode(f.Mode)
		switch {
		case f.Dir:
			mode |= os.ModeDir
		case f.Link != "":
			mode |= os.ModeSymlink
		}
		// What was recorded is cut by umask 022, unless the hook set the mode.
		if cut := mode &^ 0o022; f.Link == "" && recorded[f.Path] == cut.String() {
			mode = cut
		}
		planned[f.Path] = mode.String()
	}
	compareMaps(out, "file", recorded, planned)
}

func compareMaps(out map[string]string, field string, recorded, planned map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(recorded)) {
		if v, ok := planned[k]; !ok {
			out[field+" "+k] = fmt.Sprintf("recorded %q, not planned", recorded[k])
		} else if v != recorded[k] {
			out[field+" "+k] = fmt.Sprintf("recorded %q, planned %q", recorded[k], v)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(planned)) {
		if _, ok := recorded[k]; !ok {
			out[field+" "+k] = fmt.Sprintf("planned %q, not recorded", planned[k])
		}
	}
}

func compareLists(out map[string]string, field string, recorded, planned []string) {
	set := func(list []string) map[string]string {
		m := map[string]string{}
		for _, s := range list {
			m[s] = "there"
		}
		return m
	}
	compareMaps(out, field, set(recorded), set(planned))
}

func recordedInterfaces(r *recordedPlan) []Interface {
	var out []Interface
	for _, link := range r.Links {
		for _, e := range link.Endpoints {
			if e.Node == "n1" {
				out = append(out, Interface{Name: e.Iface})
			}
		}
	}
	return out
}

// recordedSteps are the commands that the hooks ran, then the lines they typed.
func recordedSteps(r *recordedPlan) []string {
	var out []string
	for _, op := range r.Ops {
		if op.Container != "clab-"+r.Lab+"-n1" {
			continue
		}
		switch op.Op {
		case "Exec", "ExecNotWait":
			out = append(out, strings.Join(op.Args.Cmd, " "))
		case "CopyToContainer":
			out = append(out, "write "+op.Args.Dst)
		}
	}
	for _, line := range r.InteractiveCLI {
		if f := strings.SplitN(line, "\t", 4); len(f) == 4 && f[0] == "clab-"+r.Lab+"-n1" {
			out = append(out, "> "+f[3])
		}
	}
	return out
}

func plannedSteps(p *Plan) []string {
	var out []string
	for _, s := range p.Steps {
		switch {
		case s.Run != nil:
			out = append(out, strings.Join(s.Run.Argv, " "))
		case s.Wait != nil:
			out = append(out, strings.Join(s.Wait.Argv, " "))
		case s.Write != nil:
			out = append(out, "write "+s.Write.Path)
		case s.CLI != nil:
			for _, line := range s.CLI.Lines {
				out = append(out, "> "+line)
			}
		}
	}
	return out
}

var macBytes = regexp.MustCompile(`^([0-9a-f]{2}(?::[0-9a-f]{2})?(?::[0-9a-f]{2})?)(?::[0-9a-f]{2}){3,5}$`)

// macShape keeps what of an address is not drawn at random: its first byte, and
// the zeros at its end.
func macShape(mac string) string {
	if !macBytes.MatchString(mac) {
		return mac
	}
	if strings.HasSuffix(mac, ":00:00:00") {
		return mac[:2] + ":*:*:00:00:00"
	}
	return mac[:8] + ":*:*:*"
}

func normalMACs(env map[string]string) map[string]string {
	out := maps.Clone(env)
	for k, v := range out {
		out[k] = macShape(v)
	}
	return out
}

// normalCommand sorts the variables in the command of cEOS and leaves out those
// that differ as variables already.
func normalCommand(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		vars := strings.Split(w, " systemd.setenv=")
		if len(vars) < 2 {
			continue
		}
		kept := []string{}
		for _, v := range vars[1:] {
			v = strings.TrimSpace(v)
			skip := slices.ContainsFunc([]string{"no_proxy", "NO_PROXY", "LAB_DIR", "TOPO_FILE", "OWNER"},
				func(s string) bool { return strings.Contains(v, s) })
			if !skip {
				kept = append(kept, v)
			}
		}
		slices.Sort(kept)
		out[i] = vars[0] + " " + strings.Join(kept, " ")
	}
	return out
}

// shellWords splits as a shell does, for the commands in recorded plans.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, c := range text {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inWord = c, true
		case quote == 0 && c == ' ':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

func humanBytes(text string) int64 {
	text = strings.TrimSuffix(strings.TrimSuffix(text, "B"), "M")
	n, _ := strconv.ParseInt(text, 10, 64)
	return n * 1_000_000
}
