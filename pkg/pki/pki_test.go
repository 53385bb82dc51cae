package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

func TestIssue(t *testing.T) {
	ca, err := NewAuthority("demo", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	request := Request{CommonName: "R1.demo.io", Names: []string{"R1", "clab-demo-R1", "172.20.20.2", "3fff:172:20:20::2"}}
	first, err := ca.Issue(request, Pair{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(first.Cert, first.Key); err != nil {
		t.Error(err)
	}
	cert, err := parse(first.Cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	for _, name := range []string{"R1", "clab-demo-R1", "172.20.20.2", "3fff:172:20:20::2"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A device's clock may be some minutes behind or ahead.
	for _, off := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now().Add(off)}); err != nil {
			t.Errorf("by a clock that is %s off: %v", off, err)
		}
	}
	if life := cert.NotAfter.Sub(cert.NotBefore); life < defaultValidity || life > defaultValidity+time.Hour {
		t.Errorf("valid for %s", life)
	}

	// The authority comes back from its Secret.
	again, err := LoadAuthority(ca.Pair)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority("demo", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := request
	named.Names = append([]string{"more"}, request.Names...)
	for what, c := range map[string]struct {
		ca      *Authority
		request Request
		same    bool
	}{
		"the same":          {again, request, true},
		"another name":      {again, named, false},
		"another authority": {other, request, false},
	} {
		got, err := c.ca.Issue(c.request, first)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(got.Cert, first.Cert) != c.same {
			t.Errorf("%s: the certificate stays: %v, want %v", what, !c.same, c.same)
		}
	}
	if again.fits(request, first, cert.NotAfter.Add(-renew+time.Hour)) {
		t.Error("a certificate in its last month stays")
	}
}

func TestLoadAuthorityRefuses(t *testing.T) {
	ca, err := NewAuthority("demo", 0, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]Pair{
		"no certificate": {nil, ca.Key}, "no key": {ca.Cert, nil}, "the key's place": {ca.Key, ca.Key}, "the certificate's place": {ca.Cert, ca.Cert},
	} {
		if _, err := LoadAuthority(p); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
