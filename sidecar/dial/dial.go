// Package dial is the far end of a tunnel in a Pod: it opens connections to the addresses of
// the Pod's own node, and to no others. It runs as a process of its own in the sidecar's
// container for as long as its stream lasts, and listens nowhere.
package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/tunnel"
	"github.com/c9s-lab/c9s/sidecar/nspace"
	"github.com/c9s-lab/c9s/sidecar/seat"
)

// limits are those of one tunnel.
var limits = tunnel.Limits{Connections: 512, PerSecond: 100, Burst: 512, Dial: 10 * time.Second}

// Tunnels is how many a Pod has at the same time: each is a process, and they share the memory
// of the sidecar's container.
const Tunnels = 16

// Dialer dials the addresses of one node.
type Dialer struct {
	device, own *nspace.Namespace
	mgmt        *contract.Mgmt
	routes      *netlink.Handle
	// here is set if the process is in device: then sockets are made there without a turn of
	// another thread.
	here bool
}

// New returns a dialler. Sockets to the management addresses are made in own, the sidecar's
// network namespace, and come to the device by eth0 as those of others do, unless a shortcut
// is there. So a device that moved eth0 to a VRF or to a namespace is reached. All others are
// made in device. mgmt is nil for a Pod without a management interface.
func New(device, own *nspace.Namespace, mgmt *contract.Mgmt) (*Dialer, error) {
	routes, err := netlink.NewHandleAt(netns.NsHandle(device.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink in the device's network namespace: %w", err)
	}
	return &Dialer{device: device, own: own, mgmt: mgmt, routes: routes, here: device.Here()}, nil
}

// Close frees what New took, but not the namespaces.
func (d *Dialer) Close() { d.routes.Close() }

// Dial connects to an address of the node.
func (d *Dialer) Dial(ctx context.Context, t tunnel.Target) (net.Conn, error) {
	space, source, to, err := d.way(t.Addr)
	if err != nil {
		return nil, err
	}
	if conn := d.shortcut(ctx, t, space, to); conn != nil {
		return conn, nil
	}
	conn, err := d.connect(ctx, space, t.Network, source, netip.AddrPortFrom(to, t.Port))
	if err != nil {
		return nil, explain(err)
	}
	return conn, nil
}

// way returns where the socket to an address is made, with its source ("" for any) and its
// destination.
func (d *Dialer) way(a netip.Addr) (space *nspace.Namespace, source, to netip.Addr, err error) {
	if d.mgmt != nil {
		v4, v6 := d.mgmt.IPv4.Addr(), d.mgmt.IPv6.Addr()
		switch {
		case v4.IsValid() && (a == v4 || !a.IsValid()):
			return d.own, d.mgmt.GatewayV4, v4, nil
		case v6.IsValid() && (a == v6 || !a.IsValid()):
			return d.own, d.mgmt.GatewayV6, v6, nil
		}
	}
	if !a.IsValid() {
		return d.device, source, netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if !d.local(a) {
		return nil, source, to, &tunnel.DialError{Reason: tunnel.Denied, Text: fmt.Sprintf("%s is no address of the node", a)}
	}
	return d.device, source, a, nil
}

// shortTime is how long the device's own loopback may take to connect.
const shortTime = 200 * time.Millisecond

// shortcut connects to the management address within the device's namespace, where the kernel
// uses loopback: eth0 costs a device several times as much for each byte, since the network
// between it and the sidecar translates addresses and has no offloads. It returns nil where
// the address is not there (the device moved eth0), or nothing takes the connection.
func (d *Dialer) shortcut(ctx context.Context, t tunnel.Target, space *nspace.Namespace, to netip.Addr) net.Conn {
	if t.Network != tunnel.TCP || space != d.own || !d.local(to) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shortTime)
	defer cancel()
	conn, err := d.connect(ctx, d.device, t.Network, netip.Addr{}, netip.AddrPortFrom(to, t.Port))
	if err != nil {
		return nil
	}
	return conn
}

// local reports whether an address is one of the device's namespace.
func (d *Dialer) local(a netip.Addr) bool {
	routes, err := d.routes.RouteGet(a.AsSlice())
	return err == nil && !a.IsUnspecified() && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL
}

// explain gives an error its reason.
func explain(err error) error {
	reason := tunnel.Failed
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		reason = tunnel.Refused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, unix.ETIMEDOUT), errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EADDRNOTAVAIL):
		reason = tunnel.Unreachable
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		err = number
	}
	return &tunnel.DialError{Reason: reason, Text: err.Error()}
}

// Serve dials for the near end of a stream until that ends. It takes one of the Pod's seats
// for tunnels in dir, a folder of the sidecar's own.
func Serve(ctx context.Context, stream io.ReadWriteCloser, d *Dialer, dir string) error {
	free, err := takeSeat(dir)
	if err != nil {
		return err
	}
	defer free()
	return tunnel.Serve(ctx, stream, d.Dial, limits)
}

// takeSeat takes a seat for a tunnel.
func takeSeat(dir string) (free func(), err error) {
	free, err = seat.Take(dir, "tunnel", Tunnels)
	if errors.Is(err, seat.ErrTaken) {
		err = fmt.Errorf("there are %d tunnels to this Pod, which is the limit: end some of them, or use one 'c9s proxy' for many connections", Tunnels)
	}
	return free, err
}
