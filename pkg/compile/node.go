package compile

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"github.com/google/shlex"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// hostKind is the kind that represents the container host. It has no Pod.
const hostKind = "host"

// resolveNodes finds each node's levels and kind.
func (c *compiler) resolveNodes() {
	t := c.f.Topology
	if len(t.Nodes.Items) == 0 && !t.Nodes.Broken {
		c.diags.Errorf(topology.CodeMissingField, diag.Pos{File: c.f.Path, Line: t.Pos.Line, Column: t.Pos.Column}, "add nodes under topology.nodes", "the topology has no nodes")
	}
	c.checkKinds()
	for _, def := range t.Nodes.Items {
		c.resolveNode(def)
	}
}

func (c *compiler) resolveNode(def topology.Def) {
	c.addNode(def, resolveNode(c.f.Topology, def))
}

// addNode adds a node with the definitions that apply to it.
func (c *compiler) addNode(def topology.Def, res resolved) {
	t := c.f.Topology
	defer c.diags.ForNode(def.Name)()
	if !isBridgeName(def.Name) {
		c.diags.Errorf(CodeBadName, def.Pos, useLetters, "%q is not a valid node name", def.Name)
		return
	}
	n := &node{Node: &lab.Node{Name: def.Name, Pos: def.Pos}, res: res}
	c.nodes[def.Name] = n
	c.order = append(c.order, n)
	c.resolveKind(n)
	if !n.RootNamespace && !isName(def.Name) {
		c.diags.Errorf(CodeBadName, def.Pos, useLetters, "%q is not a valid node name", def.Name)
	}
	n.Group = n.res.group
	if _, ok := t.Groups.Get(n.Group); n.Group != "" && !ok && len(t.Groups.Items) > 0 {
		names := make([]string, 0, len(t.Groups.Items))
		for _, g := range t.Groups.Items {
			names = append(names, g.Name)
		}
		hint := ""
		if near := strictyaml.Nearest(n.Group, names); near != "" {
			hint = "did you mean \"" + near + "\"?"
		}
		pos := n.res.str(func(d *topology.NodeDef) topology.Str { return d.Group }).Pos
		c.diags.Warnf(CodeUnknownGroup, pos, hint, "group %q is not defined under topology.groups; node %q inherits nothing from it", n.Group, n.Name)
	}
}

// checkKinds reports settings for kinds that there are not, which no node can use.
func (c *compiler) checkKinds() {
	for _, def := range c.f.Topology.Kinds.Items {
		if _, ok := c.o.Kinds.Lookup(strings.ToLower(def.Name)); ok {
			continue
		}
		hint := "see `c9s kinds` for all kinds; --kinds DIR adds your own"
		if near := strictyaml.Nearest(def.Name, c.o.Kinds.Names()); near != "" {
			hint = "did you mean \"" + near + "\"?"
		}
		c.diags.Warnf(kinds.CodeUnknown, def.Pos, hint, "topology.kinds has settings for %q, which is not a kind", def.Name)
	}
}

func (c *compiler) resolveKind(n *node) {
	written := strings.ToLower(n.res.kind)
	n.WrittenKind = written
	n.Kind = written
	pos := n.res.str(func(d *topology.NodeDef) topology.Str { return d.Kind }).Pos
	if written == "" {
		c.diags.Errorf(CodeNoKind, n.Pos, "add \"kind: linux\", or a kind under defaults", "node %q has no kind", n.Name)
		return
	}
	k, ok := c.o.Kinds.Lookup(written)
	if !ok {
		hint := "see `c9s kinds` for all kinds; --kinds DIR adds your own"
		if near := strictyaml.Nearest(written, c.o.Kinds.Names()); near != "" {
			hint = "did you mean \"" + near + "\"?"
		}
		c.diags.Errorf(kinds.CodeUnknown, pos, hint, "unknown kind %q of node %q", n.res.kind, n.Name)
		return
	}
	n.kind = k
	n.Kind = k.Name
	n.RootNamespace = k.RootNamespace
	if k.Reject(c.diags, pos, n.res.kind, n.Name) {
		return
	}
	n.known = true
}

// compileNode fills in everything of a node but links, stages and allocations.
func (c *compiler) compileNode(n *node) {
	r := &n.res
	str := func(get func(*topology.NodeDef) topology.Str) string { return r.str(get).Value }
	n.Type = strings.TrimSpace(str(func(d *topology.NodeDef) topology.Str { return d.Type }))
	n.Position = str(func(d *topology.NodeDef) topology.Str { return d.Position })
	n.LongName = c.longName(n.Name)
	n.FQDN = n.Name + "." + c.lab.Name + ".io"
	hostname := r.str(func(d *topology.NodeDef) topology.Str { return d.Hostname })
	n.Hostname = n.Name
	if hostname.Value != "" && c.name(hostname.Value, hostname.Pos, "a hostname") {
		n.Hostname = hostname.Value
	}
	if len(n.Hostname) > 64 {
		c.diags.Errorf(CodeOutOfRange, n.Pos, "set a shorter hostname", "the hostname of node %q has %d characters, but Linux allows only 64", n.Name, len(n.Hostname))
	}
	c.compileImage(n)
	n.User = str(func(d *topology.NodeDef) topology.Str { return d.User })
	n.Env = c.compileEnv(n)
	n.Labels = plainMap(r.merged(func(d *topology.NodeDef) topology.Map { return d.Labels }))
	n.Sysctls = plainMap(r.merged(func(d *topology.NodeDef) topology.Map { return d.Sysctls }))
	n.Tmpfs = c.compileTmpfs(n)
	n.Devices = c.compileDevices(r.union(func(d *topology.NodeDef) topology.List { return d.Devices }))
	n.CapAdd = c.compileCapabilities(r.union(func(d *topology.NodeDef) topology.List { return d.CapAdd }))
	n.SecurityOpts = values(r.union(func(d *topology.NodeDef) topology.List { return d.SecurityOpts }))
	n.Privileged = true
	if p := r.boolean(func(d *topology.NodeDef) topology.Bool { return d.Privileged }); p.Set {
		n.Privileged = p.Value
	}
	n.ShmSize = c.size(r.str(func(d *topology.NodeDef) topology.Str { return d.ShmSize }), "shm-size")
	n.Memory = c.size(r.str(func(d *topology.NodeDef) topology.Str { return d.Memory }), "memory")
	n.CPU = c.cpu(n)
	n.CPUSet = str(func(d *topology.NodeDef) topology.Str { return d.CPUSet })
	n.PIDMode = str(func(d *topology.NodeDef) topology.Str { return d.PIDMode })
	n.AutoRemove = r.boolean(func(d *topology.NodeDef) topology.Bool { return d.AutoRemove }).Value
	c.compileRestart(n)
	c.compileMounts(n)
	c.compileConfigFiles(n)
	c.compileSaved(n)
	c.compileMgmtAddresses(n)
	c.compilePorts(n)
	c.compileExec(n)
	c.compileSettings(n)
	c.compileComponents(n)
	n.ConfigVars = r.mergeVars()
	c.compileExtras(n)
	c.compileKeys(n)
}

func values(items []topology.Str) []string {
	var out []string
	for _, s := range items {
		out = append(out, s.Value)
	}
	return out
}

// compileImage resolves image, pull policy, entrypoint and command.
func (c *compiler) compileImage(n *node) {
	r := &n.res
	image := r.str(func(d *topology.NodeDef) topology.Str { return d.Image })
	n.Image = c.imageVariables(n, image)
	if n.Image == "" && n.known && !n.RootNamespace {
		c.missingImage(n)
	}
	policy := r.str(func(d *topology.NodeDef) topology.Str { return d.ImagePullPolicy })
	switch strings.ToLower(strings.TrimSpace(policy.Value)) {
	case "always":
		n.ImagePullPolicy = "Always"
	case "never":
		n.ImagePullPolicy = "Never"
	case "ifnotpresent", "":
		n.ImagePullPolicy = "IfNotPresent"
	default:
		n.ImagePullPolicy = "IfNotPresent"
		c.diags.Warnf(CodeFieldIgnored, policy.Pos, "write Always, Never or IfNotPresent", "unknown image-pull-policy %q; IfNotPresent is used, as in containerlab", policy.Value)
	}
	n.Entrypoint = c.words(r.str(func(d *topology.NodeDef) topology.Str { return d.Entrypoint }), "entrypoint")
	n.Cmd = c.words(r.str(func(d *topology.NodeDef) topology.Str { return d.Cmd }), "cmd")
}

// PlaceholderImage replaces an image under --allow-missing. The name cannot
// be pulled from anywhere (RFC 6761 keeps .invalid free).
const PlaceholderImage = "image.invalid/missing"

// unsetVariable is a reference to an unset variable, which stays in the value.
var unsetVariable = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?`)

// imageVariables reports unset variables in an image: the topology keeps them as they are, and
// no registry has such an image.
func (c *compiler) imageVariables(n *node, image topology.Str) string {
	names := unsetVariable.FindAllStringSubmatch(image.Value, -1)
	if len(names) == 0 {
		return image.Value
	}
	name := names[0][1]
	if c.o.AllowMissing {
		c.diags.Warnf(CodeFilePlaceholder, image.Pos, "set it before you deploy", "the image %q uses the environment variable %s, which is not set; \"missing\" replaces it", image.Value, name)
		return unsetVariable.ReplaceAllString(image.Value, "missing")
	}
	c.diags.Errorf(CodeImageVariable, image.Pos, fmt.Sprintf("set it (%s=...), or give it a default in the topology: ${%s:-...}", name, name),
		"the image %q of node %q uses the environment variable %s, which is not set", image.Value, n.Name, name)
	return image.Value
}

// missingImage reports that a node has no image.
func (c *compiler) missingImage(n *node) {
	if c.o.AllowMissing {
		n.Image = PlaceholderImage
		c.diags.Warnf(CodeFilePlaceholder, n.Pos, "set an image before you deploy", "node %q has no image; %s replaces it", n.Name, PlaceholderImage)
		return
	}
	c.diags.Errorf(CodeNoImage, n.Pos, "add \"image: ...\" to the node, its kind or the defaults", "node %q has no image", n.Name)
}

// words splits a command as a shell would, without running one.
func (c *compiler) words(s topology.Str, what string) []string {
	if s.Value == "" {
		return nil
	}
	argv, err := shlex.Split(s.Value)
	if err != nil {
		c.diags.Errorf(CodeBadCommand, s.Pos, "close every quote", "%s %q cannot be split into words: %v", what, s.Value, err)
		return nil
	}
	if len(argv) == 0 {
		return nil
	}
	return argv
}

// size reads a human size in bytes: "512MiB", "2Gb" (powers of ten without i).
func (c *compiler) size(s topology.Str, what string) int64 {
	if s.Value == "" {
		return 0
	}
	v, err := units.FromHumanSize(s.Value)
	if strings.Contains(strings.ToLower(s.Value), "i") {
		v, err = units.RAMInBytes(s.Value)
	}
	if err != nil || v <= 0 {
		c.diags.Errorf(CodeBadSize, s.Pos, "write a number and a unit: 512MiB, 2Gb", "%s %q is not a size", what, s.Value)
		return 0
	}
	return v
}

func (c *compiler) cpu(n *node) float64 {
	for _, d := range n.res.levels {
		if d.CPU.Value != 0 {
			if d.CPU.Value < 0.001 || d.CPU.Value > 1024 {
				c.diags.Errorf(CodeOutOfRange, d.CPU.Pos, "write cores, such as 0.5 or 2", "cpu %v is not between 0.001 and 1024 cores", d.CPU.Value)
				return 0
			}
			return d.CPU.Value
		}
	}
	return 0
}

func (c *compiler) compileTmpfs(n *node) map[string]string {
	merged := n.res.merged(func(d *topology.NodeDef) topology.Map { return d.Tmpfs })
	for _, kv := range sortedEntries(merged) {
		if !filepath.IsAbs(kv.Key) {
			c.diags.Errorf(CodeBadBind, kv.Pos, "write an absolute path", "tmpfs target %q is not an absolute path", kv.Key)
		}
	}
	return plainMap(merged)
}

// compileRestart reads the restart policy. Kubernetes always restarts.
func (c *compiler) compileRestart(n *node) {
	s := n.res.str(func(d *topology.NodeDef) topology.Str { return d.RestartPolicy })
	n.RestartPolicy = s.Value
	switch s.Value {
	case "", "always", "unless-stopped":
	case "no", "on-failure":
		c.diags.Warnf(CodeFieldIgnored, s.Pos, "none needed: containerlab still uses it", "restart-policy %q of node %q: Kubernetes always restarts the container of a Deployment", s.Value, n.Name)
	default:
		c.diags.Warnf(CodeFieldIgnored, s.Pos, "use no, always, on-failure or unless-stopped", "unknown restart-policy %q has no effect, as in containerlab", s.Value)
		n.RestartPolicy = ""
	}
}

// compileExec splits the node's exec commands, with magic variables replaced.
func (c *compiler) compileExec(n *node) {
	items := n.res.union(func(d *topology.NodeDef) topology.List { return d.Exec })
	if len(items) == 0 {
		return
	}
	magic := c.magic(n)
	for _, s := range items {
		s.Value = magic.Replace(s.Value)
		if argv := c.words(s, "exec"); argv != nil {
			n.Exec = append(n.Exec, lab.Exec{Argv: argv, Raw: s.Value})
		}
	}
}

// compilePorts reads the ports of the first level that has any.
func (c *compiler) compilePorts(n *node) {
	for _, s := range n.res.firstList(func(d *topology.NodeDef) topology.List { return d.Ports }) {
		if c.tailscalePort(s) {
			continue
		}
		ports, err := lab.ParsePort(s.Value)
		if err != nil {
			c.diags.Errorf(CodeBadPort, s.Pos, "use Docker's syntax: 80, 8080:80, 127.0.0.1:8080:80/tcp, 5000-5010:5000-5010", "port %q: %v", s.Value, err)
			continue
		}
		for _, p := range ports {
			if p.Host != 0 {
				c.hostPorts = append(c.hostPorts, s.Pos)
			}
			p.Host = 0
			if !slices.Contains(n.Ports, p) {
				n.Ports = append(n.Ports, p)
			}
		}
	}
	c.labelPorts(n)
}

// Labels with which topologies ask containerlab's own runtime for Kubernetes for more of
// a node's Service. In Docker they are labels like any other.
const (
	labelExposePorts  = "c9s.run/exposePorts"  // 9273/tcp,8125/udp
	labelAppProtocols = "c9s.run/appProtocols" // 57400/tcp=kubernetes.io/h2c
)

// labelPorts reads the ports that labels expose and their application protocols.
func (c *compiler) labelPorts(n *node) {
	labels := n.res.merged(func(d *topology.NodeDef) topology.Map { return d.Labels })
	one := func(kv topology.KeyValue, text string) (lab.Port, bool) {
		ports, err := lab.ParsePort(text)
		if err != nil || len(ports) != 1 || ports[0].Host != 0 || strings.Contains(text, ":") {
			c.diags.Errorf(CodeBadPort, kv.Pos, "write ports like 9273/tcp", "port %q of the label %s is not a number and a protocol", text, kv.Key)
			return lab.Port{}, false
		}
		return ports[0], true
	}
	kv := labels[labelExposePorts]
	for text := range strings.SplitSeq(kv.Value, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if p, ok := one(kv, text); ok && !slices.Contains(n.Ports, p) {
			n.Ports = append(n.Ports, p)
		}
	}
	kv = labels[labelAppProtocols]
	for text := range strings.SplitSeq(kv.Value, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		port, protocol, _ := strings.Cut(text, "=")
		if protocol == "" {
			c.diags.Errorf(CodeBadPort, kv.Pos, "write 57400/tcp=kubernetes.io/h2c", "%q of the label %s has no application protocol", text, kv.Key)
			continue
		}
		if p, ok := one(kv, port); ok {
			if n.AppProtocols == nil {
				n.AppProtocols = map[string]string{}
			}
			n.AppProtocols[lab.PortName(p)] = protocol
		}
	}
}

// tailscalePorts are what a port of the Tailscale proxy may look like.
var tailscalePorts = regexp.MustCompile(`(?i)^([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?:([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?/ts$`)

// tailscalePort reports whether a port is for the Tailscale proxy. c9s has no such
// proxy and does not publish the port.
func (c *compiler) tailscalePort(s topology.Str) bool {
	if !strings.HasSuffix(strings.ToLower(s.Value), "/ts") {
		return false
	}
	if !tailscalePorts.MatchString(s.Value) {
		c.diags.Errorf(CodeBadPort, s.Pos, "write 8022:22/ts", "port %q of the Tailscale proxy is not LISTEN:PORT/ts", s.Value)
		return true
	}
	if c.before("0.80") {
		c.lacks(s.Pos, "publish the port without /ts", "has no ports of a Tailscale proxy (since 0.80)")
		return true
	}
	c.diags.Warnf(CodeFieldIgnored, s.Pos, "use `c9s exec`, or publish the port without /ts", "port %s is ignored: c9s starts no Tailscale proxy", s.Value)
	return true
}
