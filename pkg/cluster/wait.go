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

// How long a failure is looked at before a wait ends.
const (
	// gather lets other failures come in, so that they are told together: longer
	// while devices are about to start, of which the next word may be a failure.
	gather     = 2 * time.Second
	gatherMost = 10 * time.Second
	// unschedulable is how long no worker may be found: the scheduler may be
	// waiting for the end of old Pods.
	unschedulable = 30 * time.Second
	// doubt is how long something may fail that the kubelet tries again.
	doubt = 2 * time.Minute
	// refused is how long the API server's refusal of a Pod may stand: it may be one
	// from before this wait, until the Pod is asked for again.
	// More of them take longer: Kubernetes' controllers send 20 requests a second.
	refused     = 5 * time.Second
	refusedEach = 150 * time.Millisecond
	// A device that ends at once is ready for a moment, and again each time it is
	// started anew: ready is what has run for a while.
	steady      = 1500 * time.Millisecond
	steadyAgain = 12 * time.Second
	// deleted is how long a Deployment may be absent. A wait begins after all have been
	// applied, so one that stays absent was deleted by somebody else.
	deleted = 10 * time.Second
)

// Failure is a Pod that will not get ready, with the end of the log of the
// container that broke.
type Failure struct {
	PodProgress
	Log string
}

// Error is what a user needs to know: node, cause, remedy where there is one.
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
// new state. It returns early when a Pod certainly will not get ready: the error
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
		tick         = time.NewTicker(500 * time.Millisecond)
	)
	defer tick.Stop()
	for {
		progress := w.Progress()
		if tell != nil {
			tell(progress)
		}
		failed, ready := seen.judge(progress, time.Now())
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
		case <-tick.C:
		case <-ctx.Done():
			return c.unfinished(namespace, lab, progress, ctx.Err())
		}
	}
}

// gatherFor is how long after a first failure others are waited for.
func gatherFor(progress []PodProgress) time.Duration {
	for _, p := range progress {
		switch p.State {
		case status.StatePulling, status.StatePreparing, status.StateWiring, status.StateStarting:
			return gatherMost
		}
	}
	return gather
}

// sightings are what a wait remembers of Pods, by the name of their Deployment.
type sightings struct {
	doubted map[string]doubted
	running map[string]run
}

// doubted is what may pass by itself, and since when it was seen.
type doubted struct {
	reason string
	since  time.Time
}

// run is one start of a Pod's devices, and when it was first seen; again that they
// ended before, while they were looked at.
type run struct {
	pod      string
	restarts int
	since    time.Time
	again    bool
}

func newSightings() *sightings {
	return &sightings{doubted: map[string]doubted{}, running: map[string]run{}}
}

// lasts tells that what may pass by itself has gone on for too long; refusals is how
// many Pods wait to be asked for again. The kubelet's words for one pull alternate.
func (s *sightings) lasts(p PodProgress, refusals int, now time.Time) bool {
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

// judge finds the Pods that certainly failed, and whether all are ready to stay.
func (s *sightings) judge(progress []PodProgress, now time.Time) (failed []PodProgress, ready bool) {
	ready = true
	refusals := countRefused(progress)
	for _, p := range progress {
		p.Certain = s.lasts(p, refusals, now) || p.Certain
		if p.Certain {
			failed = append(failed, p)
		}
		ready = s.stays(p, now) && ready
	}
	return failed, ready
}

// refused tells that the API server has refused the Pod.
func (p PodProgress) refused() bool { return p.PodName == "" && p.Doubtful }

// countRefused is how many Pods the API server has refused.
func countRefused(progress []PodProgress) int {
	n := 0
	for _, p := range progress {
		if p.refused() {
			n++
		}
	}
	return n
}

// stays tells that a Pod is stopped, or ready and has run long enough to be believed.
// The worker's clock tells of ends before this wait; it may be wrong.
func (s *sightings) stays(p PodProgress, now time.Time) bool {
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
	return !p.Unsettled && (p.State == status.StateStopped || p.State == status.StateReady && now.Sub(r.since) >= least)
}

// pods is how many Pods the lab has, stopped ones among them.
func (l *Lab) pods() int {
	n := 0
	for _, u := range l.objects {
		if u.GetKind() == "Deployment" && u.GetLabels()[contract.LabelComponent] == contract.ComponentNode {
			n++
		}
	}
	return n
}

// failures asks for the logs of what broke.
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

// shortOfRoom tells of workers that take no Pod because their disk, memory or
// process table is nearly full, which the scheduler's word does not say. It says
// nothing where the user may not see workers.
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

// logLines and logBytes bound what a failure shows of a log: a device writes it.
const (
	logLines = 10
	logBytes = 16 << 10
)

// logTail is the end of a container's log, of its last run if the present one has
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

// unfinished is the end of a wait by time or interrupt: who was not ready.
func (c *Client) unfinished(namespace, lab string, progress []PodProgress, why error) error {
	errs := []error{fmt.Errorf("the lab is not ready yet: %w", why)}
	if errors.Is(why, context.Canceled) {
		errs[0] = errors.New("interrupted; what was applied goes on, and the same command goes on from there")
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

// reasons asks the sidecars why Pods are not ready, after the wait's own context
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

// WaitPods waits until the Pods of some Deployments of a lab are ready, and not
// those that are going.
func (c *Client) WaitPods(ctx context.Context, namespace, lab string, names []string) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w, err := c.Watch(watching, namespace, lab)
	if err != nil {
		return err
	}
	wanted := sets.New(names...)
	seen := newSightings()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		var left []PodProgress
		progress := w.Progress()
		refusals := countRefused(progress)
		for _, p := range progress {
			if !wanted.Has(p.Pod) || p.State == status.StateReady && !p.Unsettled {
				continue
			}
			if seen.lasts(p, refusals, time.Now()) || p.Certain {
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
