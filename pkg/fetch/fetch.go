// Package fetch brings what a topology names by URL: the topology itself, its
// startup-configs and licences, and Git repositories.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxSize is the most that one URL may hold, in bytes.
const MaxSize = 64 << 20

// maxTime is how long one URL may take.
const maxTime = time.Minute

// HTTP gets the body of an http or https URL, wherever it is. It fails for any status
// but 200, for a body of more than MaxSize bytes, and after 60 seconds. Its errors name
// no passwords.
func HTTP(ctx context.Context, url string) ([]byte, error) { return get(ctx, url, anywhere) }

// Public is HTTP for a URL that a stranger chose: only public addresses are asked, also
// after redirects, and whatever a name resolves to at the moment.
func Public(ctx context.Context, url string) ([]byte, error) { return get(ctx, url, publicOnly) }

// Typed is HTTP for a URL that the user typed. It may be in a private network. A server
// with a public address cannot redirect into one, and no name can lead to this machine
// itself or to what only it reaches, but "localhost" and addresses that are typed.
func Typed(ctx context.Context, url string) ([]byte, error) { return get(ctx, url, asTyped) }

func get(ctx context.Context, url string, r rule) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	resp, done, err := open(ctx, url, newGuard(r))
	if err != nil {
		return nil, err
	}
	defer done()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", Redact(url), resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", Redact(url), err)
	}
	if len(body) > MaxSize {
		return nil, fmt.Errorf("GET %s: more than %d bytes", Redact(url), MaxSize)
	}
	return body, nil
}

// maxRedirects is how often a server may send the request elsewhere.
const maxRedirects = 5

// open sends the request. done ends it.
func open(ctx context.Context, url string, g *guard) (resp *http.Response, done func(), err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, redacted{err}
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, nil, fmt.Errorf("GET %s: only http and https are supported", Redact(url))
	}
	transport := g.transport()
	client := &http.Client{Transport: transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return nil
	}}
	resp, err = client.Do(req)
	if err != nil {
		transport.CloseIdleConnections()
		return nil, nil, redacted{err}
	}
	return resp, func() { resp.Body.Close(); transport.CloseIdleConnections() }, nil
}
