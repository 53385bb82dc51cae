package proto

// windowWords sets the window to 1,024 numbers: with datagrams of 1,400 bytes
// that is a reordering of 1.4 MB.
const windowWords = 16

const windowSize = windowWords * 64

// Window remembers which of the last numbers were seen (RFC 6479's ring of
// words). The zero value has seen none.
type Window struct {
	started bool
	top     uint64
	ring    [windowWords]uint64
}

// Seen reports whether n was accepted before or is too old to know.
func (w *Window) Seen(n uint64) bool {
	if !w.started || n > w.top {
		return false
	}
	if w.top-n >= windowSize-64 {
		return true
	}
	return w.ring[n/64%windowWords]&(1<<(n%64)) != 0
}

// Accept marks n and reports whether it is new.
func (w *Window) Accept(n uint64) bool {
	if w.Seen(n) {
		return false
	}
	switch {
	case !w.started:
		w.started, w.top = true, n
	case n > w.top:
		first := w.top/64 + 1
		if last := n / 64; last >= windowWords {
			first = max(first, last-windowWords+1)
		}
		for i := first; i <= n/64; i++ {
			w.ring[i%windowWords] = 0
		}
		w.top = n
	}
	w.ring[n/64%windowWords] |= 1 << (n % 64)
	return true
}

// Unwrap returns the 64-bit number nearest to the window's top whose low half is n.
func (w *Window) Unwrap(n uint32) uint64 {
	if !w.started {
		// One turn up, so that numbers before the first stay above zero.
		return 1<<32 | uint64(n)
	}
	return w.top + uint64(int64(int32(n-uint32(w.top))))
}
