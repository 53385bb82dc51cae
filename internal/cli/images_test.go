package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/c9s-lab/c9s/internal/registrytest"
)

// TestRegistryCA pins an image of a registry whose certificate no system trusts.
func TestRegistryCA(t *testing.T) {
	content, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	host, certificate := registrytest.TLS(t, "net/frr:1", content)
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
	topo := write("ca.clab.yml", fmt.Sprintf("name: ca\ntopology:\n  nodes:\n    r1: {kind: linux, image: %q}\n", host+"/net/frr:1"))
	ca := write("ca.pem", string(certificate))

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
