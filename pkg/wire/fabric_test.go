//go:build linux

package wire

import (
	"fmt"
	"testing"
)

func TestPing(t *testing.T) {
	l := newLab(t, 1500, nil)
	a, b := l.pod("a"), l.pod("b")
	l.wire(1, a, b, 9500, nil)
	a.start()
	b.start()
	waitUp(t, 1, a, b)
	eventually(t, "path MTU", func() bool { return a.status(1).PathMTU == 1500 })
	p := a.dev.pinger(t)
	for i, size := range []int{0, 1, 56, 1372, 1400, 1422, 1472, 1473, 2900, 4000, 8972, 9000, 9471, 9472} {
		rtt, err := p.ping("192.168.1.2", size, uint16(i))
		if err != nil {
			t.Errorf("%d bytes: %v %+v", size, err, b.fabric.Status())
		}
		if testing.Verbose() {
			fmt.Println(size, rtt)
		}
	}
	t.Logf("%+v", a.fabric.Status())
}
