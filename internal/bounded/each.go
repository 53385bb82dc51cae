// Package bounded does things side by side, so many at a time.
package bounded

import "sync"

// Each calls do for the numbers below n, at most limit of them at the same time, and
// returns when all are done.
func Each(n, limit int, do func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, limit)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}
