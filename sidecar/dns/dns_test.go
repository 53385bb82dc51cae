package dns

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const hosts = "172.20.20.11\tR1 clab-demo-R1\n3fff:172:20:20::b\tR1 clab-demo-R1\n172.20.20.12\tr2.\nno.address\tr3\n172.20.20.14\n"

func question(id uint16, name string, kind dnsmessage.Type) []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	out, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return out
}

// upstream is a cluster's DNS: it answers what answer makes of a question.
func upstream(t *testing.T, answer func(query []byte) [][]byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); u.Close() })
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, from, err := u.ReadFrom(buffer)
			if err != nil {
				return
			}
			for _, a := range answer(bytes.Clone(buffer[:n])) {
				_, _ = u.WriteTo(a, from)
			}
		}
	}()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if q, err := readTCP(c, maxQuery); err == nil {
				for _, a := range answer(q) {
					_ = writeTCP(c, a)
				}
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}

// honest answers each question with one text, of its name.
func honest(query []byte) [][]byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil {
		return nil
	}
	m.Response = true
	m.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET},
		Body:   &dnsmessage.TXTResource{TXT: []string{"this is " + m.Questions[0].Name.String()}},
	}}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return [][]byte{out}
}

func lying(change func([]byte)) func([]byte) [][]byte {
	return func(query []byte) [][]byte {
		lie := honest(query)[0]
		change(lie)
		return append([][]byte{lie}, honest(query)...)
	}
}

// text is an answer in words: its code, and what it has.
func text(t *testing.T, message []byte) string {
	t.Helper()
	if message == nil {
		return "nothing"
	}
	var m dnsmessage.Message
	if err := m.Unpack(message); err != nil {
		t.Fatalf("%x: %v", message, err)
	}
	words := []string{strings.TrimPrefix(m.RCode.String(), "RCode")}
	for _, a := range m.Answers {
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			words = append(words, netip.AddrFrom4(b.A).String())
		case *dnsmessage.AAAAResource:
			words = append(words, netip.AddrFrom16(b.AAAA).String())
		case *dnsmessage.TXTResource:
			words = append(words, b.TXT...)
		}
	}
	if m.ID != 7 || !m.Response {
		t.Errorf("the answer has the number %d", m.ID)
	}
	return strings.Join(words, " ")
}

func TestAnswers(t *testing.T) {
	dead, err := net.ListenPacket("udp", "127.0.0.1:0") // takes questions, and answers none
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	ok := upstream(t, honest)
	notImplemented := question(7, "r2.", dnsmessage.TypeA)
	notImplemented[2] |= 2 << 3
	response := question(7, "r2.", dnsmessage.TypeA)
	response[2] |= 0x80
	for name, c := range map[string]struct {
		query   []byte
		servers []string
		inside  bool
		network string
		want    string
	}{
		"IPv4 address":              {query: question(7, "r1.", dnsmessage.TypeA), want: "Success 172.20.20.11"},
		"IPv6 address":              {query: question(7, "R1.", dnsmessage.TypeAAAA), want: "Success 3fff:172:20:20::b"},
		"other name":                {query: question(7, "CLAB-demo-r1.", dnsmessage.TypeA), want: "Success 172.20.20.11"},
		"no such address":           {query: question(7, "r2.", dnsmessage.TypeAAAA), want: "Success"},
		"no such thing":             {query: question(7, "r2.", dnsmessage.TypeMX), want: "Success"},
		"a name with no address":    {query: question(7, "r3.", dnsmessage.TypeA), servers: []string{ok}, want: "Success this is r3."},
		"asked of the cluster":      {query: question(7, "a.example.", dnsmessage.TypeTXT), servers: []string{ok}, want: "Success this is a.example."},
		"by TCP":                    {query: question(7, "a.example.", dnsmessage.TypeTXT), servers: []string{ok}, network: "tcp", want: "Success this is a.example."},
		"the first does not answer": {query: question(7, "a.example.", dnsmessage.TypeTXT), servers: []string{dead.LocalAddr().String(), ok}, want: "Success this is a.example."},
		"the first refuses TCP":     {query: question(7, "a.example.", dnsmessage.TypeTXT), servers: []string{dead.LocalAddr().String(), ok}, network: "tcp", want: "Success this is a.example."},
		"no server":                 {query: question(7, "a.example.", dnsmessage.TypeTXT), want: "ServerFailure"},
		"no external access":        {query: question(7, "a.example.", dnsmessage.TypeTXT), servers: []string{ok}, inside: true, want: "Refused"},
		"the lab's without access":  {query: question(7, "r2.", dnsmessage.TypeA), servers: []string{ok}, inside: true, want: "Success 172.20.20.12"},
		"a forged number":           {query: question(7, "a.example.", dnsmessage.TypeTXT), servers: []string{upstream(t, lying(func(m []byte) { m[0]++ }))}, want: "Success this is a.example."},
		"a forged name":             {query: question(7, "a.example.", dnsmessage.TypeTXT), servers: []string{upstream(t, lying(func(m []byte) { m[13]++ }))}, want: "Success this is a.example."},
		"a question for an answer":  {query: question(7, "a.example.", dnsmessage.TypeTXT), servers: []string{upstream(t, lying(func(m []byte) { m[2] &^= 0x80 }))}, want: "Success this is a.example."},
		"another operation":         {query: notImplemented, want: "NotImplemented"},
		"an answer for a question":  {query: response, want: "nothing"},
		"a header alone":            {query: question(7, "r1.", dnsmessage.TypeA)[:12], want: "FormatError"},
		"no message":                {query: []byte("hello"), want: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(c.servers, slog.New(slog.DiscardHandler))
			s.Set([]byte(hosts), !c.inside)
			network := c.network
			if network == "" {
				network = "udp"
			}
			if got := text(t, s.answer(t.Context(), network, c.query)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// listening is a server at an address of its own.
func listening(t *testing.T, servers ...string) (*Server, string) {
	t.Helper()
	s := New(servers, slog.New(slog.DiscardHandler))
	s.Set([]byte(hosts), true)
	for port := uint16(20053); port < 20153; port++ {
		at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.77"), port)
		if s.Listen(at) == nil {
			t.Cleanup(s.Close)
			return s, at.String()
		}
	}
	t.Fatal("no port is free")
	return nil, ""
}

// Go's own client resolves by the server, over UDP and TCP.
func TestServer(t *testing.T) {
	_, at := listening(t, upstream(t, honest))
	for _, network := range []string{"udp", "tcp"} {
		r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, at)
		}}
		addrs, err := r.LookupHost(t.Context(), "R1.")
		slices.Sort(addrs)
		if err != nil || strings.Join(addrs, " ") != "172.20.20.11 3fff:172:20:20::b" {
			t.Errorf("%s: %v, %v", network, addrs, err)
		}
		if texts, err := r.LookupTXT(t.Context(), "b.example."); err != nil || strings.Join(texts, " ") != "this is b.example." {
			t.Errorf("%s: %v, %v", network, texts, err)
		}
	}
}

// A device that asks without end has so many questions under way and no more, and still
// gets what needs no server.
func TestBounds(t *testing.T) {
	var asked atomic.Int32
	silent := upstream(t, func([]byte) [][]byte { asked.Add(1); return nil })
	s, at := listening(t, silent)
	c, err := net.Dial("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 10 * inFlight {
		_, _ = c.Write(question(uint16(i), fmt.Sprintf("n%d.example.", i), dnsmessage.TypeA))
	}
	wait(t, "all slots are taken", func() bool { return len(s.slots) == inFlight })
	if n := asked.Load(); n > inFlight {
		t.Errorf("%d questions were passed on at once, want %d at most", n, inFlight)
	}
	_, _ = c.Write(make([]byte, maxQuery+1))
	wait(t, "the slots are free again", func() bool { return len(s.slots) == 0 })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = c.Write(question(7, "r1.", dnsmessage.TypeA))
	buffer := make([]byte, 512)
	for { // what was asked before fails
		n, err := c.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if string(buffer[:2]) == "\x00\x07" && bytes.Contains(buffer[:n], []byte("\x02r1")) {
			break
		}
	}
	var conns []net.Conn
	for range 2 * maxConns {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	closed := 0
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err == io.EOF || err != nil && !os.IsTimeout(err) {
			closed++
		}
	}
	if closed < maxConns {
		t.Errorf("%d of %d connections were closed, want %d", closed, len(conns), maxConns)
	}
}

func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 seconds", what)
		}
	}
}

// Sockets are where they are asked for, and nowhere else.
func TestListen(t *testing.T) {
	s, at := listening(t)
	other := netip.MustParseAddrPort(strings.Replace(at, "127.0.0.77", "127.0.0.78", 1))
	for range 2 {
		if err := s.Listen(other); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := net.Dial("tcp", other.String()); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if c, err := net.Dial("tcp", at); err == nil {
		c.Close()
		t.Errorf("%s still listens", at)
	}
}

// The kubelet's file is read once and replaced once; then it is the devices'.
func TestConf(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "state", "resolv.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	load := func() *Conf {
		t.Helper()
		c, err := Load(file, path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Servers, []string{"10.96.0.10:53", "[fd00::a]:53"}) || !slices.Equal(c.Search, []string{"lab.svc.cluster.local", "cluster.local"}) {
			t.Errorf("servers %v, search %v", c.Servers, c.Search)
		}
		return c
	}
	write("search lab.svc.cluster.local cluster.local\nnameserver 10.96.0.10\nnameserver fd00::a\noptions ndots:5")
	load()
	gateway := netip.MustParseAddr("172.20.20.1")
	const want = "nameserver 172.20.20.1\nsearch lab.svc.cluster.local cluster.local\noptions ndots:5\n"
	c := load() // a sidecar that was ended before it gave anything
	for range 2 {
		if err := c.Give(gateway); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	write("nameserver 9.9.9.9\n")
	if err := load().Give(gateway); err != nil || read() != "nameserver 9.9.9.9\n" {
		t.Errorf("a device's own file: %q, %v", read(), err)
	}
	// Without servers there is nothing to replace.
	write("options ndots:5\n")
	c, err := Load(filepath.Join(dir, "none.json"), path)
	if err == nil {
		err = c.Give(gateway)
	}
	if err != nil || read() != "options ndots:5\n" {
		t.Errorf("no servers: %q, %v", read(), err)
	}
}

// FuzzAnswer: whatever a device asks is answered with a message of its number, or not.
func FuzzAnswer(f *testing.F) {
	f.Add(question(7, "r1.", dnsmessage.TypeA))
	f.Add(question(7, "example.org.", dnsmessage.TypeAAAA))
	s := New(nil, slog.New(slog.DiscardHandler))
	s.Set([]byte(hosts), true)
	f.Fuzz(func(t *testing.T, query []byte) {
		answer := s.answer(t.Context(), "udp", query)
		if answer == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || !m.Response || !bytes.Equal(answer[:2], query[:2]) {
			t.Errorf("%x is answered with %x: %v", query, answer, err)
		}
	})
}
