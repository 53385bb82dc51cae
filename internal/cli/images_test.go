package cli

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestRegistryCA pins an image of a registry whose certificate no system trusts.
func TestRegistryCA(t *testing.T) {
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail on purpose
	server.StartTLS()
	t.Cleanup(server.Close)
	image := strings.TrimPrefix(server.URL, "https://") + "/net/frr:1"
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	content, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, content, remote.WithTransport(server.Client().Transport)); err != nil {
		t.Fatal(err)
	}
	digest, err := content.Digest()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	topo := write("ca.clab.yml", fmt.Sprintf("name: ca\ntopology:\n  nodes:\n    r1: {kind: linux, image: %q}\n", image))
	ca := write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))

	if out, errs, code := run(t, "render", topo, "--pin", "--registry-ca", ca); code != 0 || !strings.Contains(out, digest.String()) {
		t.Errorf("with the certificate: exit code %d, %s", code, errs)
	}
	if out, errs, code := run(t, "render", topo, "--pin"); code != 1 || out != "" || !strings.Contains(errs, "certificate") {
		t.Errorf("without it: exit code %d, %q, %s", code, out, errs)
	}
	for file, want := range map[string]string{topo: "has no certificate in PEM", filepath.Join(dir, "none.pem"): "no such file"} {
		if _, errs, code := run(t, "render", topo, "--pin", "--registry-ca", file); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", file, code, errs)
		}
	}
}
