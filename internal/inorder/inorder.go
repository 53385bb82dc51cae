// Package inorder does work on all processors and hands over the results in order.
package inorder

import (
	"runtime"
	"sync"
)

// batch is the number of items that a worker takes at a time: large enough to make
// the handover cheap, small enough to keep little output in memory.
const batch = 32

// Do calls produce for 0 to n-1 on all processors and calls use with the results,
// one by one and in order. It stops at the first error of either and returns it.
func Do[T any](n int, produce func(i int) (T, error), use func(T) error) error {
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
