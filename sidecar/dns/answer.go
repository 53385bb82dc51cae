package dns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// ttl is how long an address of the lab may be kept, in seconds.
const ttl = 5

// onePatience is how long one server may take, and allPatience all of them.
const (
	onePatience = 2 * time.Second
	allPatience = 5 * time.Second
)

// answer answers a question from a network. It returns nil for a question to ignore.
func (s *Server) answer(ctx context.Context, network string, query []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	q, err := p.Question()
	switch {
	case err != nil:
		return reply(h, nil, dnsmessage.RCodeFormatError, nil)
	case h.OpCode != 0:
		return reply(h, &q, dnsmessage.RCodeNotImplemented, nil)
	}
	s.mu.Lock()
	addrs, known := s.names[strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))]
	external := s.external
	s.mu.Unlock()
	if known && q.Class == dnsmessage.ClassINET {
		return reply(h, &q, dnsmessage.RCodeSuccess, addrs)
	}
	if !external {
		return reply(h, &q, dnsmessage.RCodeRefused, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, allPatience)
	defer cancel()
	for _, server := range s.servers {
		answer, err := ask(ctx, network, server, query, q)
		if err == nil {
			return answer
		}
		s.log.Debug("resolver", "server", server, "error", err)
	}
	return reply(h, &q, dnsmessage.RCodeServerFailure, nil)
}

// reply is the resolver's own answer.
func reply(to dnsmessage.Header, q *dnsmessage.Question, code dnsmessage.RCode, addrs []netip.Addr) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{
		ID: to.ID, Response: true, OpCode: to.OpCode, Authoritative: code == dnsmessage.RCodeSuccess, RecursionDesired: to.RecursionDesired, RecursionAvailable: true, RCode: code,
	}}
	if q != nil {
		m.Questions = []dnsmessage.Question{*q}
		for _, a := range addrs {
			header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl}
			switch {
			case a.Is4() && q.Type == dnsmessage.TypeA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
			case a.Is6() && q.Type == dnsmessage.TypeAAAA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// ask passes a question on as it is, but for its number, and the answer back. The answer
// must be one to this question: whoever forges one has to find the port and the number.
func ask(ctx context.Context, network, server string, query []byte, q dnsmessage.Question) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, onePatience)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	asked := append([]byte(nil), query...)
	_, _ = rand.Read(asked[:2])
	if network == "tcp" {
		err = writeTCP(c, asked)
	} else {
		_, err = c.Write(asked)
	}
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, 64<<10)
	for {
		answer := buffer
		if network == "tcp" {
			answer, err = readTCP(c, len(buffer))
		} else {
			var n int
			n, err = c.Read(buffer)
			answer = buffer[:n]
		}
		if err != nil {
			return nil, err
		}
		if answers(answer, asked, q) {
			copy(answer[:2], query[:2])
			return answer, nil
		}
		if network == "tcp" {
			return nil, errors.New("the server answers another question")
		}
	}
}

// answers reports whether a message is an answer to the question asked.
func answers(message, asked []byte, q dnsmessage.Question) bool {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || !h.Response || h.ID != binary.BigEndian.Uint16(asked) {
		return false
	}
	got, err := p.Question()
	if errors.Is(err, dnsmessage.ErrSectionDone) { // as with an error of format
		return h.RCode != dnsmessage.RCodeSuccess
	}
	return err == nil && got.Type == q.Type && got.Class == q.Class && strings.EqualFold(got.Name.String(), q.Name.String())
}
