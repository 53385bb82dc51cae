package render

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// Names of c9s' own containers in a Pod, and its binary in the c9s image.
const (
	prepareName   = "prepare"
	wireName      = contract.WireContainer
	bridgeName    = contract.IdleContainer
	sidecarBinary = contract.SidecarProgram
)

// startupSeconds is how long the wire may take to make its interfaces before the
// Deployment counts as failed; waitSeconds is for a node that waits for others, whose
// boot may take any time, and the kubelet's patience: it never restarts the wire, whose
// first process restarts what it runs by itself.
const (
	startupSeconds = 600
	waitSeconds    = 86_400
)

// fileMounts are what files are laid out from and to.
func (b *deploymentBuilder) fileMounts() []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{
		{Name: volumePlan, MountPath: contract.PlanDir, ReadOnly: true},
		{Name: volumeState, MountPath: contract.StateDir},
	}
	if b.staged.empty {
		return mounts
	}
	if len(b.staged.files) > 0 {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeFiles, MountPath: contract.FilesDir, ReadOnly: true})
	}
	for _, m := range b.pod.members {
		if b.staged.folders[m.node.ID] {
			mounts = append(mounts, b.nodeFolder(m).mount(contract.NodesDir+"/"+m.node.ID, "", false))
		}
	}
	if len(b.pod.claimFolders()) > 0 {
		mounts = append(mounts, folder{b.dataVolume(), claimVolumes}.mount(contract.VolumesDir, "", false))
	}
	return mounts
}

// prepareContainer lays out the files of a Pod without a wire, which is in the worker's
// network namespace. It may change owners and modes, nothing else: no privilege, no
// network use, a read-only root.
func (b *deploymentBuilder) prepareContainer() corev1.Container {
	return corev1.Container{
		Name:         prepareName,
		Image:        b.index.image,
		Command:      []string{sidecarBinary, "prepare"},
		VolumeMounts: b.fileMounts(),
		Resources:    smallRequests("10m", "16Mi"),
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                new(int64(0)),
			RunAsGroup:               new(int64(0)),
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities: &corev1.Capabilities{
				Drop: []corev1.Capability{"ALL"},
				Add:  []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER"},
			},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

// wireContainer is the sidecar: an init container that continues running. Its
// startup probe holds the devices back until their files and interfaces are there.
func (b *deploymentBuilder) wireContainer() corev1.Container {
	mounts := append(b.fileMounts(),
		corev1.VolumeMount{Name: volumeLinks, MountPath: contract.LinksDir, ReadOnly: true},
		corev1.VolumeMount{Name: volumeDirectory, MountPath: contract.DirectoryDir, ReadOnly: true},
		corev1.VolumeMount{Name: volumeWireKey, MountPath: path.Dir(contract.WireKeyFile), ReadOnly: true},
	)
	mounts = append(mounts, b.loginMounts()...)
	if b.pod.needsHostProc(b.index.lab) {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeHostProc, MountPath: contract.HostProc})
	}
	if !b.index.lab.NoLocalWires {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeNear, MountPath: contract.NearDir})
	}
	resources := smallRequests("5m", "16Mi")
	// Far above what it takes: a container that goes over its limit ends as a whole.
	resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
	return corev1.Container{
		Name:          wireName,
		Image:         b.index.image,
		Command:       []string{sidecarBinary, "wire"},
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{
			fieldEnv("NODE_NAME", "spec.nodeName"),
			fieldEnv("POD_IPS", "status.podIPs"),
			fieldEnv("POD_NAME", "metadata.name"),
			fieldEnv("POD_NAMESPACE", "metadata.namespace"),
		},
		Resources:    resources,
		VolumeMounts: mounts,
		// The sidecar holds its answer until it can say yes, so what waits for
		// it continues at once and not at the next probe.
		StartupProbe:   statusProbe(api.PathStartup+"?"+api.QueryWait+"=4s", 1, waitSeconds),
		ReadinessProbe: statusProbe(api.PathReady+"?"+api.QueryWait+"=4s", 5, 2),
		SecurityContext: &corev1.SecurityContext{
			Privileged:             new(true),
			RunAsUser:              new(int64(0)),
			RunAsGroup:             new(int64(0)),
			ReadOnlyRootFilesystem: new(true),
		},
	}
}

// startupTries is how many seconds the wire's start is expected to take at most.
func (v *podView) startupTries() int32 {
	tries := startupSeconds
	for _, m := range v.members {
		if len(m.node.Stages[lab.StageCreate].WaitFor) > 0 {
			return waitSeconds
		}
		tries = max(tries, startupSeconds+m.node.StartupDelay)
	}
	return int32(min(tries, waitSeconds))
}

// deadlineSeconds is how long the Deployment may take before it counts as failed:
// the wire, and then fifty minutes for a device to boot and configure itself.
func (v *podView) deadlineSeconds() int32 { return v.startupTries() + 3000 }

func statusProbe(path string, period, tries int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(contract.StatusPort)}},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		FailureThreshold: tries,
	}
}

// idleContainer stands where a bridge has no device: a Pod needs a container.
func (b *deploymentBuilder) idleContainer() corev1.Container {
	return corev1.Container{
		Name:         bridgeName,
		Image:        b.index.image,
		Command:      []string{sidecarBinary, "idle"},
		Resources:    smallRequests("1m", "8Mi"),
		VolumeMounts: programMounts(bridgeName)[:1],
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot:             new(true),
			RunAsUser:                new(int64(controllerUser)),
			RunAsGroup:               new(int64(controllerUser)),
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

func smallRequests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

func fieldEnv(name, field string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}}
}
