package image

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// limited bounds the requests for one image, and the bodies of all answers together. A manifest says how large the
// configuration is, and a registry may say anything.
type limited struct {
	below    http.RoundTripper
	read     atomic.Int64
	requests atomic.Int64
}

// maxRequests is how many requests one image may take: the client follows redirects
// without end.
const maxRequests = 50

func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.requests.Add(1) > maxRequests {
		return nil, errors.New("too many redirects by the registry")
	}
	resp, err := l.below.RoundTrip(req)
	if err == nil {
		resp.Body = &limitedBody{resp.Body, l}
	}
	return resp, err
}

type limitedBody struct {
	io.ReadCloser
	all *limited
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.all.read.Add(int64(n)) > maxAnswer {
		return 0, fmt.Errorf("the answer of the registry exceeds %d bytes", maxAnswer)
	}
	return n, err
}
