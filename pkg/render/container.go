package render

import (
	"cmp"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// deviceContainer carries the i-th container of a member's plan, its image
// unmodified. Docker's entrypoint is Kubernetes' command, and its cmd the args:
// in both, giving the one discards the image's other.
func (b *deploymentBuilder) deviceContainer(m member, i int, program bool) corev1.Container {
	c := m.plan.Containers[i]
	privileged := privileged(m.node, c)
	out := corev1.Container{
		Name:            m.containers[i],
		Image:           MapImage(b.index.opts.MapImage, c.Image),
		ImagePullPolicy: pullPolicy(m.node),
		Command:         literals(c.Entrypoint),
		Args:            literals(c.Cmd),
		Env:             b.env(m, i),
		Stdin:           c.Stdin,
		TTY:             c.TTY,
		Resources:       m.resources(i),
		SecurityContext: b.securityContext(m.node, c, privileged),
		VolumeMounts:    b.deviceMounts(m, i, privileged),
	}
	if program {
		out.VolumeMounts = b.withoutHelper(m, out.VolumeMounts)
		out.VolumeMounts = append(out.VolumeMounts, programMounts(out.Name)...)
		out.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{
			contract.HelperDir + "/" + contract.HelperFile, "run", "--steps", contract.HelperDir + "/" + contract.ProgramFile,
		}}}}
	}
	if i == 0 {
		b.probes(m, &out)
		for _, p := range b.index.sharedPorts(m.node) {
			out.Ports = append(out.Ports, corev1.ContainerPort{
				Name: contract.SharedPortName(p.Protocol, p.shared), ContainerPort: int32(p.Container), Protocol: corev1.Protocol(p.Protocol),
			})
		}
	}
	return out
}

// withoutHelper rejects mounts of the user's where the helper is.
func (b *deploymentBuilder) withoutHelper(m member, mounts []corev1.VolumeMount) []corev1.VolumeMount {
	return slices.DeleteFunc(mounts, func(v corev1.VolumeMount) bool {
		target := path.Clean(v.MountPath)
		if target != contract.HelperDir && !strings.HasPrefix(target, contract.HelperDir+"/") {
			return false
		}
		pos := m.node.Pos
		for _, own := range m.node.Mounts {
			if own.Target == v.MountPath {
				pos = own.Pos
			}
		}
		for _, own := range m.node.Policy.Files {
			if own.Path == v.MountPath {
				pos = own.Pos
			}
		}
		b.diags.Errorf(apicheck.CodeMountPath, pos, "choose another target", "node %q mounts something at %s, but c9s needs %s for its helper", m.node.Name, target, contract.HelperDir)
		return true
	})
}

func privileged(n *lab.Node, c plan.Container) bool {
	if n.Policy.Privileged != nil {
		return *n.Policy.Privileged
	}
	return c.Privileged
}

func pullPolicy(n *lab.Node) corev1.PullPolicy {
	if n.Policy.ImagePullPolicy != "" {
		return corev1.PullPolicy(n.Policy.ImagePullPolicy)
	}
	return corev1.PullPolicy(n.ImagePullPolicy)
}

// literals escapes what Kubernetes would expand in commands, arguments and
// environment: "$(" starts a reference and "$$" is an escaped "$". Docker expands
// nothing.
func literals(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = literal(s)
	}
	return out
}

func literal(s string) string {
	if !strings.Contains(s, "$(") && !strings.Contains(s, "$$") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '$' && i+1 < len(s) && (s[i+1] == '(' || s[i+1] == '$') {
			b.WriteByte('$')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// interfaceCount is containerlab's variable with the number of data interfaces.
const interfaceCount = "CLAB_INTFS"

// env is the container's environment. Where links change under a running device,
// the number of them must not be in the Pod's template, where a change restarts
// it: a device that starts again reads it from the ConfigMap of the links.
func (b *deploymentBuilder) env(m member, i int) []corev1.EnvVar {
	env := m.plan.Containers[i].Env
	if i == 0 && b.pod.keepsDisk(m) {
		env = diskEnv(env)
	}
	out := envVars(env)
	if !b.pod.countsInterfaces(m) {
		return out
	}
	for j := range out {
		if out[j].Name == interfaceCount {
			out[j] = corev1.EnvVar{Name: interfaceCount, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: b.pod.linksName()}, Key: interfaceCountKey(m.node.ID),
			}}}
		}
	}
	return out
}

// countsInterfaces reports whether a node's container gets the number of its
// interfaces from the links.
func (v *podView) countsInterfaces(m member) bool {
	_, own := m.node.Env[interfaceCount]
	if own || v.hostNetwork || v.linkApplyMode() != "live" || len(m.plan.Containers) == 0 {
		return false
	}
	_, wanted := m.plan.Containers[0].Env[interfaceCount]
	return wanted
}

// interfaceCountKey is the key of a node's number in the ConfigMap of the links.
func interfaceCountKey(id string) string { return "interfaces-" + id }

func envVars(env map[string]string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, corev1.EnvVar{Name: name, Value: literal(env[name])})
	}
	return out
}

// resources are the policy's where it has any. Otherwise Docker's memory and cpu are
// limits, and what the kind needs is requested. Memory is requested in full, because a
// device that has booted uses it, and of CPU a tenth, because a booted device idles.
func (m member) resources(i int) corev1.ResourceRequirements {
	if m.node.Policy.Resources != nil {
		return *m.node.Policy.Resources
	}
	c := m.plan.Containers[i]
	out := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	memory, milli := m.needs(i)
	if c.Memory > 0 {
		memory = c.Memory
		out.Limits[corev1.ResourceMemory] = *resource.NewQuantity(memory, resource.BinarySI)
	}
	if written := int64(math.Round(c.CPU * 1000)); written > 0 {
		milli = written
		out.Limits[corev1.ResourceCPU] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	if memory > 0 {
		out.Requests[corev1.ResourceMemory] = *resource.NewQuantity(memory, resource.BinarySI)
	}
	if milli > 0 {
		out.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(min(max(milli/10, 10), milli), resource.DecimalSI)
	}
	if len(out.Requests) == 0 {
		return corev1.ResourceRequirements{}
	}
	if len(out.Limits) == 0 {
		out.Limits = nil
	}
	return out
}

// What a virtual machine has of which neither the kind nor its environment says the size.
const (
	machineMemory = 2 << 30
	machineMilli  = 1000
)

// needs returns the memory in bytes and the CPU in thousandths of a core that the i-th
// container needs: those of the kind are of the node and count for its first container.
// A virtual machine has what its environment says; images of vrnetlab read it.
func (m member) needs(i int) (memory, milli int64) {
	if i > 0 {
		return 0, 0
	}
	memory, milli = m.plan.Needs.MinMemory, int64(m.plan.Needs.MinCPU)*1000
	if !m.plan.Needs.KVM {
		return memory, milli
	}
	env := m.plan.Containers[i].Env
	if mib, err := strconv.ParseInt(env["QEMU_MEMORY"], 10, 32); err == nil && mib > 0 {
		memory = mib << 20
	}
	smp, _, _ := strings.Cut(env["QEMU_SMP"], ",") // "4,sockets=1"
	if cores, err := strconv.ParseInt(smp, 10, 16); err == nil && cores > 0 {
		milli = cores * 1000
	}
	return cmp.Or(memory, machineMemory), cmp.Or(milli, machineMilli)
}

// deviceMounts are the mounts of the i-th container, sorted by path: the plan's,
// and tmpfs, shm, resolv.conf and devices where the plan has nothing there.
func (b *deploymentBuilder) deviceMounts(m member, i int, privileged bool) []corev1.VolumeMount {
	c := m.plan.Containers[i]
	var out []corev1.VolumeMount
	for _, mount := range c.Mounts {
		out = append(out, b.planMount(m, i, mount))
	}
	taken := func(target string) bool {
		return slices.ContainsFunc(out, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == path.Clean(target) })
	}
	out = append(out, b.clusterMounts(m, taken)...)
	free := func(target string) bool { return !taken(target) }
	for _, target := range slices.Sorted(maps.Keys(c.Tmpfs)) {
		size := b.tmpfs(m.node, target, c.Tmpfs[target])
		if free(target) {
			name := b.volumes.add("tmpfs/"+m.containers[i]+path.Clean(target), "tmpfs-"+b.pod.scoped(m, i, target), memoryDir(size))
			out = append(out, corev1.VolumeMount{Name: name, MountPath: target})
		}
	}
	if c.ShmSize > 0 && free("/dev/shm") {
		name := b.volumes.add("shm/"+m.containers[i], "shm-"+m.containers[i], memoryDir(c.ShmSize))
		out = append(out, corev1.VolumeMount{Name: name, MountPath: "/dev/shm"})
	}
	if b.pod.ownResolvConf(m.node) && free("/etc/resolv.conf") {
		out = append(out, b.nodeFolder(m).mount("/etc/resolv.conf", resolvConf, false))
	}
	if i == 0 && b.pod.keepsDisk(m) && free(contract.DisksDir) {
		out = append(out, b.diskMount(m))
	}
	for _, d := range b.devices(m, i, privileged) {
		if free(d.target) {
			name := b.volumes.add("device/"+d.source, "host-"+contract.Slug(d.source, 50), hostPath(d.source, corev1.HostPathCharDev))
			out = append(out, corev1.VolumeMount{Name: name, MountPath: d.target})
		}
	}
	slices.SortFunc(out, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	return out
}

// scoped names a volume of one container by its path, and by the container where
// the Pod has several.
func (v *podView) scoped(m member, i int, target string) string {
	if len(v.members) == 1 && len(m.containers) == 1 {
		return contract.Slug(target, 50)
	}
	return contract.Slug(m.containers[i]+target, 50)
}

func (b *deploymentBuilder) planMount(m member, i int, mount plan.Mount) corev1.VolumeMount {
	switch {
	case mount.HostPath != "":
		name := b.volumes.add("host/"+mount.HostPath, "host-"+contract.Slug(mount.HostPath, 50), hostPath(mount.HostPath, corev1.HostPathUnset))
		return corev1.VolumeMount{Name: name, MountPath: mount.Target, ReadOnly: mount.ReadOnly}
	case mount.Volume != "":
		b.warnVolume(m.node, mount)
		return b.namedVolume(mount.Volume).mount(mount.Target, "", mount.ReadOnly)
	case mount.Anonymous:
		b.warnVolume(m.node, mount)
		return b.anonymousVolume(m.containers[i], mount.Target).mount(mount.Target, "", mount.ReadOnly)
	}
	return b.nodeFolder(m).mount(mount.Target, mount.Path, mount.ReadOnly)
}

func (b *deploymentBuilder) warnVolume(n *lab.Node, mount plan.Mount) {
	pos := n.Pos // the bind's own line, which many nodes may share: told once
	for _, m := range n.Mounts {
		if m.Target == mount.Target {
			pos = m.Pos
		}
	}
	b.diags.Warnf(CodeVolumeEmpty, pos, "bind the files that the device needs there",
		"the volume at %s starts empty; Docker would copy the image's files to it", mount.Target)
}

// tmpfs reads the options of a tmpfs and returns its size in bytes, 0 for none.
func (b *deploymentBuilder) tmpfs(n *lab.Node, target, options string) int64 {
	var size int64
	var ignored []string
	for option := range strings.SplitSeq(options, ",") {
		key, text, _ := strings.Cut(option, "=")
		switch key {
		case "", "rw":
		case "size":
			var ok bool
			if size, ok = tmpfsSize(text); !ok {
				b.diags.Errorf(CodeQuantity, n.Pos, "write a size such as size=64m", "node %q: tmpfs %s has the size %q", n.Name, target, text)
			}
		default:
			ignored = append(ignored, option)
		}
	}
	// What the kind asks for by itself is not for the user to change.
	if users, written := n.Tmpfs[target]; written && users == options && len(ignored) > 0 {
		b.diags.Warnf(CodeTmpfsOption, n.Pos, "keep only size=, or ignore this", "node %q: tmpfs %s loses %s; a Pod can only limit its size", n.Name, target, strings.Join(ignored, ","))
	}
	return size
}

// device is a character device of the worker and where the container sees it.
type device struct {
	source, target string
}

// needsKVM reports whether the node runs only where there is /dev/kvm.
func (m member) needsKVM() bool { return m.plan.Needs.KVM && m.node.Policy.KVM != lab.KVMOptional }

// devices are /dev/kvm where it is needed, and the topology's devices where the
// container does not see all of the worker's anyway. A worker without the device
// keeps the Pod from starting, with an event that says so.
func (b *deploymentBuilder) devices(m member, i int, privileged bool) []device {
	var out []device
	if m.needsKVM() {
		out = append(out, device{"/dev/kvm", "/dev/kvm"})
	}
	if privileged {
		return out
	}
	for _, text := range m.plan.Containers[i].Devices {
		parts := strings.SplitN(text, ":", 3)
		d := device{parts[0], parts[0]}
		if len(parts) > 1 && strings.HasPrefix(parts[1], "/") {
			d.target = parts[1]
		}
		b.diags.Warnf(CodeDevice, m.node.Pos, "set privileged: true, or request the device from a device plugin (resources in the policy)",
			"node %q: the device %s is visible, but most workers let only privileged containers open it", m.node.Name, d.source)
		out = append(out, d)
	}
	return out
}
