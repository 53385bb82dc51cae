package cluster

import "sync"

// each calls do for the numbers below n, at most limit of them at the same time, and
// returns when all are done.
func each(n, limit int, do func(i int)) {
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

// requestsAtOnce bounds the requests that are under way.
const requestsAtOnce = 16
