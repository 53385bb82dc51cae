// Package dns is the resolver of a Pod's device, as Docker's is of a container: it listens
// on the gateway of the management network, knows the names of the lab and asks the
// cluster's DNS for all others. So names resolve wherever the device's default route leads.
package dns

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Port is the resolver's, of UDP and TCP.
const Port = 53

// The bounds of what the device can have from the resolver.
const (
	// inFlight bounds the questions that wait for the cluster's DNS.
	inFlight = 64
	// maxConns bounds the TCP connections, which end after idle without a question.
	maxConns = 16
	idle     = 10 * time.Second
	// maxQuery is the longest question, in bytes.
	maxQuery = 4096
)

// Server is the resolver. Its sockets are in the network namespace of the caller of
// Listen.
type Server struct {
	servers []string
	log     *slog.Logger
	slots   chan struct{}
	conns   chan struct{}

	mu       sync.Mutex
	sockets  map[netip.AddrPort][]io.Closer
	hosts    []byte
	names    map[string][]netip.Addr
	external bool
}

// New returns a resolver that asks the servers (host:port), one after the other.
func New(servers []string, log *slog.Logger) *Server {
	return &Server{
		servers: servers, log: log, slots: make(chan struct{}, inFlight), conns: make(chan struct{}, maxConns),
		sockets: map[netip.AddrPort][]io.Closer{}, external: true,
	}
}

// Set takes the lab's names, as lines of hosts(5), and whether other names are asked for.
func (s *Server) Set(hosts []byte, external bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.external = external
	if s.names != nil && bytes.Equal(hosts, s.hosts) {
		return
	}
	names := map[string][]netip.Addr{}
	for line := range strings.Lines(string(hosts)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil {
			continue
		}
		for _, name := range fields[1:] {
			name = strings.ToLower(strings.TrimSuffix(name, "."))
			names[name] = append(names[name], a)
		}
	}
	s.hosts, s.names = hosts, names
}

// Listen has sockets at these addresses, and at no others.
func (s *Server) Listen(at ...netip.AddrPort) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := map[netip.AddrPort]bool{}
	var errs []error
	for _, a := range at {
		want[a] = true
		if s.sockets[a] == nil {
			errs = append(errs, s.open(a))
		}
	}
	for a, sockets := range s.sockets {
		if !want[a] {
			for _, c := range sockets {
				c.Close()
			}
			delete(s.sockets, a)
		}
	}
	return errors.Join(errs...)
}

// Close closes the sockets.
func (s *Server) Close() { _ = s.Listen() }

func (s *Server) open(at netip.AddrPort) error {
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return fmt.Errorf("resolver at %s: %w", at, err)
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		u.Close()
		return fmt.Errorf("resolver at %s: %w", at, err)
	}
	s.sockets[at] = []io.Closer{u, l}
	go s.serveUDP(u)
	go s.serveTCP(l)
	return nil
}

func (s *Server) serveUDP(u *net.UDPConn) {
	buffer := make([]byte, maxQuery+1)
	for {
		n, from, err := u.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n > maxQuery {
			continue
		}
		query := append([]byte(nil), buffer[:n]...)
		select {
		case s.slots <- struct{}{}:
		default:
			continue // it asks again
		}
		go func() {
			defer func() { <-s.slots }()
			if answer := s.answer(context.Background(), "udp", query); answer != nil {
				_, _ = u.WriteToUDPAddrPort(answer, from)
			}
		}()
	}
}

func (s *Server) serveTCP(l *net.TCPListener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		select {
		case s.conns <- struct{}{}:
		default:
			c.Close()
			continue
		}
		go func() {
			defer func() { c.Close(); <-s.conns }()
			s.serveConn(c)
		}()
	}
}

// serveConn answers the questions of a connection one after the other (RFC 7766).
func (s *Server) serveConn(c net.Conn) {
	for {
		_ = c.SetDeadline(time.Now().Add(idle))
		query, err := readTCP(c, maxQuery)
		if err != nil {
			return
		}
		s.slots <- struct{}{}
		answer := s.answer(context.Background(), "tcp", query)
		<-s.slots
		if answer == nil || writeTCP(c, answer) != nil {
			return
		}
	}
}

// readTCP reads a message with its length before it (RFC 1035, 4.2.2).
func readTCP(r io.Reader, most int) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n > most {
		return nil, fmt.Errorf("a message of %d bytes, longer than %d", n, most)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(r, message)
	return message, err
}

func writeTCP(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}
