package image

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Trusting returns a transport that trusts certificate authorities beside the system's: those
// in all for every host, and those in byHost for one host. Both are certificates in PEM.
func Trusting(all []byte, byHost map[string][]byte) (http.RoundTripper, error) {
	others, err := trusting(all)
	if err != nil {
		return nil, err
	}
	t := &trust{others: others, hosts: map[string]http.RoundTripper{}}
	for host, own := range byHost {
		if t.hosts[host], err = trusting(all, own); err != nil {
			return nil, fmt.Errorf("registry %s: %w", host, err)
		}
	}
	return t, nil
}

// trust selects the transport of a host.
type trust struct {
	hosts  map[string]http.RoundTripper
	others http.RoundTripper
}

func (t *trust) RoundTrip(req *http.Request) (*http.Response, error) {
	if own := t.hosts[req.URL.Host]; own != nil {
		return own.RoundTrip(req)
	}
	return t.others.RoundTrip(req)
}

// trusting returns the default transport with more roots.
func trusting(bundles ...[]byte) (http.RoundTripper, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("reading the system's certificate authorities: %w", err)
	}
	for _, pem := range bundles {
		if len(pem) > 0 && !roots.AppendCertsFromPEM(pem) {
			return nil, errors.New("there is no certificate in PEM")
		}
	}
	base, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport is not one of HTTP")
	}
	own := base.Clone()
	own.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return own, nil
}
