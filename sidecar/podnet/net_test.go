package podnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, 8<<20)) }

// dialIn connects in a namespace. http dials on goroutines of its own, so the
// thread is chosen here; the address is a literal, so the socket is made where
// this runs.
func dialIn(ns string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (c net.Conn, err error) {
		err = withNS(ns, func() error {
			c, err = (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, network, addr)
			return err
		})
		return c, err
	}
}

// ping sends echo requests until one is answered; patience is for all.
func ping(ns, to string, patience time.Duration) error { return pingFrom(ns, "", to, patience) }

// pingFrom binds to an interface first, where it is given.
func pingFrom(ns, dev, to string, patience time.Duration) error {
	return withNS(ns, func() error {
		ip := netip.MustParseAddr(to)
		network, any, proto := "ip4:icmp", "0.0.0.0", 1
		var kind icmp.Type = ipv4.ICMPTypeEcho
		if ip.Is6() {
			network, any, proto = "ip6:ipv6-icmp", "::", 58
			kind = ipv6.ICMPTypeEchoRequest
		}
		c, err := icmp.ListenPacket(network, any)
		if err != nil {
			return err
		}
		defer c.Close()
		if dev != "" {
			raw, err := rawConn(c, ip.Is6())
			if err != nil {
				return err
			}
			if ctl := raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), dev) }); ctl != nil || err != nil {
				return errors.Join(ctl, err)
			}
		}
		end := time.Now().Add(patience)
		id := os.Getpid()&0x7fff ^ int(time.Now().UnixNano()&0x7fff)
		buf := make([]byte, 1500)
		for seq := 1; time.Now().Before(end); seq++ {
			msg := icmp.Message{Type: kind, Body: &icmp.Echo{ID: id, Seq: seq, Data: []byte("c9s")}}
			out, err := msg.Marshal(nil)
			if err != nil {
				return err
			}
			if _, err := c.WriteTo(out, &net.IPAddr{IP: ip.AsSlice()}); err != nil {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			for {
				n, from, err := c.ReadFrom(buf)
				if err != nil {
					break
				}
				in, err := icmp.ParseMessage(proto, buf[:n])
				if err != nil {
					continue
				}
				echo, ok := in.Body.(*icmp.Echo)
				if ok && echo.ID == id && from.String() == to && (in.Type == ipv4.ICMPTypeEchoReply || in.Type == ipv6.ICMPTypeEchoReply) {
					return nil
				}
			}
		}
		return fmt.Errorf("no answer from %s within %s", to, patience)
	})
}

func rawConn(c *icmp.PacketConn, v6 bool) (syscall.RawConn, error) {
	var conn net.PacketConn
	if v6 {
		conn = c.IPv6PacketConn().PacketConn
	} else {
		conn = c.IPv4PacketConn().PacketConn
	}
	sys, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("no raw connection")
	}
	return sys.SyscallConn()
}

// bulk is more than a window: it comes through only where the segments fit.
var bulk = bytes.Repeat([]byte("c9s "), 64<<10)

// echoServer answers every TCP connection with the address that it came from, and
// bulk.
func echoServer(ns, at string) (stop func(), err error) {
	var l net.Listener
	err = withNS(ns, func() error {
		l, err = net.Listen("tcp", at)
		return err
	})
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, c.RemoteAddr())
			_, _ = c.Write(bulk)
			c.Close()
		}
	}()
	return func() { l.Close() }, nil
}

// ask connects and tells the host that the server saw.
func ask(ns, to string) (string, error) {
	c, err := dialIn(ns)(context.Background(), "tcp", to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	text, err := io.ReadAll(c)
	if err != nil {
		return "", err
	}
	line, rest, _ := strings.Cut(string(text), "\n")
	if rest != string(bulk) {
		return "", fmt.Errorf("%d bytes arrived, want %d", len(rest), len(bulk))
	}
	host, _, err := net.SplitHostPort(line)
	return host, err
}

func wantFrom(ns, to, from string) error {
	got, err := ask(ns, to)
	if err != nil {
		return err
	}
	if got != from {
		return fmt.Errorf("%s sees %s, want %s", to, got, from)
	}
	return nil
}

var errReached = errors.New("it was reached")
