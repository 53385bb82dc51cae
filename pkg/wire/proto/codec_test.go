//go:build linux

package proto

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestHelloRoundTrip(t *testing.T) {
	keys := DeriveKeys([]byte("k"), "lab")
	h := &hello{kind: msgWelcome, epoch: 1, attempt: 2, session: 3, nonce: nonce{4}, echo: nonce{5}, caps: 6, wires: 7, digest: 8, lab: "lab", pod: "a", target: "b"}
	got, err := parseHello(h.marshal(keys))
	if err != nil || !reflect.DeepEqual(h, got) {
		t.Errorf("%+v %v", got, err)
	}
	if !authentic(h.marshal(keys), keys) {
		t.Error("the key is rejected")
	}
	if authentic(h.marshal(keys), DeriveKeys([]byte("other"), "lab")) {
		t.Error("another key is accepted")
	}
}

func TestHeartbeatRoundTrip(t *testing.T) {
	h := &heartbeat{session: 1, seq: 2, sent: 3, echo: 4, echoDelay: 5, received: 6, part: 0, parts: 1, wires: []beatWire{{1, 3}, {0xffffff, 1}}}
	got, err := parseHeartbeat(h.marshal([]byte("k")), []byte("k"))
	if err != nil || !reflect.DeepEqual(h, got) {
		t.Errorf("%+v %v", got, err)
	}
	if n := len((&heartbeat{parts: 1, wires: make([]beatWire, beatMaxWires)}).marshal(nil)); n > MinMTU-48 {
		t.Errorf("a full heartbeat has %d bytes", n)
	}
}

func TestWindow(t *testing.T) {
	var w Window
	naive := map[uint64]bool{}
	top := uint64(0)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		n := top + uint64(rng.IntN(40))
		if rng.IntN(500) == 0 {
			n += uint64(rng.IntN(5000))
		}
		n -= min(n, uint64(rng.IntN(900)))
		got := w.Accept(n)
		if got != !naive[n] {
			t.Fatalf("%d of %d: accepted %v", n, top, got)
		}
		naive[n] = true
		top = max(top, n)
	}
	if w.Accept(top - windowSize) {
		t.Error("too old, and accepted")
	}
}

func TestUnwrap(t *testing.T) {
	var w Window
	w.Accept(w.Unwrap(0xfffffff0))
	a, b := w.Unwrap(0xffffffff), w.Unwrap(5)
	if b != a+6 || w.Unwrap(0xffffffe0) != a-0x1f {
		t.Errorf("%x %x", a, b)
	}
}
