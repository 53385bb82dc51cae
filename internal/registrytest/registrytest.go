// Package registrytest serves images to tests.
package registrytest

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TLS serves one image from a registry whose certificate no system trusts, until the test ends.
// It returns the host and the registry's certificate in PEM. The reference of the image is
// relative to the host: "net/frr:1".
func TLS(t testing.TB, reference string, content v1.Image) (host string, ca []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	// A client takes 127.0.0.1 and localhost for plain HTTP, unless TLS is asked for.
	host = strings.TrimPrefix(server.URL, "https://")
	ref, err := name.ParseReference(host + "/" + reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, content, remote.WithTransport(server.Client().Transport)); err != nil {
		t.Fatal(err)
	}
	return host, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
