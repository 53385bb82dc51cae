package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// look is how often a wait looks at a lab of which it hears nothing new.
const look = 500 * time.Millisecond

// How long a wait watches a failure before it returns.
const (
	// gather is the time to collect other failures, so that they are reported together. It is longer
	// while devices are about to start, because they may fail next.
	gather     = 2 * time.Second
	gatherMost = 10 * time.Second
	// unschedulable is how long a Pod may stay unscheduled: the scheduler may be
	// waiting for old Pods to stop.
	unschedulable = 30 * time.Second
	// doubt is how long something may fail that the kubelet retries.
	doubt = 2 * time.Minute
	// refused is how long the API server may keep rejecting a Pod. The rejection may date
	// from before this wait, until the ReplicaSet controller retries.
	// Many rejections take longer: Kubernetes' controllers send 20 requests per second.
	refused     = 5 * time.Second
	refusedEach = 150 * time.Millisecond
	// A device that exits at once is ready for a moment each time it is
	// restarted, so a Pod counts as ready only after it has run for a while.
	steady      = 1500 * time.Millisecond
	steadyAgain = 12 * time.Second
	// deleted is how long a Deployment may be absent. A wait starts after all have been
	// applied, so if one stays absent, another client has deleted it.
	deleted = 10 * time.Second
)

// Failure describes a Pod that cannot become ready, with the end of the log of the
// container that failed.
type Failure struct {
	PodProgress
	Log string
}

// Error returns the node, the cause and, if known, the remedy.
func (f Failure) Error() string {
	text := "node " + strings.Join(f.Nodes, ", ") + status.At(f.Source)
	if f.Worker != "" {
		text += " on worker " + f.Worker
	}
	text += ": " + string(f.State)
	if cause := f.Cause(); cause != "" {
		text += ", " + cause
	}
	if f.Log != "" {
		text += "\n    | " + strings.ReplaceAll(strings.TrimRight(f.Log, "\n"), "\n", "\n    | ")
	}
	return text
}

// WaitReady waits until every Pod of the lab is ready. tell is called with each
// new state. It returns early if a Pod cannot become ready: the error
// is then a join of Failures.
func (c *Client) WaitReady(ctx context.Context, l *Lab, tell func([]PodProgress)) error {
	namespace, lab := l.Namespace, l.Name
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w, err := c.Watch(watching, namespace, lab)
	if err != nil {
		return err
	}
	var (
		firstFailure time.Time
		missingSince time.Time
		seen         = newSightings()
	)
	for {
		progress := w.Progress()
		for i := range progress {
			progress[i].Source = l.Line("Deployment/"+progress[i].Pod, progress[i].Source)
		}
		if tell != nil {
			tell(progress)
		}
		now := time.Now()
		failed, ready := seen.judge(progress, now)
		missing := l.pods() - len(progress)
		if missing <= 0 {
			missingSince = time.Time{}
		} else if missingSince.IsZero() {
			missingSince = time.Now()
		} else if time.Since(missingSince) >= deleted {
			return fmt.Errorf("lab %s: another client changed it; %d of its %d Deployments no longer exist", lab, missing, l.pods())
		}
		switch {
		case ready && missing <= 0:
			return nil
		case len(failed) == 0:
			firstFailure = time.Time{}
		case firstFailure.IsZero():
			firstFailure = time.Now()
		case time.Since(firstFailure) >= gatherFor(progress):
			return c.failures(ctx, namespace, failed)
		}
		select {
		case <-w.Changed():
		case <-time.After(seen.next(now)):
		case <-ctx.Done():
			return c.unfinished(namespace, lab, progress, ctx.Err())
		}
	}
}

// gatherFor returns how long after the first failure to wait for others.
func gatherFor(progress []PodProgress) time.Duration {
	for _, p := range progress {
		switch p.State {
		case status.StatePulling, status.StatePreparing, status.StateWiring, status.StateStarting:
			return gatherMost
		}
	}
	return gather
}

// sightings hold what a wait has seen of Pods, by the name of their Deployment.
type sightings struct {
	doubted map[string]doubted
	running map[string]run
	// settles is when the last Pod of those that are ready will have been so for long enough.
	settles time.Time
}

// doubted is a failure that may resolve itself, and when it was first seen.
type doubted struct {
	reason string
	since  time.Time
}

// run is one start of a Pod's devices and when it was first seen; again is set if they
// exited before during this wait.
type run struct {
	pod      string
	restarts int
	since    time.Time
	again    bool
}

func newSightings() *sightings {
	return &sightings{doubted: map[string]doubted{}, running: map[string]run{}}
}

// persists reports whether a failure that may resolve itself has lasted too long; refusals is how
// many rejected Pods wait for a retry. The kubelet alternates its reasons for one failing pull.
func (s *sightings) persists(p PodProgress, refusals int, now time.Time) bool {
	limit := doubt
	switch {
	case p.State == status.StatePending && p.Reason == corev1.PodReasonUnschedulable:
		limit = unschedulable
	case !p.Doubtful:
		delete(s.doubted, p.Pod)
		return false
	case p.refused():
		limit = refused + time.Duration(refusals)*refusedEach
	}
	reason := p.PodName + " " + p.Reason
	if p.Reason == "ImagePullBackOff" {
		reason = p.PodName + " ErrImagePull"
	}
	d := s.doubted[p.Pod]
	if d.reason != reason {
		d = doubted{reason, now}
		s.doubted[p.Pod] = d
	}
	return now.Sub(d.since) > limit
}

// judge returns the Pods that have failed, and whether all Pods are ready and settled.
func (s *sightings) judge(progress []PodProgress, now time.Time) (failed []PodProgress, ready bool) {
	ready = true
	s.settles = time.Time{}
	refusals := countRefused(progress)
	for _, p := range progress {
		p.Certain = s.persists(p, refusals, now) || p.Certain
		if p.Certain {
			failed = append(failed, p)
		}
		ready = s.settled(p, now) && ready
	}
	return failed, ready
}

// refused reports whether the API server has rejected the Pod.
func (p PodProgress) refused() bool { return p.PodName == "" && p.Doubtful }

// countRefused returns how many Pods the API server has rejected.
func countRefused(progress []PodProgress) int {
	n := 0
	for _, p := range progress {
		if p.refused() {
			n++
		}
	}
	return n
}

// settled reports whether a Pod is stopped, or has been ready long enough.
// Exits before this wait are known only by the worker's clock, which may be wrong.
func (s *sightings) settled(p PodProgress, now time.Time) bool {
	r := s.running[p.Pod]
	if r.pod != p.PodName {
		r = run{pod: p.PodName, restarts: p.Restarts}
	}
	if r.restarts != p.Restarts {
		r = run{pod: p.PodName, restarts: p.Restarts, again: true}
	}
	switch {
	case p.State != status.StateBooting && p.State != status.StateDegraded && p.State != status.StateReady:
		r.since = time.Time{}
	case r.since.IsZero():
		r.since = now
	}
	s.running[p.Pod] = r
	least := steady
	if r.again || !p.LastExit.IsZero() && now.Sub(p.LastExit) <= steadyAgain {
		least = steadyAgain
	}
	if p.State == status.StateReady && !p.Unsettled && r.since.Add(least).After(s.settles) {
		s.settles = r.since.Add(least)
	}
	return !p.Unsettled && (p.State == status.StateStopped || p.State == status.StateReady && now.Sub(r.since) >= least)
}

// next returns how long after now to judge again at the latest.
func (s *sightings) next(now time.Time) time.Duration {
	if left := s.settles.Sub(now); left > 0 && left < look {
		return left
	}
	return look
}

// pods is how many Pods of nodes the lab has, including stopped ones.
func (l *Lab) pods() int { return l.deployments(contract.ComponentNode) }

// hasController reports whether the lab has a controller.
func (l *Lab) hasController() bool { return l.deployments(contract.ComponentController) > 0 }

// deployments is how many Deployments the lab has of a component.
func (l *Lab) deployments(component string) int {
	n := 0
	for _, u := range l.objects {
		if u.GetKind() == "Deployment" && u.GetLabels()[contract.LabelComponent] == component {
			n++
		}
	}
	return n
}

// failures reads the logs of the failed containers.
func (c *Client) failures(ctx context.Context, namespace string, failed []PodProgress) error {
	var errs []error
	short := ""
	if slices.ContainsFunc(failed, homeless) {
		short = c.shortOfRoom(ctx)
	}
	for _, p := range failed {
		if homeless(p) {
			p.Message += short
		}
		f := Failure{PodProgress: p}
		if p.PodName != "" && p.Container != "" {
			f.Log = c.logTail(ctx, namespace, p.PodName, p.Container)
		}
		errs = append(errs, f)
	}
	return errors.Join(errs...)
}

func homeless(p PodProgress) bool { return p.Reason == corev1.PodReasonUnschedulable }

// shortOfRoom returns the workers that accept no Pods because their disk, memory or
// process table is nearly full, which the scheduler's message omits. It returns
// nothing if the user may not list workers.
func (c *Client) shortOfRoom(ctx context.Context) string {
	list, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	return pressures(list.Items)
}

func pressures(workers []corev1.Node) string {
	text := ""
	for i := range workers {
		for _, c := range workers[i].Status.Conditions {
			pressed := c.Type == corev1.NodeDiskPressure || c.Type == corev1.NodeMemoryPressure || c.Type == corev1.NodePIDPressure
			if pressed && c.Status == corev1.ConditionTrue {
				text += fmt.Sprintf("; worker %s has %s: %s", workers[i].Name, c.Type, c.Message)
			}
		}
	}
	return text
}

// logLines and logBytes limit the log that a failure shows; a device controls its size.
const (
	logLines = 10
	logBytes = 16 << 10
)

// logTail returns the end of a container's log, or of its previous run if the current one has
// none.
func (c *Client) logTail(ctx context.Context, namespace, pod, container string) string {
	lines, size := int64(logLines), int64(logBytes)
	for _, previous := range []bool{false, true} {
		data, err := c.Typed.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, TailLines: &lines, LimitBytes: &size, Previous: previous}).DoRaw(ctx)
		if err == nil && len(data) > 0 {
			return string(data)
		}
	}
	return ""
}

// unfinished returns the error of a wait that timed out or was interrupted: which nodes are not ready.
func (c *Client) unfinished(namespace, lab string, progress []PodProgress, why error) error {
	errs := []error{fmt.Errorf("the lab is not ready yet: %w", why)}
	if errors.Is(why, context.Canceled) {
		errs[0] = errors.New("interrupted; the objects that were applied stay, and you can run the same command again to continue")
	}
	states := sets.New(status.StateReady, status.StateStopped)
	reasons := c.reasons(namespace, lab)
	for _, p := range progress {
		if !states.Has(p.State) {
			if p.Reason == "" {
				p.Reason = reasons[p.Pod]
			}
			errs = append(errs, Failure{PodProgress: p})
		}
	}
	return errors.Join(errs...)
}

// reasons asks the sidecars why Pods are not ready, even after the context of the wait
// has ended.
func (c *Client) reasons(namespace, lab string) map[string]string {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	out := map[string]string{}
	s, err := c.Status(ctx, Found{Name: lab, Namespace: namespace}, true)
	if err != nil {
		return out
	}
	for _, n := range s.Nodes {
		if n.Reason != "" {
			out[n.Pod] = n.Reason
		}
	}
	return out
}

// WaitPods waits until the Pods of some Deployments are ready. It ignores
// Pods that are terminating.
func (c *Client) WaitPods(ctx context.Context, namespace, lab string, names []string) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w, err := c.Watch(watching, namespace, lab)
	if err != nil {
		return err
	}
	wanted := sets.New(names...)
	seen := newSightings()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		var left []PodProgress
		progress := w.Progress()
		refusals := countRefused(progress)
		for _, p := range progress {
			if !wanted.Has(p.Pod) || p.State == status.StateReady && !p.Unsettled {
				continue
			}
			if seen.persists(p, refusals, time.Now()) || p.Certain {
				return c.failures(ctx, namespace, []PodProgress{p})
			}
			left = append(left, p)
		}
		if len(left) == 0 {
			return nil
		}
		select {
		case <-w.Changed():
		case <-tick.C:
		case <-ctx.Done():
			return c.unfinished(namespace, lab, left, ctx.Err())
		}
	}
}
