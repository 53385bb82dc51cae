package render

import (
	"runtime"
	"sync"
)

// batch is how many items a worker takes at a time: enough to make the handing
// over cheap, few enough to keep only little output in memory.
const batch = 32

// inOrder makes n pieces on all processors and hands them to use one by one, in
// their order. It stops at the first error.
func inOrder[T any](n int, produce func(i int) (T, error), use func(T) error) error {
	type result struct {
		pieces []T
		err    error
	}
	batches := (n + batch - 1) / batch
	slots := make([]chan result, batches)
	for i := range slots {
		slots[i] = make(chan result, 1)
	}
	tickets := make(chan int)
	stop := make(chan struct{})
	var workers sync.WaitGroup
	defer workers.Wait()
	defer close(stop)
	for range min(runtime.GOMAXPROCS(0), batches) {
		workers.Go(func() {
			for slot := range tickets {
				var r result
				for i := slot * batch; i < min(n, (slot+1)*batch) && r.err == nil; i++ {
					var piece T
					piece, r.err = produce(i)
					r.pieces = append(r.pieces, piece)
				}
				slots[slot] <- r
			}
		})
	}
	ahead := make(chan struct{}, 4*runtime.GOMAXPROCS(0))
	workers.Go(func() {
		defer close(tickets)
		for slot := range batches {
			select {
			case ahead <- struct{}{}:
			case <-stop:
				return
			}
			select {
			case tickets <- slot:
			case <-stop:
				return
			}
		}
	})
	for slot := range batches {
		r := <-slots[slot]
		if r.err != nil {
			return r.err
		}
		for _, piece := range r.pieces {
			if err := use(piece); err != nil {
				return err
			}
		}
		slots[slot] = nil
		<-ahead
	}
	return nil
}
