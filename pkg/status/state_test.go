package status

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// The parts of a Pod's status that Of goes by.

func waiting(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func over(name string, code int32, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}}
}

// crashing is a container that waits for its next start after its last end.
func crashing(name string, code int32, reason string) corev1.ContainerStatus {
	s := waiting(name, "CrashLoopBackOff", "back-off 40s")
	s.RestartCount = 3
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}
	return s
}

// lost is a container whose last run ended for the loss of its network namespace.
func lost(s corev1.ContainerStatus) corev1.ContainerStatus {
	s.RestartCount = 3
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: contract.LostMessage}
	return s
}

func again(restarts int32, s corev1.ContainerStatus) corev1.ContainerStatus {
	s.RestartCount = restarts
	return s
}

func ran(d time.Duration, s corev1.ContainerStatus) corev1.ContainerStatus {
	t := s.State.Terminated
	t.StartedAt, t.FinishedAt = metav1.NewTime(created), metav1.NewTime(created.Add(d))
	return s
}

func notStarted(s corev1.ContainerStatus) corev1.ContainerStatus {
	s.Started = new(false)
	return s
}

var prepared = over(PrepareContainer, 0, "Completed", "")

type podChange func(*corev1.Pod)

func inits(list ...corev1.ContainerStatus) podChange {
	return func(p *corev1.Pod) { p.Status.InitContainerStatuses = list }
}

func devices(list ...corev1.ContainerStatus) podChange {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = list }
}

func with(t corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) podChange {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: status, Reason: reason, Message: message})
	}
}

var created = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// onWorker is a Pod that has a worker.
func onWorker(changes ...podChange) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "r1-1", CreationTimestamp: metav1.NewTime(created)}, Spec: corev1.PodSpec{NodeName: "n1"}}
	p.Status.StartTime = new(metav1.NewTime(created))
	for _, c := range changes {
		c(p)
	}
	return p
}

func event(reason, message string, after time.Duration) corev1.Event {
	return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(created.Add(after))}
}

func deployment(replicas int32, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "r1"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	for _, c := range changes {
		c(d)
	}
	return d
}

func refused(message string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message}}
	}
}

// noSpace is what containerd says of an image that it cannot unpack.
const noSpace = `failed to pull and unpack image "quay.io/frrouting/frr:10.2.1": failed to extract layer sha256:d7: write /var/lib/containerd/x: no space left on device: unknown`

func TestOf(t *testing.T) {
	going := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
	wired := inits(prepared, running(WireContainer))
	for name, c := range map[string]struct {
		d        *appsv1.Deployment
		pod      *corev1.Pod
		events   []corev1.Event
		state    State
		certain  bool
		doubtful bool
		cause    string // part of it; "-" for none
	}{
		"stopped":                 {d: deployment(0), state: StateStopped, cause: "-"},
		"stopped, evicted before": {d: deployment(0), pod: onWorker(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), state: StateStopped, cause: "-"},
		"being stopped":           {d: deployment(0), pod: onWorker(), state: StateTerminating, cause: "-"},
		"nothing known":           {state: StatePending, cause: "-"},
		"no Pod yet":              {d: deployment(1), state: StatePending, cause: "-"},
		"Pod Security":            {d: deployment(1, refused(`pods "r1-1" is forbidden: violates PodSecurity "baseline:latest"`)), state: StateFailed, doubtful: true, cause: "forbids privileged Pods"},
		"quota":                   {d: deployment(1, refused("exceeded quota: small")), state: StateFailed, doubtful: true, cause: "quota is used up (exceeded quota: small)"},
		"OpenShift":               {d: deployment(1, refused(`pods "r1-1" is forbidden: unable to validate against any security context constraint: [...]`)), state: StateFailed, doubtful: true, cause: "add-scc-to-user privileged -z c9s-node"},
		"quota of limits":         {d: deployment(1, refused("failed quota: q: must specify limits.cpu for: wire")), state: StateFailed, doubtful: true, cause: "LimitRange"},
		"another refusal":         {d: deployment(1, refused("admission webhook denied it")), state: StateFailed, doubtful: true, cause: "refuses the Pod"},
		"no worker yet":           {pod: &corev1.Pod{}, state: StatePending, cause: "-"},
		"unschedulable": {pod: func() *corev1.Pod {
			p := &corev1.Pod{}
			with(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available")(p)
			return p
		}(), state: StatePending, cause: "no worker can take it (0/3"},
		"going": {pod: onWorker(going, wired, devices(running("r1"))), state: StateTerminating, cause: "-"},
		"evicted": {pod: onWorker(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
		}), state: StateFailed, cause: "evicted it (low on memory)"},
		"failed, no word": {pod: onWorker(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), state: StateFailed, cause: "its Pod has failed"},
		"on its worker":   {pod: onWorker(), state: StatePulling, cause: "-"},
		"being made":      {pod: onWorker(inits(waiting(PrepareContainer, "PodInitializing", ""), waiting(WireContainer, "PodInitializing", "")), devices(waiting("r1", "PodInitializing", ""))), state: StatePulling, cause: "-"},
		"being set up":    {pod: onWorker(with(corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", ""), inits(waiting(PrepareContainer, "PodInitializing", ""))), state: StatePreparing, cause: "-"},
		"set up":          {pod: onWorker(with(corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", ""), inits(waiting(PrepareContainer, "PodInitializing", ""))), state: StatePulling, cause: "-"},
		"a mount, set up": {pod: onWorker(with(corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", "")), events: []corev1.Event{event("FailedMount", `secret "x" not found`, time.Minute)}, state: StateFailed, certain: true, cause: "a Secret that the Pod mounts is missing"},
		"laying out":      {pod: onWorker(inits(running(PrepareContainer), waiting(WireContainer, "PodInitializing", ""))), state: StatePreparing, cause: "-"},
		"namespace lost":  {pod: onWorker(inits(prepared, lost(waiting(WireContainer, "CrashLoopBackOff", "back-off 10s"))), devices(running("r1"))), state: StateDegraded, cause: "lost its network namespace"},
		"just lost":       {pod: onWorker(inits(prepared, over(WireContainer, 1, "Error", contract.LostMessage)), devices(running("r1"))), state: StateDegraded, cause: "lost its network namespace"},
		"lost and found":  {pod: onWorker(inits(prepared, lost(running(WireContainer))), devices(running("r1"))), state: StateBooting, cause: "-"},
		"lost and evicted": {pod: onWorker(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", `Usage of EmptyDir volume "c9s" exceeds the limit "512Mi". `
		}), state: StateFailed, cause: "had lost its network namespace"},
		"laid out":          {pod: onWorker(inits(prepared, waiting(WireContainer, "PodInitializing", ""))), state: StatePreparing, cause: "-"},
		"wiring":            {pod: onWorker(inits(prepared, notStarted(running(WireContainer)))), state: StateWiring, cause: "-"},
		"device being made": {pod: onWorker(wired, devices(waiting("r1", "ContainerCreating", ""))), state: StateStarting, cause: "-"},
		"one of two runs":   {pod: onWorker(wired, devices(running("sr1-a"), waiting("sr1-1", "ContainerCreating", ""))), state: StateStarting, cause: "-"},
		"booting":           {pod: onWorker(wired, devices(running("r1"))), state: StateBooting, cause: "-"},
		"ready":             {pod: onWorker(wired, devices(running("r1")), with(corev1.PodReady, corev1.ConditionTrue, "", "")), state: StateReady, cause: "-"},
		"host network":      {pod: onWorker(inits(prepared), devices(running("r1")), with(corev1.PodReady, corev1.ConditionTrue, "", "")), state: StateReady, cause: "-"},
		"first pull":        {pod: onWorker(wired, devices(waiting("r1", "ErrImagePull", "i/o timeout"))), state: StateStarting, doubtful: true, cause: "its image cannot be pulled (i/o timeout)"},
		"no such image":     {pod: onWorker(wired, devices(waiting("r1", "ErrImagePull", "manifest: not found"))), state: StateFailed, certain: true, cause: "cannot be pulled"},
		"pull denied":       {pod: onWorker(wired, devices(waiting("r1", "ErrImagePull", "unauthorized"))), state: StateFailed, certain: true, cause: "unauthorized"},
		"pulls again":       {pod: onWorker(wired, devices(waiting("r1", "ImagePullBackOff", "Back-off pulling image"))), state: StateFailed, doubtful: true, cause: "its image cannot be pulled"},
		"pulls too often":   {pod: onWorker(wired, devices(waiting("r1", "ErrImagePull", "pull QPS exceeded"))), state: StateStarting, doubtful: true, cause: "cannot be pulled"},
		"pulls again, why":  {pod: onWorker(wired, devices(waiting("r1", "ImagePullBackOff", `Back-off pulling image "frr:1": ErrImagePull: rpc error: 429 Too Many Requests`))), state: StateFailed, doubtful: true, cause: "cannot be pulled"},
		"pulls in vain":     {pod: onWorker(wired, devices(waiting("r1", "ImagePullBackOff", `Back-off pulling image "frr:1": ErrImagePull: frr:1: not found`))), state: StateFailed, certain: true, cause: "cannot be pulled"},
		"a clock set back":  {pod: onWorker(wired, devices(waiting("r1", "CreateContainerError", `failed to reserve container name "r1_r1-1_demo_0_1": name "r1_r1-1_demo_0_1" is reserved for "9f67"`))), state: StateFailed, doubtful: true, cause: "replace the Pod with 'c9s restart'"},
		"a busy worker":     {pod: onWorker(wired, devices(waiting("r1", "CreateContainerError", "context deadline exceeded"))), state: StateFailed, doubtful: true, cause: "the container cannot be made"},
		"no such program":   {pod: onWorker(wired, devices(waiting("r1", "RunContainerError", "exec: \"/x\": no such file or directory"))), state: StateFailed, certain: true, cause: "the container cannot be started"},
		"a volume attaches": {pod: onWorker(), events: []corev1.Event{event("FailedMount", "Unable to attach or mount volumes: unmounted volumes=[data]: timed out waiting for the condition", time.Minute)}, state: StatePulling, doubtful: true, cause: "a volume cannot be mounted"},
		"full disk, first":  {pod: onWorker(wired, devices(waiting("r1", "ErrImagePull", noSpace))), state: StateFailed, certain: true, cause: "the worker's disk is full: remove what fills it"},
		"full disk, again":  {pod: onWorker(wired, devices(waiting("r1", "ImagePullBackOff", "Back-off pulling image \"frr:1\": ErrImagePull: "+noSpace))), state: StateFailed, certain: true, cause: "the worker's disk is full"},
		"full, c9s image":   {pod: onWorker(inits(waiting(WireContainer, "ErrImagePull", noSpace))), state: StateFailed, certain: true, cause: "the worker's disk is full"},
		"full, container":   {pod: onWorker(wired, devices(waiting("r1", "CreateContainerError", "mkdir /var/lib/containerd/x: no space left on device"))), state: StateFailed, certain: true, cause: "the worker's disk is full"},
		"full, evicted": {pod: onWorker(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: ephemeral-storage. Threshold quantity: 1073741824, available: 12Ki. "
		}), state: StateFailed, cause: "the worker's disk is full"},
		"full, refused": {pod: onWorker(func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "Pod was rejected: The node had condition: [DiskPressure]. "
		}), state: StateFailed, cause: "the worker's disk is full"},
		"no pull secret": {pod: onWorker(wired, devices(waiting("r1", "ImagePullBackOff", "pull access denied"))),
			events: []corev1.Event{event("FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (registry); attempting to pull the image may not succeed.", time.Second), event("BackOff", "x", time.Second)},
			state:  StateFailed, certain: true, cause: "its image cannot be pulled, and a Secret with the registry's credentials (imagePullSecrets) is not in the namespace: make it with 'kubectl create secret docker-registry' (pull access denied; Unable to retrieve some image pull secrets (registry)"},
		"c9s image":          {pod: onWorker(inits(waiting(PrepareContainer, "ImagePullBackOff", "no such host"))), state: StateFailed, certain: true, cause: "the c9s image cannot be pulled; --image names another"},
		"missing Secret":     {pod: onWorker(wired, devices(waiting("r1", "CreateContainerConfigError", `secret "s" not found`))), state: StateFailed, certain: true, cause: `is missing (secret "s" not found)`},
		"bad files":          {pod: onWorker(inits(over(PrepareContainer, 1, "Error", "digest differs"))), state: StateFailed, certain: true, cause: "its files cannot be laid out (it ended with exit code 1: digest differs)"},
		"bad files, sidecar": {pod: onWorker(inits(over(WireContainer, 1, "Error", contract.FilesMessage+": node R1: a: digest"))), state: StateFailed, certain: true, cause: "its files cannot be laid out (it ended with exit code 1: " + contract.FilesMessage + ": node R1: a: digest)"},
		"sidecar ends once":  {pod: onWorker(inits(over(WireContainer, 1, "Error", ""))), state: StateFailed, cause: "its sidecar ends (it ended with exit code 1)"},
		"wiring, no prepare": {pod: onWorker(inits(notStarted(running(WireContainer)))), state: StateWiring, cause: "-"},
		"ready, no prepare":  {pod: onWorker(inits(running(WireContainer)), devices(running("r1")), with(corev1.PodReady, corev1.ConditionTrue, "", "")), state: StateReady, cause: "-"},
		"sidecar crashes":    {pod: onWorker(inits(prepared, crashing(WireContainer, 2, "Error"))), state: StateFailed, certain: true, cause: "its sidecar ends (it ended with exit code 2)"},
		"device crashes":     {pod: onWorker(wired, devices(crashing("r1", 1, "Error"))), state: StateFailed, certain: true, cause: "ends again and again (it ended with exit code 1)"},
		"device out of room": {pod: onWorker(wired, devices(crashing("r1", 137, "OOMKilled"))), state: StateFailed, certain: true, cause: "more memory than its limit"},
		"device ended again": {pod: onWorker(wired, devices(again(1, over("r1", 3, "Error", "")))), state: StateFailed, cause: "exit code 3"},
		"and again":          {pod: onWorker(wired, devices(again(2, over("r1", 3, "Error", "")))), state: StateFailed, certain: true, cause: "ends again and again (it ended with exit code 3)"},
		"and after weeks":    {pod: onWorker(wired, devices(again(2, ran(time.Hour, over("r1", 3, "Error", ""))))), state: StateFailed, cause: "exit code 3"},
		"device has ended":   {pod: onWorker(wired, devices(over("r1", 0, "Completed", ""))), state: StateFailed, cause: "exit code 0"},
		"mount, just now":    {pod: onWorker(), events: []corev1.Event{event("FailedMount", `secret "x" not found`, 2*time.Second)}, state: StatePulling, cause: "a Secret that the Pod mounts is missing: apply the rendered secrets/"},
		"mount, for long":    {pod: onWorker(), events: []corev1.Event{event("FailedMount", `secret "x" not found`, time.Minute)}, state: StateFailed, certain: true, cause: "a Secret that the Pod mounts is missing"},
		"no KVM":             {pod: onWorker(), events: []corev1.Event{event("FailedMount", `hostPath type check failed: /dev/kvm is not a character device`, time.Minute)}, state: StateFailed, certain: true, cause: "nested virtualisation"},
		"mounted since": {pod: onWorker(with(corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", "")),
			events: []corev1.Event{event("FailedMount", `secret "x" not found`, time.Minute)}, state: StatePulling, cause: "-"},
		"no sandbox": {pod: onWorker(), events: []corev1.Event{event("FailedCreatePodSandBox", "no IP addresses", time.Minute)}, state: StatePulling, cause: "no IP addresses"},
		"a slow kubelet": {pod: onWorker(), events: []corev1.Event{event("FailedMount", `MountVolume.SetUp failed for volume "links" : failed to sync configmap cache: timed out waiting for the condition`, time.Minute)},
			state: StatePulling, cause: "-"},
		"a kubelet that just started": {pod: onWorker(), events: []corev1.Event{event("FailedMount", `MountVolume.SetUp failed for volume "key" : object "demo"/"c9s-wire-key" not registered`, time.Minute)},
			state: StatePulling, cause: "-"},
		"the latest event": {pod: onWorker(), events: []corev1.Event{event("FailedMount", "old", 0), event("FailedMount", "new", time.Second), event("BackOff", "x", time.Second)}, state: StatePulling, cause: "new"},
		"an old event":     {pod: onWorker(wired, devices(running("r1"))), events: []corev1.Event{event("FailedMount", "x", time.Minute)}, state: StateBooting, cause: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(c.d, c.pod, c.events)
			if got.State != c.state || got.Certain != c.certain || got.Doubtful != c.doubtful {
				t.Errorf("state %s, certain %v, doubtful %v; want %s, %v, %v", got.State, got.Certain, got.Doubtful, c.state, c.certain, c.doubtful)
			}
			if cause := got.Cause(); c.cause == "-" && cause != "" || c.cause != "-" && !strings.Contains(cause, c.cause) {
				t.Errorf("cause %q, want %q", cause, c.cause)
			}
		})
	}
}

func TestRestarts(t *testing.T) {
	one, two := running("sr1-a"), running("sr1-1")
	one.RestartCount, two.RestartCount = 1, 2
	first, second := metav1.NewTime(created), metav1.NewTime(created.Add(time.Minute))
	one.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: second}
	two.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: first}
	side := running(WireContainer)
	side.RestartCount = 9
	got := Of(nil, onWorker(inits(prepared, side), devices(one, two)), nil)
	if got.Restarts != 3 || !got.LastExit.Equal(second.Time) {
		t.Errorf("restarts %d, last exit %s: those of devices count", got.Restarts, got.LastExit)
	}
}

func TestNewer(t *testing.T) {
	at := func(seconds int, going bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created.Add(time.Duration(seconds) * time.Second))}}
		if going {
			p.DeletionTimestamp = new(metav1.Now())
		}
		return p
	}
	for name, c := range map[string]struct {
		a, b *corev1.Pod
		want bool
	}{
		"younger":         {at(2, false), at(1, false), true},
		"older":           {at(1, false), at(2, false), false},
		"older, not gone": {at(1, false), at(2, true), true},
		"both going":      {at(2, true), at(1, true), true},
	} {
		if got := Newer(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
