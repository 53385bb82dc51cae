package inorder

import (
	"errors"
	"fmt"
	"testing"
)

func TestDo(t *testing.T) {
	for _, n := range []int{0, 1, batch, batch + 1, 10*batch + 3} {
		next := 0
		err := Do(n, func(i int) (int, error) { return i, nil }, func(i int) error {
			if i != next {
				return fmt.Errorf("%d instead of %d", i, next)
			}
			next++
			return nil
		})
		if err != nil || next != n {
			t.Errorf("%d of %d: %v", next, n, err)
		}
	}
	boom := errors.New("boom")
	fail := func(i int) (int, error) {
		if i == 100 {
			return 0, boom
		}
		return i, nil
	}
	if err := Do(1000, fail, func(int) error { return nil }); err != boom {
		t.Errorf("produce: %v", err)
	}
	if err := Do(1000, func(i int) (int, error) { return i, nil }, func(int) error { return boom }); err != boom {
		t.Errorf("use: %v", err)
	}
}
