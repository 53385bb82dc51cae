package hooks

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/planner/internal/recorder"
	"github.com/docker/go-units"
	"github.com/google/shlex"
	clabnodes "github.com/srl-labs/containerlab/nodes"
	clabtypes "github.com/srl-labs/containerlab/types"
)

// convert makes the plan of the record.
func (r *run) convert() error {
	p := r.plan
	mounts, files := plan.UserMounts(r.node)
	p.Files = files
	if err := r.nodeFiles(); err != nil {
		return err
	}
	for i := range r.runtime.Created {
		c, err := r.container(&r.runtime.Created[i], mounts)
		if err != nil {
			return err
		}
		p.Containers = append(p.Containers, c)
	}
	slices.SortFunc(p.Containers, func(a, b plan.Container) int { return strings.Compare(a.Name, b.Name) })
	r.missingFolders()
	for _, e := range r.node.Endpoints {
		p.Interfaces = append(p.Interfaces, plan.Interface{Name: e.Interface, Alias: e.Alias, MAC: e.MAC})
	}
	r.needs()
	r.readiness()
	p.LinkApplyMode = string(clabnodes.LinkApplyModeForNode(nil, r.hooks)) //nolint:staticcheck // no kind looks at the context
	if err := r.steps(); err != nil {
		return err
	}
	p.Files = plan.SortFiles(p.Files)
	return r.lost()
}

// nodeFiles takes up what the hooks wrote into the node's folder.
func (r *run) nodeFiles() error {
	dir := r.clab.TopoPaths.NodeDir(r.node.Name)
	refs := map[string]lab.FileRef{}
	for staged, ref := range r.staged {
		if data, err := os.ReadFile(staged); err == nil {
			refs[string(data)] = ref
		}
	}
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			if name == dir {
				return fs.SkipAll
			}
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f := plan.File{Path: filepath.ToSlash(rel), Mode: uint32(info.Mode().Perm())}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			f.UID, f.GID = int(st.Uid), int(st.Gid)
		}
		switch {
		case e.IsDir():
			f.Dir = true
		case e.Type()&fs.ModeSymlink != 0:
			if f.Link, err = os.Readlink(name); err != nil {
				return err
			}
			if filepath.IsAbs(f.Link) || strings.HasPrefix(path.Join(path.Dir(f.Path), filepath.ToSlash(f.Link)), "..") {
				return fmt.Errorf("the hook made a link out of the node's folder: %s", f.Path)
			}
		case !info.Mode().IsRegular():
			return fmt.Errorf("the hook made something that is no file: %s", f.Path)
		default:
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if f.Mode == 0o666 { // a hook that says nothing of the mode
				f.Mode = 0o644
			}
			r.content(&f, content, refs)
		}
		r.plan.Files = append(r.plan.Files, f)
		return nil
	})
}

// content settles where a file's bytes come from: a certificate that is issued
// later, a file of the user, or the hook.
func (r *run) content(f *plan.File, content []byte, refs map[string]lab.FileRef) {
	if what := r.certs.is(content); what != "" {
		f.Certificate, f.Secret = what, what == nodeKey
		return
	}
	if ref, ok := refs[string(content)]; ok && len(content) > 0 {
		f.Ref, f.Secret = &ref, ref.Secret
		return
	}
	if r.certs.within(content) && (r.node.StartupConfig != nil || !r.decided(kinds.DecidesStartup)) {
		r.refuse(plan.CodeCertificateStandIn, "leave .TLSCert, .TLSKey and .TLSAnchor out of the startup-config: the certificate is issued when the lab is deployed",
			"node %q: %s of kind %s would hold a stand-in for the node's certificate", r.node.Name, f.Path, r.node.Kind)
	}
	f.Content = content
}

// container makes a plan's container of a recorded one.
func (r *run) container(c *recorder.Container, user []plan.Mount) (plan.Container, error) {
	cfg := &c.Config
	out := plan.Container{
		Name:  strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(c.Name, r.node.LongName), "-")),
		Image: cfg.Image, User: cfg.User, Env: r.environment(cfg.Env), Sysctls: cfg.Sysctls, Tmpfs: cfg.Tmpfs,
		CapAdd: distinct(cfg.CapAdd), Devices: cfg.Devices, Privileged: cfg.Privileged, CPU: cfg.CPU,
		TTY: true, Stdin: true, RestartPolicy: cfg.RestartPolicy, MgmtMAC: cfg.MacAddress,
	}
	var err error
	if out.Entrypoint, err = words(cfg.Entrypoint); err != nil {
		return out, err
	}
	if out.Cmd, err = words(r.sortedSetenv(cfg.Cmd, out.Env)); err != nil {
		return out, err
	}
	if out.ShmSize, err = size(cfg.ShmSize); err != nil {
		return out, err
	}
	if out.Memory, err = size(cfg.Memory); err != nil {
		return out, err
	}
	out.Mounts = append(out.Mounts, user...)
	for _, bind := range cfg.Binds {
		m, err := r.mount(bind)
		if err != nil {
			return out, err
		}
		taken := slices.ContainsFunc(out.Mounts, func(have plan.Mount) bool { return path.Clean(have.Target) == path.Clean(m.Target) })
		if !taken {
			out.Mounts = append(out.Mounts, m)
		}
	}
	slices.SortFunc(out.Mounts, func(a, b plan.Mount) int { return strings.Compare(a.Target, b.Target) })
	return out, nil
}

// mount reads one bind of a hook: a path of the node's folder, or of the worker.
func (r *run) mount(bind string) (plan.Mount, error) {
	parts := strings.Split(bind, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return plan.Mount{}, fmt.Errorf("the hook's bind %q is malformed", bind)
	}
	m := plan.Mount{Target: parts[1]}
	if len(parts) == 3 {
		m.ReadOnly = slices.Contains(strings.Split(parts[2], ","), "ro")
	}
	dir := r.clab.TopoPaths.NodeDir(r.node.Name)
	if rel, err := filepath.Rel(dir, parts[0]); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		m.Path = filepath.ToSlash(rel)
		return m, nil
	}
	if strings.HasPrefix(parts[0], r.root) {
		return m, fmt.Errorf("the hook's bind %q is outside the node's folder", bind)
	}
	m.HostPath = parts[0]
	return m, nil
}

// missingFolders adds the folders that a container engine would make for a bind
// whose source is not there.
func (r *run) missingFolders() {
	for _, c := range r.plan.Containers {
		for _, m := range c.Mounts {
			there := m.Path == "" || slices.ContainsFunc(r.plan.Files, func(f plan.File) bool { return f.Path == path.Clean(m.Path) })
			if !there {
				r.plan.Files = append(r.plan.Files, plan.File{Path: path.Clean(m.Path), Dir: true, Mode: 0o777})
			}
		}
	}
}

// distinct drops what a hook adds to the user's that is there already.
func distinct(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func words(command string) ([]string, error) {
	if command == "" {
		return nil, nil
	}
	return shlex.Split(command)
}

func size(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if strings.Contains(strings.ToLower(text), "i") {
		return units.RAMInBytes(text)
	}
	return units.FromHumanSize(text)
}

// defaultNode is the part that all node kinds have in common.
func (r *run) defaultNode() *clabnodes.DefaultNode {
	v := reflect.Indirect(reflect.ValueOf(r.hooks)).FieldByName("DefaultNode")
	if v.IsValid() && v.CanAddr() {
		if d, ok := v.Addr().Interface().(*clabnodes.DefaultNode); ok {
			return d
		}
	}
	return nil
}

// needs are what the hooks say of the host and of the login. c9s takes them from its
// catalogue, with which conform compares these.
func (r *run) needs() {
	d := r.defaultNode()
	if d == nil {
		return
	}
	r.plan.Credentials = lab.Credentials{Username: d.Cfg.Credentials.Username, Password: d.Cfg.Credentials.Password}
	if h := d.HostRequirements; h != nil {
		r.plan.Needs = plan.Needs{KVM: h.VirtRequired, SSSE3: h.SSSE3, MinCPU: h.MinVCPU, MinMemory: int64(h.MinAvailMemoryGb) << 30}
	}
	if d.LicensePolicy == clabtypes.LicensePolicyRequired || d.LicensePolicy == clabtypes.LicensePolicyWarn {
		r.plan.Needs.License = string(d.LicensePolicy)
	}
	if cert := d.Cfg.Certificate; cert != nil && cert.Issue != nil {
		r.plan.Needs.Certificate = *cert.Issue && r.certs.node != nil
	}
	r.plan.StopSignal = string(d.StopSignal)
}

// readiness is the healthcheck that a hook sets by itself.
func (r *run) readiness() {
	if len(r.runtime.Created) == 0 {
		return
	}
	if h := r.runtime.Created[0].Config.Healthcheck; h != nil && len(h.Test) > 0 {
		r.plan.Readiness = &plan.Readiness{Reason: "kind", Healthcheck: lab.Healthcheck{
			Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, Retries: h.Retries, StartPeriod: h.StartPeriod,
		}}
	}
}

// steps are what PostDeploy did, in its order, then the user's exec.
func (r *run) steps() error {
	for _, op := range r.runtime.Ops {
		if op.Phase != "post-deploy" {
			continue
		}
		step := plan.Step{Container: r.slotOf(op.Container)}
		switch c := find(r.node, op.Exec); {
		case op.Copy != nil:
			step.Name = "write " + op.Copy.Path
			step.Write = &plan.WriteStep{Path: op.Copy.Path, Mode: 0o644, Content: op.Copy.Content}
		case op.Stdin != nil:
			step.CLI = &plan.CLIStep{Lines: strings.Split(strings.TrimRight(string(op.Stdin), "\n"), "\n")}
		case c != nil && c.question:
			continue
		case c != nil:
			step.Wait = &plan.WaitStep{Argv: op.Exec, Contains: c.gate, EmptyStderr: c.gate != "", IntervalSeconds: 1, TimeoutSeconds: 300}
		default:
			step.Run = &plan.RunStep{Argv: op.Exec, Detach: op.Detach}
		}
		r.plan.Steps = append(r.plan.Steps, step)
	}
	cli, err := cliSteps(filepath.Join(r.root, "cli.log"))
	if err != nil {
		return err
	}
	r.plan.Steps = append(r.plan.Steps, cli...)
	r.plan.Steps = append(r.plan.Steps, plan.UserSteps(r.node, r.plan.Containers)...)
	return nil
}

// slotOf is the plan's name of a recorded container.
func (r *run) slotOf(container string) string {
	if len(r.plan.Containers) < 2 {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(container, r.node.LongName), "-"))
}

func (r *run) refuse(code diag.Code, hint, format string, args ...any) {
	var l diag.List
	l.Errorf(code, r.node.Pos, hint, format, args...)
	r.plan.Diagnostics = append(r.plan.Diagnostics, l.All()...)
}

func (r *run) warn(code diag.Code, hint, format string, args ...any) {
	var l diag.List
	l.Warnf(code, r.node.Pos, hint, format, args...)
	if !slices.Contains(r.plan.Diagnostics, l.All()[0]) {
		r.plan.Diagnostics = append(r.plan.Diagnostics, l.All()...)
	}
}
