package measure

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// The most that a request for pings may ask for.
const (
	mostPings   = 10000
	pingTimeout = time.Second
	mostTimeout = 30 * time.Second
)

// echo is a socket for echo requests and their answers. Raw sockets see all answers, so an id
// tells its own.
type echo struct {
	conn *net.IPConn
	to   netip.Addr
	id   uint16
	// overhead is the size of the headers of an echo request.
	overhead int
}

// dialEcho opens a socket for requests to an address.
func (p *Pod) dialEcho(to, source netip.Addr, device string, gateway, whole bool) (*echo, error) {
	if gateway {
		if p.Mgmt == nil {
			return nil, errors.New("the Pod has no management network")
		}
		if source = p.Mgmt.GatewayV4; to.Is6() {
			source = p.Mgmt.GatewayV6
		}
		own, err := p.Own()
		if err != nil {
			return nil, err
		}
		defer own.Close()
		return openEcho(own, to, source, device, whole)
	}
	return openEcho(nil, to, source, device, whole)
}

// openEcho opens a raw socket in a network namespace, nil for the present one.
func openEcho(space *nspace.Namespace, to, source netip.Addr, device string, whole bool) (*echo, error) {
	family, protocol, overhead := unix.AF_INET, unix.IPPROTO_ICMP, 28
	if to.Is6() {
		family, protocol, overhead = unix.AF_INET6, unix.IPPROTO_ICMPV6, 48
	}
	fd := -1
	open := func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		return err
	}
	var err error
	if space != nil {
		err = space.Do(open)
	} else {
		err = open()
	}
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "echo")
	defer f.Close() // FilePacketConn makes a copy
	if device != "" {
		if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, device); err != nil {
			return nil, os.NewSyscallError("bind to "+device, err)
		}
	}
	if whole { // packets are neither fragmented here nor by routers
		if to.Is6() {
			err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
			if err == nil {
				err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
			}
		} else {
			err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
		}
		if err != nil {
			return nil, os.NewSyscallError("setsockopt", err)
		}
	}
	if source.IsValid() {
		if source.Is6() != to.Is6() {
			return nil, fmt.Errorf("%s and the source %s are of two families", to, source)
		}
		var address unix.Sockaddr
		if to.Is6() {
			address = &unix.SockaddrInet6{Addr: source.As16()}
		} else {
			address = &unix.SockaddrInet4{Addr: source.As4()}
		}
		if err := unix.Bind(fd, address); err != nil {
			return nil, os.NewSyscallError("bind to "+source.String(), err)
		}
	}
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	ip, ok := conn.(*net.IPConn)
	if !ok {
		conn.Close()
		return nil, errors.New("the socket is no raw socket")
	}
	var id [2]byte
	_, _ = rand.Read(id[:])
	return &echo{ip, to, binary.BigEndian.Uint16(id[:]), overhead}, nil
}

func (e *echo) Close() { e.conn.Close() }

// send sends a request with a payload of some size.
func (e *echo) send(seq int, payload []byte) error {
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: int(e.id), Seq: seq, Data: payload}}
	if e.to.Is6() {
		m.Type = ipv6.ICMPTypeEchoRequest
	}
	data, err := m.Marshal(nil)
	if err == nil {
		_, err = e.conn.WriteTo(data, &net.IPAddr{IP: e.to.AsSlice(), Zone: e.to.Zone()})
	}
	return err
}

// answers calls heard for each answer until the socket is closed: final for one of the
// destination, otherwise a router has dropped the request for its hop limit.
func (e *echo) answers(heard func(seq int, from netip.Addr, final bool)) {
	buffer := make([]byte, 1<<16)
	protocol := 1
	if e.to.Is6() {
		protocol = 58
	}
	for {
		n, from, err := e.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		m, err := icmp.ParseMessage(protocol, buffer[:n])
		if err != nil {
			continue
		}
		address, _ := netip.AddrFromSlice(from.(*net.IPAddr).IP)
		switch body := m.Body.(type) {
		case *icmp.Echo:
			if answer := m.Type == ipv4.ICMPTypeEchoReply || m.Type == ipv6.ICMPTypeEchoReply; answer && body.ID == int(e.id) {
				heard(body.Seq, address.Unmap(), true)
			}
		case *icmp.TimeExceeded:
			if seq, ok := e.inner(body.Data); ok {
				heard(seq, address.Unmap(), false)
			}
		}
	}
}

// inner returns the number of the request that an error message quotes.
func (e *echo) inner(quoted []byte) (seq int, ok bool) {
	header := 40
	if !e.to.Is6() {
		if len(quoted) == 0 {
			return 0, false
		}
		header = int(quoted[0]&0xf) * 4
	}
	if len(quoted) < header+8 || binary.BigEndian.Uint16(quoted[header+4:]) != e.id {
		return 0, false
	}
	return int(binary.BigEndian.Uint16(quoted[header+6:])), true
}

// ping sends requests and counts the answers.
func (p *Pod) ping(ctx context.Context, r contract.PingRequest) (result contract.PingResult) {
	e, err := p.dialEcho(r.To, r.Source, r.Device, r.Gateway, r.Size > 0)
	if err != nil {
		result.Error = explain(err)
		return result
	}
	defer e.Close()
	count, interval := min(max(r.Count, 1), mostPings), time.Duration(max(r.IntervalMS, 1))*time.Millisecond
	timeout := pingTimeout
	if r.TimeoutMS > 0 {
		timeout = min(time.Duration(r.TimeoutMS)*time.Millisecond, mostTimeout)
	}
	var mu sync.Mutex
	answered, got := make([]bool, count), 0
	all, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		e.answers(func(seq int, _ netip.Addr, final bool) {
			mu.Lock()
			defer mu.Unlock()
			if final && seq < count && !answered[seq] {
				answered[seq] = true
				if got++; got == count {
					close(all)
				}
			}
		})
	}()
	sentAt := make([]time.Time, 0, count)
	payload := make([]byte, max(r.Size-e.overhead, 0))
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for seq := range count {
		if ctx.Err() != nil {
			break
		}
		if seq > 0 {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		sentAt = append(sentAt, time.Now())
		if err := e.send(seq, payload); err != nil {
			result.Error = explain(err)
		}
	}
	select {
	case <-all:
	case <-time.After(timeout):
	case <-ctx.Done():
	}
	e.Close()
	<-done
	result.Sent, result.Received = len(sentAt), got
	if len(sentAt) > 0 {
		result.TookMS = int(time.Since(sentAt[0]).Milliseconds())
	}
	result.Outages, result.LastAnswered = outages(sentAt, answered[:len(sentAt)], interval)
	for _, o := range result.Outages {
		result.LongestMS = max(result.LongestMS, o.LengthMS)
	}
	result.Outages, result.MoreOutages = longestOutages(result.Outages, contract.MaxOutages)
	if got > 0 {
		result.Error = ""
	}
	return result
}

// longestOutages returns the longest outages, in their order, and how many there are besides.
func longestOutages(all []contract.PingOutage, most int) (kept []contract.PingOutage, more int) {
	if len(all) <= most {
		return all, 0
	}
	kept = slices.Clone(all)
	slices.SortStableFunc(kept, func(a, b contract.PingOutage) int { return cmp.Compare(b.LengthMS, a.LengthMS) })
	kept = kept[:most]
	slices.SortFunc(kept, func(a, b contract.PingOutage) int { return cmp.Compare(a.AtMS, b.AtMS) })
	return kept, len(all) - most
}

// outages returns the times without an answer: from the first request that had none to the next
// that had one. It reports whether the last request had one.
func outages(sent []time.Time, answered []bool, interval time.Duration) (out []contract.PingOutage, last bool) {
	begin := -1
	add := func(end time.Time) {
		out = append(out, contract.PingOutage{AtMS: int(sent[begin].Sub(sent[0]).Milliseconds()), LengthMS: int(end.Sub(sent[begin]).Milliseconds())})
		begin = -1
	}
	for i, ok := range answered {
		switch {
		case !ok && begin < 0:
			begin = i
		case ok && begin >= 0:
			add(sent[i])
		}
	}
	last = begin < 0 && len(answered) > 0
	if begin >= 0 {
		add(sent[len(sent)-1].Add(interval))
	}
	return out, last
}

// explain shortens the errors of sockets.
func explain(err error) string {
	for number, text := range map[unix.Errno]string{
		unix.ENETUNREACH: "no route", unix.EHOSTUNREACH: "no route", unix.EMSGSIZE: "the packets are larger than the MTU of the interface",
		unix.EADDRNOTAVAIL: "the node does not have the source address", unix.ENODEV: "there is no such interface",
	} {
		if errors.Is(err, number) {
			return text
		}
	}
	return err.Error()
}
