package render

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// clusterMounts are the mounts of files that only the cluster holds. taken reports whether
// something else is mounted at a path.
func (b *deploymentBuilder) clusterMounts(m member, taken func(string) bool) []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for _, f := range m.node.Policy.Files {
		if taken(f.Path) {
			b.diags.Errorf(apicheck.CodeMountPath, f.Pos, "remove one of the two",
				"node %q has something at %s already, so that no file of the policy can be there", m.node.Name, f.Path)
			continue
		}
		out = append(out, corev1.VolumeMount{Name: b.clusterVolume(f), MountPath: f.Path, SubPath: f.Key, ReadOnly: true})
	}
	return out
}

// clusterVolume is the volume of a file, or of a folder. A key that is not there keeps the
// Pod from starting, with an event that names it.
func (b *deploymentBuilder) clusterVolume(f lab.ClusterFile) string {
	var items []corev1.KeyToPath
	if f.Key != "" {
		items = []corev1.KeyToPath{{Key: f.Key, Path: f.Key}}
	}
	mode := new(int32(f.Mode))
	kind, name, source := "secret", f.Secret, corev1.VolumeSource{}
	if f.Secret != "" {
		source.Secret = &corev1.SecretVolumeSource{SecretName: f.Secret, Items: items, DefaultMode: mode}
	} else {
		kind, name = "configmap", f.ConfigMap
		source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: f.ConfigMap}, Items: items, DefaultMode: mode}
	}
	key := path.Join("cluster", kind, name, f.Key, contract.Mode(f.Mode).String())
	return b.volumes.add(key, contract.ExternalVolume+kind+"-"+contract.Slug(name+"-"+f.Key, 50), source)
}

// external lists the files of a node that only the cluster holds, for the manifest.
func external(n *lab.Node) []contract.External {
	var out []contract.External
	for _, f := range n.Policy.Files {
		out = append(out, contract.External{Path: f.Path, Secret: f.Secret, ConfigMap: f.ConfigMap, Key: f.Key, Mode: contract.Mode(f.Mode), Digest: contract.DigestUnknown})
	}
	return out
}
