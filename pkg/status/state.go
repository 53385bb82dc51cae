// Package status computes the state of a lab from its objects in the API server and from
// what its sidecars report about links. It is pure: the command line and the controller
// supply the facts.
package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// State is the state of a node.
type State string

// The states of a node, in the order in which a starting node passes through them.
const (
	StateStopped     State = "stopped"     // scaled to zero
	StatePending     State = "pending"     // no Pod yet, or one without a worker
	StatePulling     State = "pulling"     // scheduled; images are being pulled
	StatePreparing   State = "preparing"   // its Pod is being set up
	StateWiring      State = "wiring"      // files are being written, interfaces created, or the node is waiting for others
	StateStarting    State = "starting"    // the device's image is being pulled or its container created
	StateBooting     State = "booting"     // the device is running but not ready
	StateReady       State = "ready"       // the device and its wires are ready
	StateDegraded    State = "degraded"    // it was ready, and its device, a wire or its sidecar no longer is
	StateTerminating State = "terminating" // the old Pod is terminating
	StateFailed      State = "failed"      // it cannot become ready without help
)

// Progress is the state of one Pod.
type Progress struct {
	State State
	// Reason is one word (ImagePullBackOff); Message explains it.
	Reason, Message string
	// Certain is set if waiting longer does not help. It is not set for every failure:
	// an unschedulable Pod may still get a worker.
	Certain bool
	// Doubtful is set if the problem may pass by itself, and is a failure if it lasts.
	Doubtful bool
	// Container is the container that Message is about, if any. Its log may have details.
	Container string
	Restarts  int
	// LastExit is when a device container last exited; zero if none has.
	LastExit time.Time
}

// Names of c9s' own containers in a Pod. Pods in the worker's network namespace have the
// first, all others the second; Pods of earlier versions have both.
const (
	PrepareContainer = "prepare"
	WireContainer    = contract.WireContainer
)

// Of returns the progress of a Pod. pod is nil if there is none; events are the warnings
// about the Pod, the latest last.
func Of(d *appsv1.Deployment, pod *corev1.Pod, events []corev1.Event) Progress {
	if d != nil && d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		if pod != nil && !Ended(pod) {
			return Progress{State: StateTerminating}
		}
		return Progress{State: StateStopped}
	}
	if pod == nil {
		return withoutPod(d)
	}
	p := Progress{Restarts: restarts(pod), LastExit: lastExit(pod)}
	switch {
	case pod.DeletionTimestamp != nil:
		p.State = StateTerminating
	case Lost(pod):
		p.State, p.Reason = StateDegraded, reasonLost
	case pod.Status.Phase == corev1.PodFailed:
		p.State, p.Reason, p.Message = StateFailed, pod.Status.Reason, pod.Status.Message
	case pod.Spec.NodeName == "":
		p.State = StatePending
		if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
			p.Reason, p.Message = c.Reason, c.Message
		}
	default:
		p.containers(pod)
		p.mounts(pod, events)
		p.pullSecrets(events)
	}
	return p
}

// Ended reports whether all containers of a Pod have terminated, for example after an
// eviction. Kubernetes keeps such Pods.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// withoutPod returns why there is no Pod: the Deployment's condition quotes why the API
// server rejected it (Pod Security, quota, admission).
func withoutPod(d *appsv1.Deployment) Progress {
	p := Progress{State: StatePending}
	if d == nil {
		return p
	}
	if c := Refused(d); c != nil {
		return Progress{State: StateFailed, Reason: c.Reason, Message: c.Message, Doubtful: true} // the condition may be out of date
	}
	return p
}

// Refused returns the condition of a Deployment whose Pod the API server rejected, nil if
// it has none.
func Refused(d *appsv1.Deployment) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if c := &d.Status.Conditions[i]; c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func restarts(pod *corev1.Pod) int {
	n := 0
	for _, s := range pod.Status.ContainerStatuses {
		n += int(s.RestartCount)
	}
	return n
}

func lastExit(pod *corev1.Pod) time.Time {
	var last time.Time
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

// placed returns when a Pod was scheduled, by the control plane's clock. The Pod's
// StartTime is set by the worker's clock, which may be off.
func placed(pod *corev1.Pod) time.Time {
	if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

func condition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// lasting are the waiting reasons that do not pass by themselves. tried are those after
// which the kubelet retries, with success if the registry or worker was only busy.
var (
	lasting = map[string]bool{"ErrImageNeverPull": true, "InvalidImageName": true, "CreateContainerConfigError": true}
	tried   = map[string]bool{
		"ErrImagePull": true, "ImagePullBackOff": true, "RegistryUnavailable": true, "RunContainerError": true, "CreateContainerError": true,
	}
)

// busy are parts of messages about overload; hopeless are parts of messages about
// failures that no retry changes.
var (
	busy     = []string{"context deadline exceeded", "is reserved for", "QPS exceeded", "429", "timeout", "timed out", "connection re", "temporar"}
	hopeless = []string{"not found", "denied", "unauthorized", "no such host", fullDisk}
)

func mentions(message string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(message, part) })
}

// containers reads the containers' states in the order in which they start.
func (p *Progress) containers(pod *corev1.Pod) {
	p.State = StatePulling
	if isSetUp(pod) == corev1.ConditionFalse {
		p.State = StatePreparing
	}
	if len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses) == 0 {
		return // the kubelet has not reported yet
	}
	started := map[string]bool{}
	for _, s := range pod.Status.InitContainerStatuses {
		switch {
		case p.trouble(s):
			return
		case s.Name == PrepareContainer && s.State.Running != nil:
			p.State = StatePreparing
		case s.Name == PrepareContainer && s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
			p.State = StatePreparing
			started[s.Name] = true
		case s.Name == WireContainer && s.State.Running != nil:
			p.State = StateWiring
			started[s.Name] = s.Started != nil && *s.Started
		}
	}
	if len(pod.Status.InitContainerStatuses) > 0 {
		if last := pod.Status.InitContainerStatuses[len(pod.Status.InitContainerStatuses)-1].Name; !started[last] {
			return
		}
	}
	p.State = StateStarting
	running := true
	for _, s := range pod.Status.ContainerStatuses {
		if p.trouble(s) {
			return
		}
		running = running && s.State.Running != nil
	}
	if running && len(pod.Status.ContainerStatuses) > 0 {
		p.State = StateBooting
	}
	switch c := condition(pod, corev1.PodReady); {
	case c != nil && c.Status == corev1.ConditionTrue:
		p.State = StateReady
	case wasReady(pod):
		p.State = StateDegraded
	}
}

// wasReady reports whether a Pod that is not ready was ready before. Its condition Ready
// is false from the beginning; a later change means that it was true in between.
func wasReady(pod *corev1.Pod) bool {
	ready := condition(pod, corev1.PodReady)
	if ready == nil || ready.Status == corev1.ConditionTrue || ready.LastTransitionTime.IsZero() {
		return false
	}
	// If a worker is lost, the control plane changes only Ready, by its own clock; the
	// other times are the worker's.
	if c := condition(pod, corev1.ContainersReady); c != nil && c.Status == corev1.ConditionTrue {
		return true
	}
	changed := ready.LastTransitionTime
	if c := condition(pod, corev1.PodInitialized); c != nil && c.Status == corev1.ConditionTrue && c.LastTransitionTime.Before(&changed) {
		return true
	}
	for _, s := range pod.Status.ContainerStatuses {
		if r := s.State.Running; r != nil && !r.StartedAt.IsZero() && r.StartedAt.Before(&changed) {
			return true
		}
	}
	return false
}

// crashLoop is the kubelet's reason for a container that crashes repeatedly. A container
// with crashes restarts whose last run took less than shortRun counts as such. The
// kubelet resets its back-off after a longer run.
const (
	crashLoop = "CrashLoopBackOff"
	crashes   = 2
	shortRun  = 10 * time.Minute
)

// trouble records why a container does not run, and reports whether it found a reason.
func (p *Progress) trouble(s corev1.ContainerStatus) bool {
	if w := s.State.Waiting; w != nil {
		switch {
		case w.Reason == crashLoop:
			p.State, p.Reason, p.Certain, p.Container = StateFailed, w.Reason, true, s.Name
			p.Message = ended(s.LastTerminationState.Terminated)
			return true
		case lasting[w.Reason]:
			p.State, p.Reason, p.Message, p.Certain, p.Container = StateFailed, w.Reason, w.Message, true, s.Name
			return true
		case tried[w.Reason]:
			p.Reason, p.Message, p.Container = w.Reason, w.Message, s.Name
			pull := w.Reason != "RunContainerError" && w.Reason != "CreateContainerError"
			p.Certain = mentions(w.Message, hopeless) || !pull && !mentions(w.Message, busy)
			p.Doubtful = !p.Certain
			if p.Certain || w.Reason != "ErrImagePull" { // the first try
				p.State = StateFailed
			}
			return true
		}
	}
	if t := s.State.Terminated; t != nil && (t.ExitCode != 0 || s.Name != PrepareContainer) {
		p.State, p.Reason, p.Message, p.Container = StateFailed, t.Reason, ended(t), s.Name
		// The kubelet retries, but files that are rejected stay wrong.
		p.Certain = s.Name == PrepareContainer || strings.Contains(t.Message, contract.FilesMessage)
		// The kubelet may take long to report the back-off itself.
		if s.RestartCount >= crashes && t.FinishedAt.Sub(t.StartedAt.Time) < shortRun {
			p.Reason, p.Certain = crashLoop, true
		}
		return true
	}
	return false
}

func ended(t *corev1.ContainerStateTerminated) string {
	if t == nil {
		return ""
	}
	text := fmt.Sprintf("it ended with exit code %d", t.ExitCode)
	if t.Signal != 0 {
		text = fmt.Sprintf("it was killed by signal %d", t.Signal)
	}
	if t.Reason == "OOMKilled" {
		text = "it needed more memory than its limit"
	}
	if m := strings.TrimSpace(t.Message); m != "" {
		text += ": " + m
	}
	return text
}

// mountPatience is how long a volume may be missing before the node fails: the objects of
// one apply are created one after the other.
const mountPatience = 15 * time.Second

// isSetUp reports whether the Pod's volumes are mounted and its network is there: the kubelet
// pulls images after that. It is unknown where the kubelet does not say.
func isSetUp(pod *corev1.Pod) corev1.ConditionStatus {
	if c := condition(pod, corev1.PodReadyToStartContainers); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}

// mounts takes from events why the kubelet cannot set up volumes: no field of the Pod has
// it.
func (p *Progress) mounts(pod *corev1.Pod, events []corev1.Event) {
	setUp := isSetUp(pod)
	waits := p.State == StatePulling || p.State == StatePreparing && setUp == corev1.ConditionFalse
	// The kubelet mounts first and creates the sandbox then: an older event is over.
	if !waits || p.Reason != "" || setUp == corev1.ConditionTrue {
		return
	}
	e := last(events, "FailedMount", "FailedCreatePodSandBox", "FailedAttachVolume")
	if e == nil || slowKubelet(e.Message) {
		return
	}
	p.Reason, p.Message = e.Reason, e.Message
	switch {
	case e.Reason != "FailedMount":
	case mentions(e.Message, []string{"timed out", "deadline exceeded"}):
		p.Doubtful = true // the volume may still be attached
	case pod.Status.StartTime != nil && e.LastTimestamp.Sub(pod.Status.StartTime.Time) > mountPatience: // both by the worker's clock
		p.State, p.Certain = StateFailed, true
	}
}

// slowKubelet reports whether a mount waits for a ConfigMap or Secret that the kubelet of a
// busy worker has requested and not received yet. The kubelet retries by itself.
func slowKubelet(message string) bool {
	return strings.Contains(message, "failed to sync configmap cache: timed out") ||
		strings.Contains(message, "failed to sync secret cache: timed out") ||
		strings.HasSuffix(message, "not registered")
}

// last returns the last event with one of the reasons, nil for none.
func last(events []corev1.Event, reasons ...string) *corev1.Event {
	for i := len(events) - 1; i >= 0; i-- {
		if slices.Contains(reasons, events[i].Reason) {
			return &events[i]
		}
	}
	return nil
}

// noPullSecret is the reason of the kubelet's event for a missing Secret of
// imagePullSecrets. The kubelet pulls without it, and the pull's error does not name it.
const noPullSecret = "FailedToRetrieveImagePullSecret"

func (p *Progress) pullSecrets(events []corev1.Event) {
	if p.Reason != "ErrImagePull" && p.Reason != "ImagePullBackOff" {
		return
	}
	if e := last(events, noPullSecret); e != nil {
		p.Message += "; " + e.Message
	}
}
