package door

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
)

// conn is a connection from somewhere that remembers its end.
type conn struct {
	net.Conn
	from  string
	ended bool
}

func (c *conn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.from), 1234))
}
func (c *conn) Close() error { c.ended = true; return nil }

func testDoor() *Door {
	return New(Options{Own: netip.Addr.IsLoopback, Seats: 8, OwnSeats: 4, PerSource: 3, Holds: 4, HoldsPerSource: 1, Trusted: 2})
}

func (d *Door) let(from string) *Guest {
	g, out := d.enter(&conn{from: from})
	if out != nil {
		out.Close()
	}
	return g
}

func (g *Guest) ended() bool { return g.Conn.(*conn).ended }

// A newcomer takes the oldest seat of its own address where that has all of its, else
// one of the address with most; never one with a request under way.
func TestNewcomersTakeSeats(t *testing.T) {
	d := testDoor()
	single := d.let("10.0.0.2")
	busy := d.let("10.0.0.1")
	release, ok := busy.Hold()
	if !ok {
		t.Fatal("no request may take time")
	}
	if _, ok := busy.Hold(); ok {
		t.Error("one address holds more than its share")
	}
	old, other := d.let("10.0.0.1"), d.let("10.0.0.1")
	if d.let("10.0.0.1"); !old.ended() || other.ended() || busy.ended() {
		t.Fatal("the wrong one of a full address left")
	}
	for n := range 4 {
		d.let(fmt.Sprintf("10.0.1.%d", n))
	}
	if d.let("10.0.0.3"); !other.ended() || single.ended() || busy.ended() {
		t.Fatal("the wrong one of a full room left")
	}
	release()
	release() // once only
	if n := d.rooms[roomStrangers].holds; n != 0 {
		t.Errorf("%d requests are left", n)
	}
	for n := range 100 {
		d.let(fmt.Sprintf("10.0.2.%d", n))
	}
	if n := len(d.rooms[roomStrangers].guests); n != 8 {
		t.Errorf("%d of 8 seats are taken", n)
	}
	busy.Close()
	if _, ok := busy.Hold(); ok {
		t.Error("one that left holds a request")
	}
}

// Strangers take no seat of the Pod's own programs or of those who came early.
func TestRooms(t *testing.T) {
	d := testDoor()
	own := d.let("127.0.0.1")
	d.let("10.0.0.9").Trust()
	kubelet := d.let("10.0.0.9")
	for n := range 20 {
		g := d.let(fmt.Sprintf("10.0.3.%d", n))
		g.Hold()
		if n > 0 { // too late for all but one
			g.Trust()
		}
	}
	if own.ended() {
		t.Error("a stranger took a seat of the Pod's own programs")
	}
	for range 20 {
		d.let("127.0.0.2")
	}
	if !own.ended() { // all of the Pod's own are one source
		t.Error("the Pod's own programs have no bound")
	}
	if kubelet.ended() {
		t.Error("a stranger took a seat of the kubelet")
	}
	if _, ok := kubelet.Hold(); !ok {
		t.Error("strangers' requests keep the kubelet from its own")
	}
	if len(d.trusted) != 2 {
		t.Errorf("%d addresses are trusted, want 2", len(d.trusted))
	}
	if r, o := d.rooms[roomStrangers], d.rooms[roomOwn]; r.holds > 4 || len(r.guests) > 8 || len(o.guests) > 4 {
		t.Errorf("%d requests and %d seats of strangers, %d own seats", r.holds, len(r.guests), len(o.guests))
	}
}
