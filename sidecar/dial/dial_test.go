package dial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/tunnel"
	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// pod is a Pod's two namespaces with the management network between them, and a neighbour on
// the device's eth1.
type pod struct {
	*testing.T
	own, device, neighbour *nspace.Namespace
	dialer                 *Dialer
}

const (
	node4 = "172.20.20.11"
	node6 = "3fff:172:20:20::11"
)

func newPod(t *testing.T) *pod {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	p := &pod{T: t}
	own, device := p.namespace(&p.own), p.namespace(&p.device)
	p.namespace(&p.neighbour)
	for _, name := range []string{mgmt.UnderlayName, mgmt.MeshName} { // the router expects them
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "peer"}
		p.must(errors.Join(own.LinkAdd(l), own.LinkSetUp(l)))
	}
	network := &contract.Mgmt{
		Interface: "eth0", MAC: "02:00:00:00:00:01", MTU: 1400,
		IPv4: netip.MustParsePrefix(node4 + "/24"), GatewayV4: netip.MustParseAddr("172.20.20.1"),
		IPv6: netip.MustParsePrefix(node6 + "/64"), GatewayV6: netip.MustParseAddr("3fff:172:20:20::1"),
	}
	r := mgmt.NewRouter(own, p.own.FD(), p.device, device)
	r.Set(network, nil, nil)
	p.must(p.own.Do(func() error {
		snap, err := link.Read(own)
		return errors.Join(err, r.Rules(), r.Ensure(snap, snap.ByName(mgmt.MeshName)))
	}))
	peer := netlink.NsFd(p.neighbour.FD())
	p.must(device.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1"}, PeerName: "eth1", PeerNamespace: peer}))
	p.up(p.device, "eth1", "10.0.0.1/24")
	p.up(p.neighbour, "eth1", "10.0.0.2/24")
	p.up(p.device, "lo", "")
	p.up(p.own, "lo", "")
	d, err := New(p.device, p.own, network)
	p.must(err)
	t.Cleanup(d.Close)
	p.dialer = d
	return p
}

func (p *pod) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *pod) namespace(into **nspace.Namespace) *netlink.Handle {
	p.Helper()
	ns, err := nspace.New()
	p.must(err)
	p.Cleanup(func() { ns.Close() })
	*into = ns
	return p.handle(ns)
}

func (p *pod) handle(ns *nspace.Namespace) *netlink.Handle {
	p.Helper()
	h, err := netlink.NewHandleAt(netns.NsHandle(ns.FD()), unix.NETLINK_ROUTE)
	p.must(err)
	p.Cleanup(h.Close)
	return h
}

// up sets an interface up, with an address if one is given.
func (p *pod) up(ns *nspace.Namespace, name, address string) {
	p.Helper()
	h := p.handle(ns)
	l, err := h.LinkByName(name)
	p.must(err)
	p.must(h.LinkSetUp(l))
	if address != "" {
		a, err := netlink.ParseAddr(address)
		p.must(err)
		p.must(h.AddrAdd(l, a))
	}
}

// listen answers each connection to an address with the name of the listener.
func (p *pod) listen(ns *nspace.Namespace, address, name string) {
	p.Helper()
	var l net.Listener
	p.must(ns.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	}))
	p.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name)
			c.Close()
		}
	}()
}

// ask dials and returns what the listener is called.
func (p *pod) ask(address string, port uint16) (string, error) {
	target := tunnel.Target{Network: tunnel.TCP, Port: port}
	if address != "" {
		target.Addr = netip.MustParseAddr(address)
	}
	ctx, cancel := context.WithTimeout(p.Context(), 5*time.Second)
	defer cancel()
	c, err := p.dialer.Dial(ctx, target)
	if err != nil {
		return "", err
	}
	defer c.Close()
	name, err := io.ReadAll(c)
	return string(name), err
}

// Every address of the node is reached, and no other.
func TestDial(t *testing.T) {
	p := newPod(t)
	p.listen(p.device, node4+":22", "management")
	p.listen(p.device, "["+node6+"]:22", "management 6")
	p.listen(p.device, "127.0.0.1:22", "loopback")
	p.listen(p.device, "[::1]:22", "loopback 6")
	p.listen(p.device, "10.0.0.1:22", "eth1")
	p.listen(p.neighbour, "10.0.0.2:22", "the neighbour")
	p.listen(p.own, "127.0.0.1:14802", "the sidecar")
	p.listen(p.own, "172.20.20.1:22", "the gateway")
	for address, want := range map[string]string{
		"": "management", node4: "management", node6: "management 6", "127.0.0.1": "loopback", "127.1.2.3": "", "::1": "loopback 6", "10.0.0.1": "eth1",
	} {
		if got, err := p.ask(address, 22); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
	for _, address := range []string{"10.0.0.2", "172.20.20.1", "172.20.20.12", "3fff:172:20:20::1", "10.0.0.255", "255.255.255.255", "224.0.0.1", "ff02::1", "8.8.8.8", "0.0.0.0", "::"} {
		var denied *tunnel.DialError
		if got, err := p.ask(address, 22); !errors.As(err, &denied) || denied.Reason != tunnel.Denied {
			t.Errorf("%s is not the node's: %q, %v", address, got, err)
		}
	}
	var e *tunnel.DialError
	if _, err := p.ask("127.0.0.1", 14802); !errors.As(err, &e) || e.Reason != tunnel.Refused {
		t.Errorf("the sidecar's own port: %v", err)
	}
	if _, err := p.ask("", 23); !errors.As(err, &e) || e.Reason != tunnel.Refused {
		t.Errorf("a port that nobody listens on: %v", err)
	}
}

// Where the management address is the device's own, connections do not pass eth0. Programs that
// listen on eth0 alone are reached too.
func TestShortcut(t *testing.T) {
	p := newPod(t)
	for _, device := range []string{"", "eth0"} {
		listen := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
			if device == "" {
				return nil
			}
			return errors.Join(raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) }), err)
		}}
		var l net.Listener
		p.must(p.device.Do(func() (err error) {
			l, err = listen.Listen(t.Context(), "tcp", "0.0.0.0:22")
			return err
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		c, err := p.dialer.Dial(ctx, tunnel.Target{Network: tunnel.TCP, Port: 22})
		cancel()
		p.must(err)
		far, err := l.Accept()
		p.must(err)
		if got := far.RemoteAddr().(*net.TCPAddr).IP.String(); got != node4 {
			t.Errorf("to a listener on %q, a connection comes from %s, not from the device itself", device, got)
		}
		c.Close()
		far.Close()
		l.Close()
	}
}

// A device that moves its eth0 to another namespace is reached there.
func TestDialMovedInterface(t *testing.T) {
	p := newPod(t)
	var inner *nspace.Namespace
	p.namespace(&inner)
	h := p.handle(p.device)
	eth0, err := h.LinkByName("eth0")
	p.must(err)
	p.must(h.LinkSetNsFd(eth0, inner.FD()))
	p.up(inner, "eth0", node4+"/24")
	p.listen(inner, node4+":22", "moved")
	if got, err := p.ask("", 22); got != "moved" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A node that does not answer ends the dial at its time limit.
func TestDialTimeout(t *testing.T) {
	p := newPod(t)
	p.must(p.device.Do(func() error { // no more SYN is taken than the backlog
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		p.Cleanup(func() { unix.Close(fd) })
		return errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: 22}), unix.Listen(fd, 0))
	}))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	for range 3 { // the first ones fill it
		c, err := p.dialer.Dial(ctx, tunnel.Target{Network: tunnel.TCP, Port: 22})
		if err == nil {
			defer c.Close()
			continue
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		return
	}
	t.Error("no dial timed out")
}

func TestDialUDP(t *testing.T) {
	p := newPod(t)
	var l net.PacketConn
	p.must(p.device.Do(func() (err error) {
		l, err = net.ListenPacket("udp", node4+":161")
		return err
	}))
	defer l.Close()
	go func() {
		b := make([]byte, tunnel.MaxDatagram)
		for {
			n, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = l.WriteTo(b[:n], from)
		}
	}()
	c, err := p.dialer.Dial(t.Context(), tunnel.Target{Network: tunnel.UDP, Port: 161})
	p.must(err)
	defer c.Close()
	b := make([]byte, 20_000)
	for _, size := range []int{1, 1000, 10_000} {
		_, err := c.Write(b[:size])
		p.must(err)
		p.must(c.SetReadDeadline(time.Now().Add(5 * time.Second)))
		if n, err := c.Read(b); n != size || err != nil {
			t.Errorf("%d bytes of %d, %v", n, size, err)
		}
	}
}

// The seats of a Pod are taken one a tunnel, and free again after it.
func TestSeats(t *testing.T) {
	dir := t.TempDir()
	var all []func()
	for range Tunnels {
		free, err := takeSeat(dir)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, free)
	}
	if _, err := takeSeat(dir); err == nil {
		t.Error(fmt.Sprint("there are more seats than ", Tunnels))
	}
	all[3]()
	free, err := takeSeat(dir)
	if err != nil {
		t.Fatal(err)
	}
	all[3] = free
	for _, free := range all {
		free()
	}
}

// A tunnel opens no way for the device or its neighbours: nothing more listens than before, and
// a flood of dial requests to every address that they reach is answered by nobody.
func TestFloodFromTheDevice(t *testing.T) {
	p := newPod(t)
	listeners := func() (out string) {
		for _, ns := range []*nspace.Namespace{p.own, p.device, p.neighbour} {
			p.must(ns.Do(func() error {
				for _, file := range []string{"tcp", "tcp6", "udp", "udp6", "unix"} {
					data, err := os.ReadFile("/proc/thread-self/net/" + file)
					if err != nil {
						return err
					}
					out += file + fmt.Sprint(len(strings.Split(string(data), "\n"))) + " "
				}
				return nil
			}))
		}
		return out
	}
	before := listeners()
	var dialled atomic.Int64
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- tunnel.Serve(t.Context(), far, func(ctx context.Context, to tunnel.Target) (net.Conn, error) {
			dialled.Add(1)
			return p.dialer.Dial(ctx, to)
		}, limits)
	}()
	client, err := tunnel.NewClient(near)
	p.must(err)
	if now := listeners(); now != before {
		t.Errorf("with a tunnel there are sockets %s, before %s", now, before)
	}
	var group sync.WaitGroup
	var reached atomic.Int64
	for _, from := range []struct {
		ns *nspace.Namespace
		to []string
	}{{p.device, []string{"127.0.0.1", node4, "172.20.20.1", "10.0.0.1"}}, {p.neighbour, []string{"127.0.0.1", "10.0.0.1"}}} {
		for _, address := range from.to {
			for port := range 200 {
				to := netip.AddrPortFrom(netip.MustParseAddr(address), uint16(1+port*320))
				group.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
					c, err := (&Dialer{}).connect(ctx, from.ns, tunnel.TCP, netip.Addr{}, to)
					if err != nil {
						return
					}
					_, _ = io.WriteString(c, "\x06tcp :22")
					reached.Add(1)
					c.Close()
				})
			}
		}
	}
	group.Wait()
	if n, m := reached.Load(), dialled.Load(); n != 0 || m != 0 {
		t.Errorf("%d requests reached something, %d were dialled", n, m)
	}
	// The tunnel itself still works.
	p.listen(p.device, "127.0.0.1:5000", "console")
	conn, err := client.Dial(t.Context(), tunnel.Target{Network: tunnel.TCP, Addr: netip.MustParseAddr("127.0.0.1"), Port: 5000})
	p.must(err)
	if name, err := io.ReadAll(conn); err != nil || string(name) != "console" {
		t.Errorf("%q, %v", name, err)
	}
	conn.Close()
	client.Close()
	p.must(<-served)
}
