package image

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestTrusting asks a registry whose certificate no system trusts.
func TestTrusting(t *testing.T) {
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	// A client takes 127.0.0.1 and localhost for plain HTTP, unless TLS is asked for.
	host := strings.TrimPrefix(server.URL, "https://")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	ref, err := name.ParseReference(host + "/net/frr:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, makeImage(t, "amd64"), remote.WithTransport(server.Client().Transport)); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		all    []byte
		byHost map[string][]byte
		want   string // "" for an answer
	}{
		"system only":  {want: "certificate"},
		"for all":      {all: ca},
		"for the host": {byHost: map[string][]byte{host: ca}},
		"for another":  {byHost: map[string][]byte{"registry.example.net": ca}, want: "certificate"},
	} {
		t.Run(what, func(t *testing.T) {
			transport, err := Trusting(c.all, c.byHost)
			if err != nil {
				t.Fatal(err)
			}
			r := Resolver{Transport: transport, Keychain: authn.NewMultiKeychain()}
			_, err = r.Resolve(t.Context(), host+"/net/frr:1")
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Trusting([]byte("no certificate"), nil); err == nil {
		t.Error("a bundle without a certificate is accepted")
	}
}
