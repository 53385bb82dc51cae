package render

import (
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Names of the volumes that every Pod may have.
const (
	volumeState     = "c9s"
	volumePlan      = "plan"
	volumeFiles     = "files"
	volumeLinks     = "links"
	volumeDirectory = "directory"
	volumeWireKey   = "wire-key"
	volumeData      = "data"
	volumeHostProc  = "host-proc"
	volumeNear      = "near"
)

// volumeSet collects the volumes of one Pod.
type volumeSet struct {
	list  []corev1.Volume
	byKey map[string]string
	names map[string]bool
}

// add makes sure that there is a volume for key and returns its name, which is
// made of name.
func (v *volumeSet) add(key, name string, source corev1.VolumeSource) string {
	if have, ok := v.byKey[key]; ok {
		return have
	}
	if v.byKey == nil {
		v.byKey, v.names = map[string]string{}, map[string]bool{}
	}
	name = contract.Fit(strings.TrimRight(name, "-"), contract.MaxLabel) // a slug may be empty
	if v.names[name] {
		name = contract.Fit(name, contract.MaxLabel-7) + "-" + contract.ShortDigest(key)[:6]
	}
	v.byKey[key], v.names[name] = name, true
	v.list = append(v.list, corev1.Volume{Name: name, VolumeSource: source})
	return name
}

func emptyDir() corev1.VolumeSource {
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
}

// memoryDir is a tmpfs. limit is in bytes, 0 for half of the worker's memory.
func memoryDir(limit int64) corev1.VolumeSource {
	dir := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	if limit > 0 {
		dir.SizeLimit = resource.NewQuantity(limit, resource.BinarySI)
	}
	return corev1.VolumeSource{EmptyDir: dir}
}

func hostPath(name string, kind corev1.HostPathType) corev1.VolumeSource {
	source := &corev1.HostPathVolumeSource{Path: name}
	if kind != corev1.HostPathUnset {
		source.Type = &kind
	}
	return corev1.VolumeSource{HostPath: source}
}

// helperVolumes are those of prepare and wire.
func (b *deploymentBuilder) helperVolumes() {
	state := emptyDir()
	state.EmptyDir.SizeLimit = resource.NewQuantity(contract.StateLimit, resource.BinarySI)
	b.volumes.add(volumeState, volumeState, state)
	b.volumes.add(volumePlan, volumePlan, configMapVolume(b.staged.plan))
	if len(b.staged.files) > 0 {
		b.volumes.add(volumeFiles, volumeFiles, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o400)), Sources: b.staged.files,
		}})
	}
	for _, m := range b.pod.members {
		if b.staged.folders[m.node.ID] {
			b.nodeFolder(m)
		}
	}
	if b.pod.hostNetwork {
		return
	}
	b.volumes.add(volumeLinks, volumeLinks, configMapVolume(b.pod.linksName()))
	b.volumes.add(volumeDirectory, volumeDirectory, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: directorySources}})
	b.volumes.add(volumeWireKey, volumeWireKey, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: contract.WireKeySecret, Optional: new(true), DefaultMode: new(int32(0o400)),
	}})
	if b.pod.needsHostProc(b.index.lab) {
		b.volumes.add(volumeHostProc, volumeHostProc, hostPath("/proc", corev1.HostPathDirectory))
	}
	if !b.index.lab.NoLocalWires {
		b.volumes.add(volumeNear, volumeNear, hostPath(contract.NearFolder, corev1.HostPathDirectoryOrCreate))
	}
}

func configMapVolume(name string) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name},
	}}
}

// directorySources are the directory and the Pods' addresses, which the controller writes.
var directorySources = func() []corev1.VolumeProjection {
	var out []corev1.VolumeProjection
	for _, name := range []string{contract.AddressesConfigMap, contract.DirectoryConfigMap} {
		out = append(out, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: new(true),
		}})
	}
	return out
}()

// folder is where a node's folder is: a volume and a path in it.
type folder struct {
	volume, subPath string
}

func (f folder) mount(target, name string, readOnly bool) corev1.VolumeMount {
	sub := path.Join(f.subPath, name)
	if sub == "." {
		sub = ""
	}
	return corev1.VolumeMount{Name: f.volume, MountPath: target, SubPath: sub, ReadOnly: readOnly}
}

// nodeFolder is the node's folder: an empty one that lives as long as the Pod, or
// a folder of the Pod's claim.
func (b *deploymentBuilder) nodeFolder(m member) folder {
	if b.pod.persistent {
		return folder{b.dataVolume(), "nodes/" + m.node.ID}
	}
	name := "node"
	if len(b.pod.members) > 1 {
		name += "-" + m.node.ID
	}
	return folder{b.volumes.add("node/"+m.node.ID, name, emptyDir()), ""}
}

func (b *deploymentBuilder) dataVolume() string {
	return b.volumes.add(volumeData, volumeData, corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.pod.claimName()},
	})
}

// claimVolumes is where named volumes are on a claim.
const claimVolumes = "volumes"

// namedVolume is a volume of the topology: on the lab's claim, or on the Pod's, if there is
// one.
func (b *deploymentBuilder) namedVolume(name string) folder {
	if b.pod.shared[name] {
		claim := b.volumes.add("shared", contract.SharedVolume, corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: b.index.lab.SharedClaim},
		})
		return folder{claim, path.Join("c9s", contract.Slug(b.index.lab.Name, 50), claimFolder(name))}
	}
	if b.pod.persistent {
		return folder{b.dataVolume(), path.Join(claimVolumes, claimFolder(name))}
	}
	return folder{b.volumes.add("volume/"+name, "volume-"+contract.Slug(name, 50), emptyDir()), ""}
}

// claimFolder is the folder of a named volume. Names that differ only in what a
// slug omits keep apart.
func claimFolder(name string) string {
	return contract.Slug(name, 50) + "-" + contract.ShortDigest(name)[:6]
}

// claimFolders are the named volumes that the Pod has on its claim.
func (v *podView) claimFolders() []string {
	var out []string
	if !v.persistent {
		return nil
	}
	for _, m := range v.members {
		for _, c := range m.plan.Containers {
			for _, mount := range c.Mounts {
				if mount.Volume != "" && !v.shared[mount.Volume] && !slices.Contains(out, claimFolder(mount.Volume)) {
					out = append(out, claimFolder(mount.Volume))
				}
			}
		}
	}
	return out
}

func (b *deploymentBuilder) anonymousVolume(container, target string) folder {
	return folder{b.volumes.add("anonymous/"+container+target, "anonymous-"+contract.Slug(target, 50), emptyDir()), ""}
}

// programMounts are what the device sees of the volume of its program.
func programMounts(container string) []corev1.VolumeMount {
	return []corev1.VolumeMount{
		{Name: volumeState, MountPath: contract.HelperDir, SubPath: path.Join(contract.ExecDir, container), ReadOnly: true},
		{Name: volumeState, MountPath: contract.HelperDir + "/run", SubPath: path.Join(contract.RunDir, container)},
	}
}

// tmpfsSize reads the size of tmpfs options: bytes with k, m or g, as mount(8)
// takes them. 0 means none is given.
func tmpfsSize(text string) (int64, bool) {
	if text == "" {
		return 0, false
	}
	shift := 0
	switch text[len(text)-1] | 0x20 {
	case 'k':
		shift = 10
	case 'm':
		shift = 20
	case 'g':
		shift = 30
	}
	if shift > 0 {
		text = text[:len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > 1<<62>>shift {
		return 0, false
	}
	return n << shift, true
}
