package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	netproxy "golang.org/x/net/proxy"

	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// start starts a proxy into a lab of one node, R1, which has a plain and an encrypted page.
func start(t *testing.T) (address string, plain, encrypted *httptest.Server) {
	t.Helper()
	page := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %s %s", r.Host, r.URL.RequestURI(), body)
	})
	plain, encrypted = httptest.NewServer(page), httptest.NewUnstartedServer(page)
	encrypted.EnableHTTP2 = true
	encrypted.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(encrypted.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Serve(ctx, l, func(_ context.Context, host string, port uint16) (net.Conn, error) {
			switch {
			case host != "R1" && host != "172.20.20.2" && host != "3fff::2":
				return nil, &tunnel.DialError{Reason: tunnel.Denied, Text: host + " is no node"}
			case port == 80:
				return net.Dial("tcp", plain.Listener.Addr().String())
			case port == 443:
				return net.Dial("tcp", encrypted.Listener.Addr().String())
			}
			return nil, &tunnel.DialError{Reason: tunnel.Refused, Text: "connection refused"}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l.Addr().String(), plain, encrypted
}

func client(proxy string) *http.Client {
	at, err := url.Parse(proxy)
	if err != nil {
		panic(err)
	}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// Clients of all forms reach the node's pages.
func TestPages(t *testing.T) {
	address, _, _ := start(t)
	for _, proxy := range []string{"http://" + address, "socks5://" + address, "socks5h://" + address} {
		c := client(proxy)
		for _, target := range []string{"http://R1/a", "http://172.20.20.2/a", "https://R1/a", "http://[3fff::2]/a"} {
			for range 2 { // the second time over the same connection
				resp, err := c.Post(target, "text/plain", strings.NewReader("body"))
				if err != nil {
					t.Errorf("%s by %s: %v", target, proxy, err)
					continue
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if want := resp.Request.URL.Host + " /a body"; string(got) != want || err != nil {
					t.Errorf("%s by %s: %q, %v", target, proxy, got, err)
				}
			}
		}
		c.CloseIdleConnections()
	}
}

// Queries reach the node as they are, also those that Go does not understand.
func TestQueries(t *testing.T) {
	address, _, _ := start(t)
	c := client("http://" + address)
	defer c.CloseIdleConnections()
	for _, query := range []string{"a=1&b=2", "a=1;b=2", "a=%zz&b", "%"} {
		resp, err := c.Get("http://R1/a?" + query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := "R1 /a?" + query + " "; string(got) != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// What is not a node's is refused, with the reason.
func TestRefusals(t *testing.T) {
	address, _, _ := start(t)
	for target, want := range map[string]string{
		"http://example.com/": "403 example.com is no node", "http://R1:81/": "502 connection refused",
		"http://127.0.0.1/": "403 127.0.0.1 is no node",
	} {
		resp, err := client("http://" + address).Get(target)
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(body))); got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
	for target, want := range map[string]string{"example.com:80": "connection not allowed by ruleset", "R1:81": "connection refused"} {
		dialer, err := netproxy.SOCKS5("tcp", address, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dialer.Dial("tcp", target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", target, err, want)
		}
	}
	resp, err := http.Get("http://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("the proxy's own page: %s", resp.Status)
	}
}

// HTTP/2 passes through CONNECT, as gRPC needs it.
func TestHTTP2(t *testing.T) {
	address, _, _ := start(t)
	c := client("http://" + address)
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	resp, err := c.Get("https://R1/a")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); resp.ProtoMajor != 2 || string(got) != "R1 /a " || err != nil {
		t.Errorf("%s: %q, %v", resp.Proto, got, err)
	}
	c.CloseIdleConnections()
}

// A gRPC call that streams both ways passes through CONNECT, with TLS and without: messages with
// a length, each answered before the next one is sent, and trailers.
func TestGRPC(t *testing.T) {
	echo := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Te") != "trailers" {
			t.Errorf("the call arrives as %s with %v", r.Proto, r.Header)
		}
		rw.Header().Set("Content-Type", "application/grpc")
		rw.Header().Set("Trailer", "Grpc-Status")
		message := make([]byte, 5+4)
		for {
			if _, err := io.ReadFull(r.Body, message); err != nil {
				break
			}
			_, _ = rw.Write(message)
			rw.(http.Flusher).Flush()
		}
		rw.Header().Set("Grpc-Status", "0")
	})
	for _, encrypted := range []bool{false, true} {
		node := httptest.NewUnstartedServer(echo)
		var protocols http.Protocols
		protocols.SetHTTP2(encrypted)
		protocols.SetUnencryptedHTTP2(!encrypted)
		node.Config.Protocols = &protocols
		scheme := "http"
		if encrypted {
			node.EnableHTTP2, scheme = true, "https"
			node.StartTLS()
		} else {
			node.Start()
		}
		defer node.Close()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Serve(ctx, l, func(context.Context, string, uint16) (net.Conn, error) {
				return net.Dial("tcp", node.Listener.Addr().String())
			})
		}()
		transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		if encrypted {
			transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()})
		} else { // as gRPC libraries do it: Go's client uses CONNECT for https only
			transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return connectTo(l.Addr().String(), "R1:57401")
			}
		}
		body, send := io.Pipe()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://R1:57401/gnmi.gNMI/Subscribe", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("Te", "trailers")
		go func() { _, _ = send.Write([]byte("\x00\x00\x00\x00\x04one!")) }()
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 9)
		for _, text := range []string{"one!", "two!", "3333"} {
			if text != "one!" {
				_, _ = send.Write([]byte("\x00\x00\x00\x00\x04" + text))
			}
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got[5:]) != text {
				t.Errorf("%q, %v, want %s", got, err, text)
			}
		}
		send.Close()
		if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 || resp.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("it ends with %q, %v, %v", rest, resp.Trailer, err)
		}
		resp.Body.Close()
		transport.CloseIdleConnections()
		cancel()
		<-done
	}
}

// connectTo asks a proxy for a connection.
func connectTo(proxy, to string) (net.Conn, error) {
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", to)
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 1), nil)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the proxy answers %s", resp.Status)
	}
	return c, err
}

// Many clients at a time.
func TestManyClients(t *testing.T) {
	address, _, _ := start(t)
	dialer, err := netproxy.SOCKS5("tcp", address, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 200 {
		group.Go(func() {
			c, err := dialer.Dial("tcp", "R1:80")
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprint(c, "GET /x HTTP/1.0\r\nHost: R1\r\n\r\n")
			if got, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(got), "R1 /x ") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	group.Wait()
}

func FuzzHandshake(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x02R1\x00\x50"))
	f.Add([]byte("\x05\x02\x02\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\x01\x02"))
	f.Fuzz(func(t *testing.T, data []byte) {
		host, _, reply := handshake(&script{Reader: strings.NewReader(string(data))})
		if reply == replySucceeded && len(host) > 255 || reply != replySucceeded && host != "" {
			t.Errorf("%q: reply %d for host %q", data, reply, host)
		}
	})
}

type script struct{ io.Reader }

func (*script) Write(p []byte) (int, error) { return len(p), nil }
