package doctor

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A worker's clock that is off is named; one whose kubelet is silent is not judged by its
// last word.
func TestClocks(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for name, c := range map[string]struct {
		server  time.Time
		renewed map[string]time.Time
		want    []expect
	}{
		"right":             {now, map[string]time.Time{"n1": now.Add(-9 * time.Second), "n2": now.Add(2 * time.Second)}, nil},
		"renewed too late":  {now, map[string]time.Time{"n1": now.Add(-45 * time.Second)}, nil},
		"cannot be read":    {now, nil, nil},
		"server not known":  {time.Time{}, map[string]time.Time{"n1": now}, nil},
		"ten minutes ahead": {now, map[string]time.Time{"n1": now, "n2": now.Add(10 * time.Minute)}, []expect{{"clocks", Warning, "that of n2 is about 10m0s ahead"}}},
		"both":              {now, map[string]time.Time{"n1": now.Add(-10 * time.Minute), "n2": now.Add(10 * time.Minute)}, []expect{{"clocks", Warning, "that of n1 is about 10m0s behind, that of n2"}}},
		"a silent kubelet":  {now, map[string]time.Time{"n3": now.Add(-time.Hour)}, nil},
	} {
		f := good()
		f.Workers = append(f.Workers, worker("n3", func(w *corev1.Node) { w.Status.Conditions[0].Status = corev1.ConditionUnknown }))
		f.Clocks = Clocks{Server: c.server, Renewed: c.renewed}
		t.Run(name, func(t *testing.T) { demand(t, checkClocks(f, Any()), c.want) })
	}
}

func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		found *Policies
		want  []expect
	}{
		"not probed":   {nil, nil},
		"enforced":     {&Policies{Enforced: true}, []expect{{"network policies", OK, "enforces them"}}},
		"not enforced": {&Policies{}, []expect{{"network policies", Warning, "does not enforce them: every Pod of the cluster"}}},
		"not known":    {&Policies{Err: errors.New("no image")}, []expect{{"network policies", Warning, "is not known: no image"}}},
	} {
		f := good()
		f.Policies = c.found
		t.Run(name, func(t *testing.T) { demand(t, checkPolicies(f, Any()), c.want) })
	}
}
