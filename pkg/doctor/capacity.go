package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// room is what a worker has left.
type room struct {
	worker *corev1.Node
	left   corev1.ResourceList
}

// checkCapacity puts the lab's Pods on the workers one by one, the largest first,
// each where the most memory is left: a lower bound of what the scheduler can do,
// close enough to tell a lab that is too large.
func checkCapacity(f Facts, n Needs) []Check {
	if n.Lab == "" || f.WorkersErr != nil {
		return nil
	}
	const name = "capacity"
	rooms := roomsOf(f, n)
	pods := slices.Clone(n.Pods)
	size := func(p Pod, r corev1.ResourceName) int64 { q := requests(p)[r]; return q.MilliValue() }
	slices.SortStableFunc(pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(size(b, corev1.ResourceMemory), size(a, corev1.ResourceMemory)), cmp.Compare(size(b, corev1.ResourceCPU), size(a, corev1.ResourceCPU)))
	})
	var without []string
	lacking := map[corev1.ResourceName]bool{}
	total := corev1.ResourceList{}
	for _, p := range pods {
		wanted := requests(p)
		add(total, wanted)
		if !slices.ContainsFunc(rooms, func(r room) bool { return mayLand(&p.Spec, r.worker) }) {
			continue // told by the workers' check
		}
		if place(rooms, p, wanted, lacking) {
			continue
		}
		without = append(without, p.Nodes...)
	}
	c := Check{Name: name, Result: OK, Found: fmt.Sprintf("requests of %s: %s; enough is free", diag.Count(len(pods), "Pod"), amounts(total))}
	switch {
	case len(rooms) == 0 && len(pods) > 0:
		return nil // told by the workers' check
	case len(without) > 0:
		var what []string
		for r := range lacking {
			what = append(what, string(r))
		}
		slices.Sort(what)
		c.Result = Problem
		c.Found = fmt.Sprintf("requests of %s: %s; not enough is free (%s) for %s", diag.Count(len(pods), "Pod"), amounts(total), strings.Join(what, ", "), few(without))
		c.Remedy = "add workers, remove other labs (c9s labs), or lower the requests in the policy file (resources)"
	case f.PodsErr != nil:
		c.Result = Warning
		c.Found = fmt.Sprintf("requests of %s: %s; the workers have that in total, but the use by others is unknown", diag.Count(len(pods), "Pod"), amounts(total))
	}
	return []Check{c}
}

// roomsOf is what the workers where the lab may land have left.
func roomsOf(f Facts, n Needs) []room {
	var out []room
	for _, w := range landing(f, n) {
		left := corev1.ResourceList{}
		for name, q := range w.Status.Allocatable {
			left[name] = q.DeepCopy()
		}
		for i := range f.Pods {
			p := &f.Pods[i]
			if p.Spec.NodeName == w.Name && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
				take(left, withPod(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})))
			}
		}
		out = append(out, room{w, left})
	}
	return out
}

func requests(p Pod) corev1.ResourceList {
	return withPod(resourcehelper.PodRequests(&corev1.Pod{Spec: p.Spec}, resourcehelper.PodResourcesOptions{}))
}

// withPod counts the Pod itself, of which a worker takes only so many.
func withPod(r corev1.ResourceList) corev1.ResourceList {
	r[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return r
}

// place takes a Pod's room from the worker with the most memory left. Where none
// has enough, lacking gets what is missing.
func place(rooms []room, p Pod, wanted corev1.ResourceList, lacking map[corev1.ResourceName]bool) bool {
	var best *room
	missing := map[corev1.ResourceName]bool{}
	for i := range rooms {
		r := &rooms[i]
		if !mayLand(&p.Spec, r.worker) {
			continue
		}
		fits := true
		for name, q := range wanted {
			if left := r.left[name]; left.Cmp(q) < 0 {
				fits, missing[name] = false, true
			}
		}
		if fits && (best == nil || r.left.Memory().Cmp(*best.left.Memory()) > 0) {
			best = r
		}
	}
	if best == nil {
		for name := range missing {
			lacking[name] = true
		}
		return false
	}
	take(best.left, wanted)
	return true
}

func take(from, what corev1.ResourceList) {
	for name, q := range what {
		left := from[name]
		left.Sub(q)
		from[name] = left
	}
}

func add(to, what corev1.ResourceList) {
	for name, q := range what {
		sum := to[name]
		sum.Add(q)
		to[name] = sum
	}
}

func amounts(r corev1.ResourceList) string {
	return fmt.Sprintf("%.2f CPUs and %.1f GiB of memory", float64(r.Cpu().MilliValue())/1000, float64(r.Memory().Value())/(1<<30))
}
