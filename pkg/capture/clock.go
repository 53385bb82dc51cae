package capture

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Shift is what is added to the times of a Pod's frames to have them by the clock of the
// reference, and how wrong that may be.
type Shift struct {
	Offset, Error time.Duration
	// Known is unset where nothing relates the two clocks.
	Known bool
	// How says how it is known.
	How string
}

// Align returns the shift of each Pod to the clock of a reference. Pods on one worker have one
// clock. Others are related by the echo of the wire's heartbeats, over several Pods if need be:
// the way with the least error is taken.
func Align(reference string, states map[string]State) map[string]Shift {
	shifts := map[string]Shift{reference: {Known: true, How: "it is the reference"}}
	done := map[string]bool{}
	for {
		pod, least := "", time.Duration(0)
		for _, p := range sortedKeys(shifts) { // Dijkstra's way, by the error
			if !done[p] && (pod == "" || shifts[p].Error < least) {
				pod, least = p, shifts[p].Error
			}
		}
		if pod == "" {
			break
		}
		done[pod] = true
		for _, other := range sortedKeys(states) {
			s, ok := relate(states[pod], states[other])
			if !ok || done[other] {
				continue
			}
			s.Offset, s.Error = s.Offset+shifts[pod].Offset, s.Error+shifts[pod].Error
			if old, known := shifts[other]; !known || s.Error < old.Error {
				shifts[other] = s
			}
		}
	}
	for pod := range states {
		if _, ok := shifts[pod]; !ok {
			shifts[pod] = Shift{How: "no wire leads from here to the reference"}
		}
	}
	return shifts
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// relate returns the shift from the clock of b to that of a, if the two are related directly.
func relate(a, b State) (Shift, bool) {
	if a.Worker != "" && a.Worker == b.Worker {
		return Shift{Known: true, How: "it is the clock of the same worker"}, true
	}
	if a.Clock == nil || b.Clock == nil {
		return Shift{}, false
	}
	bases := time.Duration(a.Clock.Base - b.Clock.Base)
	var found []Shift
	if p := a.Clock.peer(b); p != nil {
		found = append(found, Shift{Offset: bases - p.Offset, Error: p.Error})
	}
	if p := b.Clock.peer(a); p != nil {
		found = append(found, Shift{Offset: bases + p.Offset, Error: p.Error})
	}
	if len(found) == 0 {
		return Shift{}, false
	}
	s := slices.MinFunc(found, func(x, y Shift) int { return cmp.Compare(x.Error, y.Error) })
	s.Known, s.How = true, "by the echo of the wire"
	return s, true
}

// peer finds the clock of another Pod's present process.
func (c *Clock) peer(of State) *PeerClock {
	for i := range c.Peers {
		if p := &c.Peers[i]; p.Pod == of.Pod && p.Epoch == of.Clock.Epoch {
			return p
		}
	}
	return nil
}

// Comment describes the shift of an interface for the readers of the file.
func (s Shift) Comment(worker string) string {
	switch {
	case !s.Known:
		return fmt.Sprintf("times are by the clock of worker %s, which is not aligned: %s", worker, s.How)
	case s.Error == 0 && s.Offset == 0:
		return fmt.Sprintf("times are by the clock of worker %s: %s; error 0 ns", worker, s.How)
	}
	return fmt.Sprintf("times are aligned %s: %+d ns; error at most %d ns; worker %s", s.How, s.Offset.Nanoseconds(), s.Error.Nanoseconds(), worker)
}
