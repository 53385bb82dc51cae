package plan

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// container creates the node's container from the node and its kind.
func (d *draft) container() {
	n, c, x := d.node, &d.kind.Container, d.data
	out := Container{
		Image:         x.Image,
		Entrypoint:    n.Entrypoint,
		Cmd:           n.Cmd,
		User:          cmp.Or(n.User, d.expand(c.User)),
		Sysctls:       overlay(n.Sysctls, d.expandMap(c.Sysctls)),
		Tmpfs:         overlay(n.Tmpfs, c.Tmpfs),
		CapAdd:        union(n.CapAdd, c.CapAdd),
		Devices:       union(n.Devices, c.Devices),
		Privileged:    n.Privileged,
		ShmSize:       cmp.Or(n.ShmSize, d.bytes(c.ShmSize)),
		Memory:        cmp.Or(n.Memory, d.bytes(c.Memory)),
		CPU:           n.CPU,
		TTY:           true,
		Stdin:         true,
		RestartPolicy: cmp.Or(n.RestartPolicy, c.RestartPolicy),
		MgmtMAC:       x.MacAddress,
		Mounts:        d.mounts(),
	}
	if c.Entrypoint != nil && (c.EntrypointForce || len(n.Entrypoint) == 0) {
		out.Entrypoint = d.expandAll(c.Entrypoint)
	}
	if c.Cmd != nil && (c.CmdForce || len(n.Cmd) == 0) {
		out.Cmd = d.expandAll(c.Cmd)
	}
	out.Env = maps.Clone(x.Env)
	if !c.NoIntfs {
		out.Env["CLAB_INTFS"] = strconv.Itoa(len(n.Endpoints))
	}
	d.plan.Containers = []Container{out}
}

// overlay returns under, overwritten by the non-empty values of over; nil if empty.
func overlay(under, over map[string]string) map[string]string {
	if len(under) == 0 && len(over) == 0 {
		return nil
	}
	out := maps.Clone(under)
	if out == nil {
		out = make(map[string]string, len(over))
	}
	for k, v := range over {
		if v != "" {
			out[k] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// union returns a, followed by the elements of b that are not in a.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// bytes parses a size of the catalogue, in bytes; 0 for "".
func (d *draft) bytes(text string) int64 {
	n, _ := strconv.ParseInt(d.expand(text), 10, 64)
	return n
}

// mounts returns the user's mounts, and those of the kind with other targets, sorted by
// target.
func (d *draft) mounts() []Mount {
	out := d.userMounts()
	for _, m := range d.kind.Container.Mounts {
		if !d.holds(m.When) {
			continue
		}
		mount := Mount{Target: d.expand(m.Target), ReadOnly: m.ReadOnly, Path: d.expand(m.Path), HostPath: m.Host}
		if mount.Path != "" && mount.Path == d.suppressed {
			continue
		}
		taken := slices.ContainsFunc(out, func(have Mount) bool { return path.Clean(have.Target) == path.Clean(mount.Target) })
		if !taken {
			out = append(out, mount)
		}
	}
	slices.SortFunc(out, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
	return out
}

// userMounts adds the user's binds and volumes.
func (d *draft) userMounts() []Mount {
	mounts, files := UserMounts(d.node)
	for _, f := range files {
		d.addFile(f)
	}
	return mounts
}

// UserMounts returns the mounts for a node's binds and volumes, and the files of the binds,
// which go to binds/ in the node's folder. It is the same for every planner.
func UserMounts(n *lab.Node) (mounts []Mount, files []File) {
	for _, m := range n.Mounts {
		mount := Mount{
			Target: m.Target, ReadOnly: m.ReadOnly, HostPath: m.HostPath, Volume: m.Volume, Anonymous: m.Anonymous,
		}
		staged := path.Join("binds", strings.TrimPrefix(path.Clean(m.Target), "/"))
		switch {
		case m.File != nil:
			mount.Path = staged
			files = append(files, File{Path: staged, Mode: m.File.Mode, Ref: m.File, Secret: m.File.Secret})
		case m.Dir != nil:
			mount.Path = staged
			files = append(files, File{Path: staged, Dir: true, Mode: m.Dir.Mode})
			for _, e := range m.Dir.Entries {
				f := File{Path: path.Join(staged, e.Path), Mode: e.Mode, Ref: e.File, Link: e.Link}
				f.Dir = e.File == nil && e.Link == ""
				f.Secret = e.File != nil && e.File.Secret
				files = append(files, f)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Certificates)) {
			mount.Path = staged
			f := File{Path: path.Join(staged, name), Mode: 0o644, Certificate: m.Certificates[name]}
			if f.Certificate == "tls.key" {
				f.Mode, f.Secret = 0o600, true
			}
			files = append(files, f)
		}
		mounts = append(mounts, mount)
	}
	return mounts, files
}
