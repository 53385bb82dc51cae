package compile

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/joho/godotenv"
)

// compileSettings resolves dns, certificate, healthcheck, credentials, the delay
// and the link mode of a node.
func (c *compiler) compileSettings(n *node) {
	r := &n.res
	if d := first(r, func(d *topology.NodeDef) *topology.DNS { return d.DNS }); d != nil {
		n.DNS = &lab.DNS{Servers: values(d.Servers.Items), Options: values(d.Options.Items), Search: values(d.Search.Items)}
		for _, s := range d.Servers.Items {
			c.address(s, "dns server", false)
		}
		for what, words := range map[string][]topology.Str{"option": d.Options.Items, "search domain": d.Search.Items} {
			for _, s := range words {
				if !isWord(s.Value) {
					c.diags.Errorf(topology.CodeBadValue, s.Pos, "write one word per entry", "dns %s %q is not one word", what, s.Value)
				}
			}
		}
	}
	c.compileHealthcheck(n)
	c.compileCertificate(n)
	c.compileCredentials(n)
	delay := r.integer(func(d *topology.NodeDef) topology.Int { return d.StartupDelay })
	n.StartupDelay = c.within(delay, 0, 86400, "startup-delay", "seconds")
	mode := r.str(func(d *topology.NodeDef) topology.Str { return d.LinkApplyMode })
	switch mode.Value {
	case "", "live", "restart", "recreate":
		n.LinkApplyMode = mode.Value
	default:
		c.diags.Errorf(topology.CodeBadValue, mode.Pos, "use live, restart or recreate", "unknown link-apply-mode %q", mode.Value)
	}
}

// within checks a number's range; outside it, it is an error and counts as 0.
func (c *compiler) within(i topology.Int, low, high int, what, unit string) int {
	if i.Set && (i.Value < low || i.Value > high) {
		if unit != "" {
			unit = " " + unit
		}
		c.diags.Errorf(CodeOutOfRange, i.Pos, fmt.Sprintf("write a number from %d to %d", low, high), "%s %d is not between %d and %d%s", what, i.Value, low, high, unit)
		return 0
	}
	return i.Value
}

func (c *compiler) compileHealthcheck(n *node) {
	h := first(&n.res, func(d *topology.NodeDef) *topology.Healthcheck { return d.Healthcheck })
	if h == nil {
		return
	}
	test := values(h.Test.Items)
	if len(test) == 0 {
		c.diags.Errorf(topology.CodeMissingField, h.Pos, `add "test: [CMD-SHELL, your command]"`, "the healthcheck has no test")
		return
	}
	switch test[0] {
	case "NONE":
	case "CMD", "CMD-SHELL":
		if len(test) < 2 {
			c.diags.Errorf(topology.CodeMissingField, h.Test.Pos, "add the command: [CMD, curl, localhost]", "the healthcheck's test has no command after %s", test[0])
			return
		}
	default:
		c.diags.Warnf(topology.CodeBadValue, h.Test.Pos, "start with CMD, CMD-SHELL or NONE", "the healthcheck has no effect, as in Docker: its test starts with %q", test[0])
		return
	}
	n.Healthcheck = &lab.Healthcheck{
		Test:        test,
		Interval:    c.within(h.Interval, 0, 86400, "interval", "seconds"),
		Timeout:     c.within(h.Timeout, 0, 86400, "timeout", "seconds"),
		Retries:     c.within(h.Retries, 0, 10000, "retries", "tries"),
		StartPeriod: c.within(h.StartPeriod, 0, 86400, "start-period", "seconds"),
	}
}

// compileCertificate merges the certificate blocks field by field.
func (c *compiler) compileCertificate(n *node) {
	levels := n.res.levels
	for i := len(levels) - 1; i >= 0; i-- {
		b := levels[i].Certificate
		if b == nil {
			continue
		}
		if b.Issue.Set {
			n.Certificate.Issue = b.Issue.Value
		}
		if v := c.keySize(b.KeySize); v > 0 {
			n.Certificate.KeySize = v
		}
		if v := c.duration(b.ValidityDuration, "validity-duration"); v > 0 {
			n.Certificate.ValiditySeconds = v
		}
		if len(b.SANs.Items) > 0 {
			n.Certificate.SANs = values(b.SANs.Items)
		}
		for _, s := range b.SANs.Items {
			if !isWord(s.Value) {
				c.diags.Errorf(topology.CodeBadValue, s.Pos, "write one name or address per entry", "%q is not a valid name in a certificate", s.Value)
			}
		}
	}
}

func (c *compiler) keySize(i topology.Int) int {
	if !i.Set || i.Value == 0 {
		return 0
	}
	return c.within(i, 1024, 16384, "key-size", "bits")
}

// duration reads Go's notation ("8760h") and returns seconds.
func (c *compiler) duration(s topology.Str, what string) int64 {
	if s.Value == "" {
		return 0
	}
	d, err := time.ParseDuration(s.Value)
	if err != nil || d <= 0 {
		c.diags.Errorf(CodeBadDuration, s.Pos, "write hours, minutes or seconds: 8760h, 90m, 30s", "%s %q is not a duration", what, s.Value)
		return 0
	}
	return int64(d / time.Second)
}

// compileCredentials takes the first level that has either half, and fills it up
// from the kind.
func (c *compiler) compileCredentials(n *node) {
	for _, d := range n.res.levels {
		user, password := d.Username.Value, d.Password.Value
		if d.Credentials != nil {
			if d.Credentials.Username.Value != "" {
				user = d.Credentials.Username.Value
			}
			if d.Credentials.Password.Value != "" {
				password = d.Credentials.Password.Value
			}
		}
		if user != "" || password != "" {
			n.Credentials = lab.Credentials{Username: user, Password: password}
			break
		}
	}
	if n.kind == nil {
		return
	}
	if n.Credentials.Username == "" {
		n.Credentials.Username = n.kind.Credentials.Username
	}
	if n.Credentials.Password == "" {
		n.Credentials.Password = n.kind.Credentials.Password
	}
}

// compileEnv merges env-files and env; any env beats the files.
func (c *compiler) compileEnv(n *node) map[string]string {
	out := map[string]string{}
	for _, s := range n.res.union(func(d *topology.NodeDef) topology.List { return d.EnvFiles }) {
		ref, ok := c.files.file(s.Value, s.Pos, "env-file")
		if !ok {
			continue
		}
		text := c.lab.Files[ref.Digest]
		if unfolds(text) {
			c.diags.Errorf(CodeFileTooLarge, s.Pos, "write the values without references", "the variables of env-file %q expand to more than %d bytes", s.Value, maxEnvFile)
			continue
		}
		parsed, err := godotenv.UnmarshalBytes(text)
		if err != nil {
			c.diags.Errorf(CodeFileUnreadable, s.Pos, "write one NAME=value per line", "env-file %q: %v", s.Value, err)
			continue
		}
		for k, v := range parsed {
			if c.envName(k, s.Pos) {
				out[k] = v
			}
		}
	}
	env := n.res.merged(func(d *topology.NodeDef) topology.Map { return c.importEnv(d) })
	for k, kv := range env {
		if c.envName(k, kv.Pos) {
			out[k] = kv.Value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// maxEnvFile is the most that the variables of an env-file may hold, in bytes; what the
// kernel passes to a program is less.
const maxEnvFile = 4 << 20

var (
	envAssignment = regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z0-9_.]+)[ \t]*[=:]`)
	envReference  = regexp.MustCompile(`\$[{(]?([A-Za-z0-9_]+)`)
)

// unfolds reports whether the variables of an env-file may come to more than maxEnvFile
// bytes: each can hold the ones before it, several times.
func unfolds(text []byte) bool {
	if len(text) > maxEnvFile {
		return true
	}
	sizes := map[string]int{}
	total := 0
	starts := envAssignment.FindAllSubmatchIndex(text, -1)
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		value := text[at[1]:end]
		size := len(value)
		for _, ref := range envReference.FindAllSubmatch(value, -1) {
			size += sizes[string(ref[1])]
		}
		sizes[string(text[at[2]:at[3]])] = size
		if total += size; total > maxEnvFile {
			return true
		}
	}
	return false
}

// envName checks the name of an environment variable.
func (c *compiler) envName(name string, pos diag.Pos) bool {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		c.diags.Errorf(CodeBadName, pos, "write NAME: value", "%q is not a valid name for an environment variable", name)
		return false
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }):
		c.diags.Errorf(CodeBadName, pos, "use letters, digits and underscores", "Kubernetes rejects the environment variable %q: names must be printable ASCII", name)
		return false
	}
	return true
}

// importEnv adds the caller's environment to an env block that asks for it with
// __IMPORT_ENVS.
func (c *compiler) importEnv(d *topology.NodeDef) topology.Map {
	m := d.Env
	wants := false
	for _, kv := range m.Items {
		wants = wants || (kv.Key == "__IMPORT_ENVS" && kv.Value == "true")
	}
	if !wants {
		return m
	}
	own := map[string]bool{}
	for _, kv := range m.Items {
		own[kv.Key] = true
	}
	out := topology.Map{Set: true, Pos: m.Pos, Items: append([]topology.KeyValue{}, m.Items...)}
	for _, kv := range c.o.Env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && !own[name] {
			out.Items = append(out.Items, topology.KeyValue{Key: name, Value: value, Pos: m.Pos})
			c.o.Reach.UseEnv(name)
		}
	}
	return out
}

// compileConfigFiles stages startup-config and licence.
func (c *compiler) compileConfigFiles(n *node) {
	r := &n.res
	magic := c.magic(n)
	enforce := r.boolean(func(d *topology.NodeDef) topology.Bool { return d.EnforceStartupConfig })
	suppress := r.boolean(func(d *topology.NodeDef) topology.Bool { return d.SuppressStartupConfig })
	n.EnforceStartupConfig, n.SuppressStartupConfig = enforce.Value, suppress.Value
	s := r.str(func(d *topology.NodeDef) topology.Str { return d.StartupConfig })
	if s.Value != "" {
		if ref, name, ok := c.files.text(magic.Replace(s.Value), s.Pos, "startup-config", "embedded.partial.cfg"); ok {
			n.StartupConfig = &lab.Config{
				File: ref, Name: name, Partial: strings.Contains(strings.ToLower(name), ".partial"), Env: c.configEnv(ref),
			}
		}
	}
	if n.EnforceStartupConfig && n.SuppressStartupConfig {
		c.diags.Errorf(kinds.CodeStartupConfigConflict, suppress.Pos, "keep one of the two", "node %q both enforces and suppresses its startup-config", n.Name)
	} else if n.EnforceStartupConfig && s.Value == "" {
		c.diags.Errorf(kinds.CodeStartupConfigConflict, enforce.Pos, "add startup-config, or remove enforce-startup-config", "node %q enforces a startup-config but has none", n.Name)
	}
	l := r.str(func(d *topology.NodeDef) topology.Str { return d.License })
	if l.Value == "" && n.kind != nil && n.kind.License.Policy == "required" && c.o.AllowMissing {
		ref := c.files.bytes(nil, 0o644, "license")
		ref.Placeholder, ref.Secret = true, true
		n.License = &ref
		c.diags.Warnf(CodeFilePlaceholder, n.Pos, "add license: before you deploy", "node %q of kind %s has no licence; an empty file replaces it", n.Name, n.WrittenKind)
	}
	if l.Value != "" {
		if ref, _, ok := c.files.text(l.Value, l.Pos, "license", "embedded.lic"); ok {
			ref.Secret = true
			n.License = &ref
		}
	}
}

// compileExtras stages the files of kind-specific parameters.
func (c *compiler) compileExtras(n *node) {
	e := first(&n.res, func(d *topology.NodeDef) *topology.Extras { return d.Extras })
	if e == nil {
		return
	}
	stage := func(items []topology.Str, what string) []lab.NamedFile {
		var out []lab.NamedFile
		for _, s := range items {
			written := c.magic(n).Replace(s.Value)
			if ref, ok := c.files.file(written, s.Pos, what); ok {
				out = append(out, lab.NamedFile{Name: filepath.Base(written), File: ref})
			}
		}
		return out
	}
	n.Extras.SRLAgents = stage(e.SRLAgents.Items, "SR Linux agent")
	n.Extras.CEOSCopyToFlash = stage(e.CEOSCopyToFlash.Items, "file for cEOS's flash")
}

// compileComponents checks and copies the cards of a chassis.
func (c *compiler) compileComponents(n *node) {
	list := first(&n.res, func(d *topology.NodeDef) *topology.ComponentList { return d.Components })
	if list == nil {
		return
	}
	c.checkComponents(n, list)
	slots := map[string]diag.Pos{}
	for _, comp := range list.Items {
		slot := strings.ToUpper(strings.TrimSpace(comp.Slot.Value))
		if slot == "" && n.Kind == "nokia_srlinux" {
			slot = "1"
		}
		if slot == "" && len(list.Items) > 1 {
			c.diags.Errorf(kinds.CodeComponents, comp.Pos, "give each card a slot: A, B, or a number", "a card of node %q has no slot", n.Name)
			continue
		}
		if strings.ContainsFunc(slot, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
			c.diags.Errorf(kinds.CodeComponents, comp.Slot.Pos, "use a letter or a number", "slot %q of node %q is not a letter or a number", comp.Slot.Value, n.Name)
			continue
		}
		if other, dup := slots[slot]; dup {
			c.diags.Errorf(kinds.CodeComponents, comp.Pos, "give each card a different slot", "slot %q of node %q is used twice (also at %s)", comp.Slot.Value, n.Name, other)
			continue
		}
		slots[slot] = comp.Pos
		out := lab.Component{Slot: comp.Slot.Value, Type: comp.Type.Value, SFM: comp.SFM.Value, MDA: c.mdas(comp.MDA)}
		for _, kv := range comp.Env.Items {
			if out.Env == nil {
				out.Env = map[string]string{}
			}
			out.Env[kv.Key] = kv.Value
		}
		c.formerComponents(n, &comp, &out)
		seen := map[int]bool{}
		for _, x := range comp.XIOM {
			if c.card(x.Slot, x.Type, x.Pos, "xiom", seen) {
				out.XIOM = append(out.XIOM, lab.XIOM{Slot: x.Slot.Value, Type: x.Type.Value, MDA: c.mdas(x.MDA)})
			}
		}
		n.Components = append(n.Components, out)
	}
}

func (c *compiler) mdas(items []topology.MDA) []lab.MDA {
	var out []lab.MDA
	seen := map[int]bool{}
	for _, m := range items {
		if c.card(m.Slot, m.Type, m.Pos, "mda", seen) {
			out = append(out, lab.MDA{Slot: m.Slot.Value, Type: m.Type.Value})
		}
	}
	return out
}

// card checks the slot and type of an xiom or mda.
func (c *compiler) card(slot topology.Int, typ topology.Str, pos diag.Pos, what string, seen map[int]bool) bool {
	switch {
	case slot.Value <= 0 || typ.Value == "":
		c.diags.Errorf(kinds.CodeComponents, pos, "give it a slot from 1 and a type", "the %s has slot %d and type %q", what, slot.Value, typ.Value)
	case seen[slot.Value]:
		c.diags.Errorf(kinds.CodeComponents, pos, "give each a different slot", "%s slot %d is used twice", what, slot.Value)
	default:
		seen[slot.Value] = true
		return true
	}
	return false
}
