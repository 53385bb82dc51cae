package image

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/c9s-lab/c9s/internal/registrytest"
)

// TestTrusting asks a registry whose certificate no system trusts.
func TestTrusting(t *testing.T) {
	host, ca := registrytest.TLS(t, "net/frr:1", makeImage(t, "amd64"))
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
