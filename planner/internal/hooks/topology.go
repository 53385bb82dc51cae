package hooks

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"go.yaml.in/yaml/v3"
)

// workspace is the folder in which the hooks run.
type workspace struct {
	root string
	req  *plan.Request
	// staged maps a path that a hook reads to the file of the user behind it.
	staged map[string]lab.FileRef
}

func newWorkspace(req *plan.Request) (*workspace, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	w := &workspace{root: filepath.Join(dir, "lab"), req: req, staged: map[string]lab.FileRef{}}
	w.remove() // what an earlier node left
	return w, os.Mkdir(w.root, 0o755)
}

func (w *workspace) remove() { _ = os.RemoveAll(w.root) }

// topology writes the node and the ends of its links as a topology file, as explicit
// as it can be, and returns the file's path. Binds, volumes, exec, stages and ports
// stay out: c9s does them itself. Of the other nodes only that is in it whose
// namespace the node shares.
func (w *workspace) topology(n *lab.Node) (string, error) {
	if err := os.MkdirAll(filepath.Join(w.root, "in"), 0o755); err != nil {
		return "", err
	}
	l := w.req.Lab
	own, err := w.node(n)
	if err != nil {
		return "", err
	}
	nodes := map[string]any{n.Name: own}
	if n.NetworkMode == lab.NetworkContainer {
		nodes[n.NetworkNode] = map[string]any{"kind": "linux", "image": "peer"}
	}
	doc := map[string]any{
		"name": l.Name, "prefix": l.Prefix,
		"mgmt":     mgmt(l.Mgmt),
		"topology": map[string]any{"nodes": nodes, "links": links(l, n)},
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return "", err
	}
	file := filepath.Join(w.root, "topo.clab.yml")
	return file, os.WriteFile(file, []byte(escape(string(text))), 0o644)
}

// escape keeps containerlab from executing the text as a template and from
// expanding variables in it: both were done when the lab was compiled.
func escape(text string) string {
	return strings.NewReplacer("{{", `{{"{{"}}`, "$", "$$").Replace(text)
}

func mgmt(m lab.Mgmt) map[string]any {
	out := map[string]any{"network": m.Network}
	if m.IPv4.Subnet.IsValid() {
		out["ipv4-subnet"] = m.IPv4.Subnet.String()
	}
	if m.IPv6.Subnet.IsValid() {
		out["ipv6-subnet"] = m.IPv6.Subnet.String()
	}
	return out
}

// links are the node's own ends. What is at the far ends is no concern of the hooks, so
// that a link leads to a dummy unless both its ends are the node's.
func links(l *lab.Lab, n *lab.Node) []any {
	out := []any{}
	for _, link := range l.Links {
		ends := []any{}
		for _, e := range link.Endpoints {
			if e.Node != n.Name {
				continue
			}
			name := cmp.Or(e.Alias, e.Interface)
			end := map[string]any{"node": e.Node, "interface": name}
			if e.MAC != "" {
				end["mac"] = e.MAC
			}
			if e.IPv4.IsValid() {
				end["ipv4"] = e.IPv4.String()
			}
			if e.IPv6.IsValid() {
				end["ipv6"] = e.IPv6.String()
			}
			ends = append(ends, end)
		}
		entry := map[string]any{"type": "veth", "endpoints": ends}
		if len(ends) == 1 {
			entry = map[string]any{"type": "dummy", "endpoint": ends[0]}
		}
		if link.MTU > 0 {
			entry["mtu"] = link.MTU
		}
		out = append(out, entry)
	}
	return out
}

// node is the definition of the node that is planned.
func (w *workspace) node(n *lab.Node) (map[string]any, error) {
	out := map[string]any{
		"kind": n.WrittenKind, "image": n.Image, "privileged": n.Privileged,
		"enforce-startup-config": n.EnforceStartupConfig, "suppress-startup-config": n.SuppressStartupConfig,
	}
	set := func(key string, value any, there bool) {
		if there {
			out[key] = value
		}
	}
	set("type", n.Type, n.Type != "")
	set("group", n.Group, n.Group != "")
	set("position", n.Position, n.Position != "")
	set("hostname", n.Hostname, n.Hostname != n.Name)
	set("entrypoint", quote(n.Entrypoint), len(n.Entrypoint) > 0)
	set("cmd", quote(n.Cmd), len(n.Cmd) > 0)
	set("user", n.User, n.User != "")
	set("env", n.Env, len(n.Env) > 0)
	set("labels", n.Labels, len(n.Labels) > 0)
	set("sysctls", n.Sysctls, len(n.Sysctls) > 0)
	set("tmpfs", n.Tmpfs, len(n.Tmpfs) > 0)
	set("devices", n.Devices, len(n.Devices) > 0)
	set("cap-add", n.CapAdd, len(n.CapAdd) > 0)
	set("shm-size", strconv.FormatInt(n.ShmSize, 10), n.ShmSize > 0)
	set("memory", strconv.FormatInt(n.Memory, 10), n.Memory > 0)
	set("cpu", n.CPU, n.CPU > 0)
	set("restart-policy", n.RestartPolicy, n.RestartPolicy != "")
	set("link-apply-mode", n.LinkApplyMode, n.LinkApplyMode != "")
	set("config", map[string]any{"vars": n.ConfigVars}, len(n.ConfigVars) > 0)
	// What the hooks say by themselves is to be compared with the catalogue's login.
	kind, _ := kinds.Builtin().Lookup(n.Kind)
	hooksOwn := w.req.Full && kind != nil && n.Credentials == kind.Credentials
	set("credentials", map[string]any{"username": n.Credentials.Username, "password": n.Credentials.Password}, n.Credentials != lab.Credentials{} && !hooksOwn)
	set("components", components(n.Components), len(n.Components) > 0)
	set("network-mode", "none", n.NetworkMode == lab.NetworkNone)
	set("network-mode", "host", n.NetworkMode == lab.NetworkHost)
	set("network-mode", "container:"+n.NetworkNode, n.NetworkMode == lab.NetworkContainer)
	if n.Certificate.Issue {
		out["certificate"] = map[string]any{"issue": true}
	}
	return out, w.files(n, out)
}

// files stages what the node's configuration refers to.
func (w *workspace) files(n *lab.Node, out map[string]any) error {
	if n.StartupConfig != nil {
		p, err := w.stage("startup", n.StartupConfig.Name, n.StartupConfig.File)
		if err != nil {
			return err
		}
		out["startup-config"] = p
	}
	if n.License != nil {
		p, err := w.stage("license", "license.key", *n.License)
		if err != nil {
			return err
		}
		out["license"] = p
	}
	extras := map[string]any{}
	for key, files := range map[string][]lab.NamedFile{"srl-agents": n.Extras.SRLAgents, "ceos-copy-to-flash": n.Extras.CEOSCopyToFlash} {
		var paths []string
		for _, f := range files {
			p, err := w.stage(key, f.Name, f.File)
			if err != nil {
				return err
			}
			paths = append(paths, p)
		}
		if len(paths) > 0 {
			extras[key] = paths
		}
	}
	if len(extras) > 0 {
		out["extras"] = extras
	}
	return nil
}

// stage puts a file of the user at a path of its own name. The name is the base
// name of what the user wrote, and cannot leave the folder.
func (w *workspace) stage(kind, name string, ref lab.FileRef) (string, error) {
	name = filepath.Base(filepath.Clean("/" + name))
	if name == "/" || name == "." {
		name = kind
	}
	target := filepath.Join(w.root, "in", kind, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	data, err := w.read(ref)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(target, data, 0o644); err != nil {
		return "", err
	}
	w.staged[target] = ref
	return target, nil
}

// read is what a reference stands for; a placeholder stands for nothing.
func (w *workspace) read(ref lab.FileRef) ([]byte, error) {
	if ref.Placeholder {
		return nil, nil
	}
	data, ok := w.req.Files[ref.Digest]
	if !ok && ref.Size > 0 {
		return nil, fmt.Errorf("the request does not have the bytes %s", ref.Digest)
	}
	return data, nil
}

func components(list []lab.Component) []any {
	out := make([]any, 0, len(list))
	for _, c := range list {
		entry := map[string]any{"slot": c.Slot}
		if c.Type != "" {
			entry["type"] = c.Type
		}
		if c.SFM != "" {
			entry["sfm"] = c.SFM
		}
		if len(c.Env) > 0 {
			entry["env"] = c.Env
		}
		if len(c.MDA) > 0 {
			entry["mda"] = mdas(c.MDA)
		}
		var xioms []any
		for _, x := range c.XIOM {
			xioms = append(xioms, map[string]any{"slot": x.Slot, "type": x.Type, "mda": mdas(x.MDA)})
		}
		if len(xioms) > 0 {
			entry["xiom"] = xioms
		}
		out = append(out, entry)
	}
	return out
}

func mdas(list []lab.MDA) []any {
	out := make([]any, 0, len(list))
	for _, m := range list {
		out = append(out, map[string]any{"slot": m.Slot, "type": m.Type})
	}
	return out
}

// quote writes an argument list so that splitting it as a shell does gives it
// again.
func quote(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'"'"'`) + "'"
	}
	return strings.Join(words, " ")
}
