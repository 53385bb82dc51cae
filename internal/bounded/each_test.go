package bounded

import (
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	for _, limit := range []int{1, 3, 100} {
		var now, most atomic.Int32
		done := make([]int, 50)
		Each(len(done), limit, func(i int) {
			most.Store(max(most.Load(), now.Add(1)))
			done[i]++
			now.Add(-1)
		})
		for i, n := range done {
			if n != 1 {
				t.Errorf("limit %d: %d was done %d times", limit, i, n)
			}
		}
		if got := most.Load(); int(got) > limit {
			t.Errorf("limit %d: %d at once", limit, got)
		}
	}
	Each(0, 1, func(int) { t.Error("there is nothing to do") })
}
