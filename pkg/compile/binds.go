package compile

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/reach"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Bind is one entry of binds, split.
type Bind struct {
	Source, Target, Mode string
}

// ParseBind splits source:target[:mode] as containerlab does: at every colon.
func ParseBind(text string) (Bind, error) {
	parts := strings.Split(text, ":")
	switch {
	case len(parts) == 1 && text != "":
		return Bind{}, errors.New("it has only a target; anonymous volumes belong under volumes")
	case len(parts) < 2 || len(parts) > 3:
		return Bind{}, fmt.Errorf("it has %d parts", len(parts))
	case parts[0] == "":
		return Bind{}, errors.New("the source before the first colon is missing")
	case !path.IsAbs(parts[1]):
		return Bind{}, fmt.Errorf("the target %q is not an absolute path", parts[1])
	}
	b := Bind{Source: parts[0], Target: path.Clean(parts[1])}
	if len(parts) == 3 {
		b.Mode = parts[2]
	}
	return b, nil
}

// ReadOnly reports whether the mode has "ro".
func (b Bind) ReadOnly() bool { return slices.Contains(strings.Split(b.Mode, ","), "ro") }

// bindModes are the words that a bind's mode may have.
var bindModes = []string{"", "ro", "rw", "z", "Z", "shared", "rshared", "slave", "rslave", "private", "rprivate", "delegated", "cached", "consistent", "copy", "nocopy"}

// workerPaths are folders that belong to the worker, not to the user's disk.
var workerPaths = []string{"/dev", "/sys", "/proc", "/lib/modules", "/usr/lib/modules", "/etc/localtime", "/etc/timezone", "/usr/src", "/boot"}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// compileMounts resolves binds and volumes; the most specific bind of a target
// wins, and the result is sorted by target.
func (c *compiler) compileMounts(n *node) {
	byTarget := map[string]lab.Mount{}
	for _, s := range n.res.union(func(d *topology.NodeDef) topology.List { return d.Binds }) {
		b, err := ParseBind(s.Value)
		if err != nil {
			c.diags.Errorf(CodeBadBind, s.Pos, "write source:target or source:target:ro", "bind %q: %v", s.Value, err)
			continue
		}
		for _, word := range strings.Split(b.Mode, ",") {
			if !slices.Contains(bindModes, word) {
				c.diags.Errorf(CodeBadBind, s.Pos, "use ro or rw", "bind %q: unknown mode %q", s.Value, word)
			}
		}
		if m, ok := c.compileBind(n, b, s.Pos); ok {
			byTarget[m.Target] = m
		} else {
			delete(byTarget, b.Target)
		}
	}
	for _, s := range n.res.union(func(d *topology.NodeDef) topology.List { return d.Volumes }) {
		if m, ok := c.compileVolume(n, s); ok {
			byTarget[m.Target] = m
		}
	}
	for _, m := range byTarget {
		n.Mounts = append(n.Mounts, m)
	}
	slices.SortFunc(n.Mounts, func(a, b lab.Mount) int { return strings.Compare(a.Target, b.Target) })
}

// compileBind finds what a bind's source is: a file or folder of the user, or a
// path of the worker.
func (c *compiler) compileBind(n *node, b Bind, pos diag.Pos) (lab.Mount, bool) {
	m := lab.Mount{Target: b.Target, ReadOnly: b.ReadOnly(), Pos: pos}
	written := c.magic(n).Replace(b.Source)
	if ref, ok := c.files.supplied(written); ok {
		m.File = &ref
		return m, true
	}
	if m.Dir = c.files.suppliedDir(written, pos, "bind source"); m.Dir != nil {
		return m, true
	}
	p := c.files.resolve(written)
	if filepath.ToSlash(p) == "/" {
		c.diags.Errorf(CodeWholeDisk, pos, "name the folder that the node needs; to monitor the worker, bind /proc and /sys, which it gets read-only", "bind %q gives the node a whole file system", b.Source)
		return m, false
	}
	if process.MatchString(filepath.ToSlash(p)) {
		c.diags.Errorf(CodeWholeDisk, pos, "name the folder that the node needs", "bind %q gives the node the file system that a process of the worker sees", b.Source)
		return m, false
	}
	if givesEngineSocket(filepath.ToSlash(p)) {
		c.diags.Errorf(CodeSocket, pos, "remove the bind; a Pod has no container engine", "bind %q gives the container engine's socket to the node", b.Source)
		return m, false
	}
	if isEngineData(filepath.ToSlash(p)) {
		c.diags.Errorf(CodeSocket, pos, "remove the bind; the kubelet reports on containers and images (metrics at the worker's port 10250)", "bind %q is where a container engine keeps its containers, and a Pod's node has none", b.Source)
		return m, false
	}
	if namespaces.MatchString(filepath.ToSlash(p)) {
		c.diags.Errorf(CodeSocket, pos, "remove the bind; c9s exec runs commands in the network of a node", "bind %q has the network namespaces of the container engine, and a Pod's node has none", b.Source)
		return m, false
	}
	if filepath.ToSlash(p) == "/dev/shm" {
		c.diags.Warnf(CodeFieldIgnored, pos, "set shm-size for a larger one", "the bind of /dev/shm is ignored: each node has its own shared memory")
		return m, false
	}
	if c.generated(n, written, p, &m) {
		return m, true
	}
	_, mapped := c.o.MapFiles[written]
	if !mapped {
		for _, dir := range workerPaths {
			if under(filepath.ToSlash(p), dir) {
				c.workerPath(&m, filepath.ToSlash(p), pos)
				return m, true
			}
		}
	}
	info, err := c.o.Reach.Stat(p)
	if errors.Is(err, reach.ErrOutside) {
		c.files.outside(b.Source, p, pos, "bind source")
		return m, false
	}
	if err != nil && under(p, filepath.Join(c.labDir(), ".tls")) && !c.o.AllowMissing {
		c.diags.Errorf(CodeFileMissing, pos, "a node can bind .tls/ca/ca.pem and its own certificate; or add certificate: {issue: true}",
			"bind source %q does not exist: no node gets the key of the lab's CA or the certificate of another node", written)
		return m, false
	}
	if err != nil {
		ref, ok := c.files.missing(written, p, pos, "bind source", err)
		m.File = &ref
		return m, ok
	}
	if info.IsDir() {
		dir, ok := c.files.dir(p, written, pos, "bind source")
		m.Dir = dir
		n.folders = append(n.folders, folderUse{path: b.Source, full: p, readOnly: m.ReadOnly, pos: pos})
		return m, ok
	}
	ref, ok := c.files.file(written, pos, "bind source")
	m.File = &ref
	return m, ok
}

// workerPath mounts the worker's own path, read-only.
func (c *compiler) workerPath(m *lab.Mount, p string, pos diag.Pos) {
	m.HostPath = path.Clean(p)
	m.ReadOnly = true
	c.diags.Warnf(CodeWorkerPath, pos, "make sure that the workers have it, or add it to the image", "%s is mounted from the Pod's worker", m.HostPath)
}

// generated recognises files that containerlab itself creates in the lab folder. Nothing
// creates them in a cluster, so an empty file is staged.
func (c *compiler) generated(n *node, written, p string, m *lab.Mount) bool {
	dir := c.labDir()
	for _, name := range []string{"ansible-inventory.yml", "nornir-simple-inventory.yml", "topology-data.json"} {
		if p == filepath.Join(dir, name) {
			if _, err := c.o.Reach.Stat(p); err == nil {
				return false
			}
			ref := c.files.bytes(nil, 0o644, written)
			m.File = &ref
			c.diags.Warnf(CodeFileGenerated, m.Pos, "mount an inventory of your own", "containerlab generates %s when it deploys; the node gets an empty one", name)
			return true
		}
	}
	return c.issued(n, p, m)
}

// issued recognises the files of the lab's CA, which containerlab writes to the lab's
// folder. A node gets the CA's certificate, and its own with the key.
func (c *compiler) issued(n *node, p string, m *lab.Mount) bool {
	rel, err := filepath.Rel(filepath.Join(c.labDir(), ".tls"), p)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	if _, err := c.o.Reach.Stat(p); err == nil {
		return false
	}
	parts := map[string]string{}
	for name, part := range map[string]string{
		"ca/ca.pem": "ca.crt", path.Join(n.Name, n.Name+".pem"): "tls.crt", path.Join(n.Name, n.Name+".key"): "tls.key",
	} {
		if inside, err := filepath.Rel(rel, name); err == nil && inside == "." {
			parts[""] = part
		} else if err == nil && !strings.HasPrefix(inside, "..") {
			parts[inside] = part
			m.Dir = &lab.Dir{Mode: 0o755}
		}
	}
	if len(parts) == 0 {
		return false
	}
	m.Certificates = parts
	c.diags.Warnf(CodeFileGenerated, m.Pos, "to issue a certificate for a node anyway, add certificate: {issue: true}",
		"the lab's CA issues %s when the lab is deployed, and not containerlab", path.Join(".tls", rel))
	return true
}

// compileVolume reads one entry of volumes.
func (c *compiler) compileVolume(n *node, s topology.Str) (lab.Mount, bool) {
	v, err := ParseVolume(s.Value)
	if err != nil {
		c.diags.Errorf(CodeBadVolume, s.Pos, "write name:/target or /target", "volume %q: %v", s.Value, err)
		return lab.Mount{}, false
	}
	return lab.Mount{
		Target: v.Target, ReadOnly: v.ReadOnly, Pos: s.Pos,
		Volume: c.magic(n).Replace(v.Name), Anonymous: v.Name == "",
	}, true
}

// Volume is one entry of volumes, split. Name is "" for an anonymous one.
type Volume struct {
	Name, Target string
	ReadOnly     bool
}

// ParseVolume splits [name:]target[:options].
func ParseVolume(text string) (Volume, error) {
	parts := strings.Split(text, ":")
	v := Volume{}
	switch {
	case text == "":
		return v, errors.New("it is empty")
	case len(parts) == 1:
		v.Target = parts[0]
	case strings.HasPrefix(parts[0], "/"):
		return v, errors.New("it names a path of the host; that belongs under binds")
	case len(parts) > 3 || parts[0] == "":
		return v, fmt.Errorf("it has %d parts", len(parts))
	default:
		v.Name, v.Target = parts[0], parts[1]
	}
	if !path.IsAbs(v.Target) {
		return v, fmt.Errorf("the target %q is not an absolute path", v.Target)
	}
	v.Target = path.Clean(v.Target)
	if len(parts) == 3 {
		for _, option := range strings.Split(parts[2], ",") {
			switch option {
			case "ro":
				v.ReadOnly = true
			case "", "rw", "nocopy", "volume-nocopy":
			default:
				return v, fmt.Errorf("unknown option %q", option)
			}
		}
	}
	return v, nil
}

// labDir is the folder that containerlab would make next to the topology.
func (c *compiler) labDir() string { return filepath.Join(c.f.Dir, "clab-"+c.lab.Name) }

// magic replaces containerlab's magic variables for one node.
func (c *compiler) magic(n *node) *strings.Replacer {
	dir := c.labDir()
	return strings.NewReplacer(
		"__clabDir__", dir, "__clabLabName__", "clab-"+c.lab.Name,
		"__clabNodeDir__", filepath.Join(dir, n.Name), "__clabNodeName__", n.Name,
	)
}
