package podnet

import (
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/link"
)

// faults begins and ends the faults of links.
type faults struct {
	// seen is when each fault was first seen, by this Pod's interfaces.
	seen map[link.Key]seenFault
	// begun is set once a document has been read.
	begun bool
}

type seenFault struct {
	fault contract.Fault
	began time.Time
}

// resolve returns interfaces with the impairments that are in effect in place of faults, and when
// that changes: the zero time if it does not.
//
// A fault lasts from the time at which its sidecar sees it, so that the clocks of its author and
// of the worker need not agree. They are compared only after the start of a sidecar, for a fault
// that may have begun before: it then ends by the author's clock, and never lasts longer than
// its length from then on.
func (f *faults) resolve(want []contract.Interface, now time.Time) (out []contract.Interface, next time.Time) {
	out = slices.Clone(want)
	seen := map[link.Key]seenFault{}
	for i := range out {
		q, ok := out[i].Quality()
		if !ok || q.Fault == nil {
			continue
		}
		key := link.KeyOf(&out[i])
		s, known := f.seen[key]
		if !known || !s.fault.Began.Equal(q.Fault.Began) {
			s.began = now
			if !f.begun && q.Fault.Began.Before(now) {
				s.began = q.Fault.Began
			}
		}
		s.fault = *q.Fault
		seen[key] = s
		on, changes := s.fault.At(now.Sub(s.began))
		if changes > 0 {
			if at := s.began.Add(changes); next.IsZero() || at.Before(next) {
				next = at
			}
		}
		if on {
			q.Impairment = &s.fault.Impairment
		} else if q.Impairment == nil && out[i].Local != nil {
			// An interface that leads to the same Pod is recreated when its link is no longer
			// impaired at all. That is not for the end of a fault.
			q.Impairment = &contract.Impairment{}
		}
		out[i].SetQuality(contract.Quality{Impairment: q.Impairment})
	}
	f.seen, f.begun = seen, true
	return out, next
}
