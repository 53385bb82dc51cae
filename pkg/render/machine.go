package render

import (
	"cmp"
	"maps"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// disksFolder, in the node's folder, holds the disks of a virtual machine.
const disksFolder = "disks"

// imagePath is the PATH of images that set none, as those of vrnetlab.
const imagePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// keepsDisk reports whether the disk of the node's virtual machine is on the Pod's claim.
func (v *podView) keepsDisk(m member) bool {
	policy := m.node.Policy.Persistence
	return m.plan.Needs.KVM && v.persistent && policy != nil && policy.Enabled
}

// diskEntries put the helper where the launcher finds it as qemu-img.
func diskEntries() []contract.Entry {
	return []contract.Entry{
		{Path: contract.DiskBin, Mode: 0o755, Dir: true},
		{Path: path.Join(contract.DiskBin, contract.DiskProgram), Link: "../" + contract.HelperFile},
	}
}

// diskEnv is the container's environment with the helper first in PATH.
func diskEnv(env map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, env)
	out["PATH"] = path.Join(contract.HelperDir, contract.DiskBin) + ":" + cmp.Or(env["PATH"], imagePath)
	return out
}

func (b *deploymentBuilder) diskMount(m member) corev1.VolumeMount {
	return b.nodeFolder(m).mount(contract.DisksDir, disksFolder, false)
}
