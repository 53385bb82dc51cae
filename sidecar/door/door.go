// Package door keeps a server that anybody on the Pod network can reach open for
// the kubelet, however many others come: every newcomer is let in, and takes the
// seat of a connection that asks for nothing, of the source that has most.
package door

import (
	"net"
	"net/netip"
	"sync"
)

// Options are a Door's numbers. They bound what strangers can make of the Pod's
// memory.
type Options struct {
	// Own reports whether an address is the Pod's own: its programs count as one source.
	Own func(netip.Addr) bool
	// Seats are the connections of all others together, and those of the Pod's own.
	Seats, OwnSeats int
	// PerSource is how many of the seats one address has.
	PerSource int
	// Holds are the requests of all others together that may take time, and HoldsPerSource
	// those of one address. There are fewer than seats, so that a newcomer finds one.
	Holds, HoldsPerSource int
	// Trusted is how many addresses are trusted: they have PerSource seats and
	// HoldsPerSource holds each, besides those of all others.
	Trusted int
}

// Door admits connections and limits their requests. All fields except the first start with
// their zero values.
type Door struct {
	opt Options

	mu      sync.Mutex
	trusted map[netip.Addr]bool
	rooms   [rooms]room
}

// The rooms: strangers take nothing from the Pod's own programs or the kubelet.
const (
	roomStrangers = iota
	roomOwn
	roomTrusted
	rooms
)

type room struct {
	// guests are in the order in which they came.
	guests []*Guest
	holds  int
}

// Guest is one connection.
type Guest struct {
	net.Conn
	door *Door
	from netip.Addr
	room int
	// holds are its requests that take time; under the door's lock.
	holds int
	gone  bool
}

// New makes a door.
func New(o Options) *Door { return &Door{opt: o, trusted: map[netip.Addr]bool{}} }

// Listener makes a listener whose connections are admitted by the door.
func (d *Door) Listener(l net.Listener) net.Listener { return &listener{l, d} }

type listener struct {
	net.Listener
	door *Door
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g, out := l.door.enter(c)
	if out != nil {
		out.Close()
	}
	return g, nil
}

// enter gives a connection a seat, and returns the connection that loses its seat, if any.
func (d *Door) enter(c net.Conn) (g, out *Guest) {
	g = &Guest{Conn: c, door: d, from: source(c.RemoteAddr())}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.opt.Own(g.from):
		g.room, g.from = roomOwn, netip.Addr{}
	case d.trusted[g.from]:
		g.room = roomTrusted
	}
	r := &d.rooms[g.room]
	out = r.displaced(g.from, d.seats(g.room), d.perSource(g.room))
	if out != nil {
		out.leave()
	}
	r.guests = append(r.guests, g)
	return g, out
}

func (d *Door) seats(room int) int {
	switch room {
	case roomOwn:
		return d.opt.OwnSeats
	case roomTrusted:
		return d.opt.Trusted * d.opt.PerSource
	}
	return d.opt.Seats
}

func (d *Door) perSource(room int) int {
	if room == roomOwn {
		return d.opt.OwnSeats
	}
	return d.opt.PerSource
}

// displaced returns the connection to close for a new one from an address, or nil: the one
// that has been idle the longest, of that address if it uses all its seats, else of the address
// with the most connections.
func (r *room) displaced(from netip.Addr, seats, perSource int) *Guest {
	count := map[netip.Addr]int{}
	for _, g := range r.guests {
		count[g.from]++
	}
	full := count[from] >= perSource
	if !full && len(r.guests) < seats {
		return nil
	}
	var out *Guest
	for _, g := range r.guests {
		if g.holds > 0 || full && g.from != from {
			continue
		}
		if out == nil || count[g.from] > count[out.from] {
			out = g
		}
	}
	return out
}

func source(a net.Addr) netip.Addr {
	if at, err := netip.ParseAddrPort(a.String()); err == nil {
		return at.Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// Close ends the connection and frees the seat.
func (g *Guest) Close() error {
	g.door.mu.Lock()
	g.leave()
	g.door.mu.Unlock()
	return g.Conn.Close()
}

// leave frees the seat, under the door's lock.
func (g *Guest) leave() {
	if g.gone {
		return
	}
	g.gone = true
	r := &g.door.rooms[g.room]
	for i, other := range r.guests {
		if other == g {
			r.guests = append(r.guests[:i], r.guests[i+1:]...)
			break
		}
	}
}

// Hold reports whether a request of the guest may take time. If so, the guest stays
// until release is called.
func (g *Guest) Hold() (release func(), ok bool) {
	d := g.door
	d.mu.Lock()
	defer d.mu.Unlock()
	r := &d.rooms[g.room]
	mine := 0
	for _, other := range r.guests {
		if other.from == g.from {
			mine += other.holds
		}
	}
	most := d.opt.HoldsPerSource
	if g.room == roomOwn {
		most = d.opt.OwnSeats / 2
	}
	if g.gone || mine >= most || g.room == roomStrangers && r.holds >= d.opt.Holds {
		return nil, false
	}
	g.holds++
	r.holds++
	var once sync.Once
	return func() {
		once.Do(func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			g.holds--
			r.holds--
		})
	}, true
}

// Trust has the guest's address trusted from its next connection on, unless so many
// are trusted already.
func (g *Guest) Trust() {
	d := g.door
	d.mu.Lock()
	defer d.mu.Unlock()
	if g.room == roomStrangers && len(d.trusted) < d.opt.Trusted {
		d.trusted[g.from] = true
	}
}
