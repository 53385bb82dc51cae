package proxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// web is the HTTP proxy: CONNECT, and requests for http URLs.
type web struct {
	dial    Dial
	forward *httputil.ReverseProxy
	handed  *handed
	server  *http.Server
}

func newWeb(dial Dial) *web {
	w := &web{dial: dial, handed: &handed{next: make(chan net.Conn), done: make(chan struct{})}}
	quiet := log.New(io.Discard, "", 0)
	w.forward = &httputil.ReverseProxy{
		// The request goes where it says, as the client wrote it: also a query that Go does not
		// understand.
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.RawQuery = r.In.URL.RawQuery },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return w.connect(ctx, address) },
			// The client and the node agree on it.
			DisableCompression: true,
			IdleConnTimeout:    requestTime,
		},
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, err error) { fail(rw, err) },
		ErrorLog:     quiet,
	}
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: requestTime, ErrorLog: quiet}
	go func() { _ = w.server.Serve(w.handed) }()
	return w
}

func (w *web) close() { w.server.Close() }

// serve has the server take a client, and returns when the client has ended.
func (w *web) serve(client *peeked) {
	_ = client.SetDeadline(time.Time{}) // the server has its own
	given := &given{peeked: client, closed: make(chan struct{})}
	select {
	case w.handed.next <- given:
		<-given.closed
	case <-w.handed.done:
	}
}

// connect dials "host:port".
func (w *web) connect(ctx context.Context, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &tunnel.DialError{Reason: tunnel.Denied, Text: "the address has no port"}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return nil, &tunnel.DialError{Reason: tunnel.Denied, Text: "the port is no number from 1 to 65535"}
	}
	return w.dial(ctx, host, uint16(port))
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		w.tunnel(rw, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		w.forward.ServeHTTP(rw, r)
	default:
		http.Error(rw, "this is a proxy into a lab: set it as the proxy of your client", http.StatusBadRequest)
	}
}

func (w *web) tunnel(rw http.ResponseWriter, r *http.Request) {
	node, err := w.connect(r.Context(), r.Host)
	if err != nil {
		fail(rw, err)
		return
	}
	defer node.Close()
	client, buffered, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	join(&peeked{Conn: client, r: buffered.Reader}, node)
}

// fail answers with the reason in the status line too, where some clients show it.
func fail(rw http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	var e *tunnel.DialError
	if errors.As(err, &e) {
		switch e.Reason {
		case tunnel.Denied:
			code = http.StatusForbidden
		case tunnel.TimedOut:
			code = http.StatusGatewayTimeout
		}
	}
	http.Error(rw, strings.TrimSpace(err.Error()), code)
}

// handed is a listener of connections that somebody else has accepted.
type handed struct {
	next chan net.Conn
	done chan struct{}
	once sync.Once
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.next:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func (h *handed) Addr() net.Addr { return &net.TCPAddr{} }

// given reports when it is closed.
type given struct {
	*peeked
	closed chan struct{}
	once   sync.Once
}

func (g *given) Close() error {
	err := g.peeked.Close()
	g.once.Do(func() { close(g.closed) })
	return err
}
