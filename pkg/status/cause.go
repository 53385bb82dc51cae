package status

import (
	"strings"

	"github.com/c9s-lab/c9s/pkg/contract"
)

const noImage = "its image cannot be pulled"

// fullDisk is part of what containerd and CRI-O say when they cannot unpack an
// image (ENOSPC).
const fullDisk = "no space left on device"

const noPullSecretFound = noImage + ", and a Secret with the registry's credentials (imagePullSecrets) is not in the namespace: make it with 'kubectl create secret docker-registry'"

const makeRoom = "the worker's disk is full: remove what fills it there (crictl rmi --prune removes unused images), give it more, or place the node on another with nodeSelector in c9s.yaml"

// causes turns Kubernetes' words into what they mean here and what to do. The
// first whose reason and text fit is taken.
var causes = []struct {
	reason, text string
	means        string
}{
	{"FailedCreate", "violates PodSecurity", "the namespace forbids privileged Pods, which the sidecar is; set its label pod-security.kubernetes.io/enforce=privileged or use another namespace"},
	{"FailedCreate", "security context constraint", "OpenShift lets the lab's ServiceAccount have no privileged Pods: 'oc adm policy add-scc-to-user privileged -z c9s-node' in the namespace lets it"},
	{"FailedCreate", "exceeded quota", "the namespace's quota is used up"},
	{"FailedCreate", "must specify", "the namespace's quota wants limits that c9s' own containers do not have: give the lab a namespace of its own with -n, or a LimitRange with defaults"},
	{"FailedCreate", "", "the API server refuses the Pod"},
	{"ImagePullBackOff", fullDisk, makeRoom},
	{"ErrImagePull", fullDisk, makeRoom},
	{"CreateContainerError", fullDisk, makeRoom},
	{"RunContainerError", fullDisk, makeRoom},
	{"FailedMount", fullDisk, makeRoom},
	{"FailedCreatePodSandBox", fullDisk, makeRoom},
	{"ImagePullBackOff", "image pull secrets", noPullSecretFound},
	{"ErrImagePull", "image pull secrets", noPullSecretFound},
	{"ImagePullBackOff", "", noImage},
	{"ErrImagePull", "", noImage},
	{"ErrImageNeverPull", "", "its image is not on the worker, and the pull policy is Never"},
	{"InvalidImageName", "", "its image is no legal reference"},
	{"CreateContainerConfigError", "", "something that the Pod refers to is missing"},
	{"CreateContainerError", "failed to reserve container name", "the kubelet repeats the start of an earlier container; the worker is busy, or its clock was set back: if this lasts, replace the Pod with 'c9s restart'"},
	{"CreateContainerError", "", "the container cannot be made"},
	{"RunContainerError", "", "the container cannot be started"},
	{"CrashLoopBackOff", "", "its container ends again and again"},
	{"OOMKilled", "", "its container needs more memory than its limit"},
	{"Unschedulable", "DiskPressure", "no worker can take it, and some have too little room on their disk: make room there (crictl rmi --prune removes unused images)"},
	{"Unschedulable", "", "no worker can take it"},
	{"FailedMount", "/dev/kvm", "the worker has no /dev/kvm, which this kind needs: nested virtualisation must be on"},
	{"FailedMount", "secret \"", "a Secret that the Pod mounts is missing: apply the rendered secrets/ too, or use c9s deploy, which does"},
	{"FailedMount", "not found", "something that the Pod mounts is missing: apply all that was rendered, or use c9s deploy, which does"},
	{"FailedMount", "", "a volume cannot be mounted"},
	{reasonLost, "", "its sidecar has lost its network namespace; the controller, or else the kubelet within about a minute, has the Pod replaced"},
	{"Evicted", `EmptyDir volume "c9s"`, "its sidecar had lost its network namespace, or something else filled the folder of c9s in the Pod"},
	{"Evicted", "ephemeral-storage", makeRoom},
	{"Evicted", "DiskPressure", makeRoom},
	{"Evicted", "", "the worker ran out of something and evicted it"},
}

// ownImage are the containers whose image is c9s' own.
var ownImage = map[string]bool{PrepareContainer: true, WireContainer: true}

// Cause says what keeps a Pod from getting ready, "" for nothing but time.
func (p Progress) Cause() string {
	if p.State != StateFailed && p.Reason == "" {
		return ""
	}
	text := p.Reason
	for _, c := range causes {
		if c.reason == p.Reason && strings.Contains(p.Message, c.text) {
			text = c.means
			break
		}
	}
	switch {
	case ownImage[p.Container] && text == noImage:
		text = "the c9s image cannot be pulled; --image names another, c9s image push brings one into a registry"
	case p.ended() && (p.Container == PrepareContainer || strings.Contains(p.Message, contract.FilesMessage)):
		text = "its files cannot be laid out"
	case p.Container == WireContainer && p.ended():
		text = "its sidecar ends"
	case text == "":
		text = "its Pod has failed"
	}
	if p.Message != "" {
		text += " (" + strings.TrimSpace(p.Message) + ")"
	}
	return text
}

// At puts where something is written (file:line) behind its name, "" for nowhere.
func At(source string) string {
	if source == "" {
		return ""
	}
	return " (" + source + ")"
}

// ended reports whether the reason is the end of a container.
func (p Progress) ended() bool {
	return p.Reason == "Error" || p.Reason == "CrashLoopBackOff" || p.Reason == "Completed" || p.Reason == "ContainerCannotRun"
}
