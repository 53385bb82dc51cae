package registry

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFullName(t *testing.T) {
	for short, want := range map[string]string{
		"alpine":                      "docker.io/library/alpine:latest",
		"alpine:3":                    "docker.io/library/alpine:3",
		"frrouting/frr:v8.4.1":        "docker.io/frrouting/frr:v8.4.1",
		"quay.io/frrouting/frr":       "quay.io/frrouting/frr:latest",
		"localhost/mine:dev":          "localhost/mine:dev",
		"10.0.0.1:5000/tools/net:1.0": "10.0.0.1:5000/tools/net:1.0",
	} {
		if got := FullName(short); got != want {
			t.Errorf("FullName(%q) = %q, want %q", short, got, want)
		}
	}
}

func TestPulls(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"c9s.test/frr:latest", "ghcr.io/c9s-lab/c9s:dev", "quay.io/frrouting/frr:exact"} {
		writeLayout(t, filepath.Join(dir, strings.NewReplacer("/", "-", ":", "-").Replace(name)), name)
	}
	server := httptest.NewServer(Registry{Dir: dir})
	defer server.Close()

	for _, test := range []struct{ path, want string }{
		{"/v2/c9s-lab/c9s/manifests/dev?ns=ghcr.io", "ghcr.io/c9s-lab/c9s:dev"},
		{"/v2/frrouting/frr/manifests/10.2.1?ns=quay.io", "c9s.test/frr:latest"},
		{"/v2/frrouting/frr/manifests/exact?ns=quay.io", "quay.io/frrouting/frr:exact"},
		{"/v2/frrouting/frr/manifests/v8.4.1?ns=docker.io", "c9s.test/frr:latest"},
		{"/v2/library/alpine/manifests/3?ns=docker.io", ""}, // its stand-in was not loaded
		{"/v2/srlinux/manifests/latest?ns=ghcr.io", ""},
	} {
		response, err := http.Get(server.URL + test.path)
		if err != nil {
			t.Fatal(err)
		}
		var manifest struct{ Name string }
		err = json.NewDecoder(response.Body).Decode(&manifest)
		response.Body.Close()
		switch {
		case test.want == "" && response.StatusCode != http.StatusNotFound:
			t.Errorf("%s: status %d, want 404", test.path, response.StatusCode)
		case test.want != "" && (err != nil || manifest.Name != test.want):
			t.Errorf("%s: got %q, %v, want %q", test.path, manifest.Name, err, test.want)
		}
	}
}

// writeLayout writes a layout whose manifest contains the image's name.
func writeLayout(t *testing.T, dir, name string) {
	t.Helper()
	digest := strings.Repeat("0", 60) + map[string]string{"c9s.test/frr:latest": "000a", "ghcr.io/c9s-lab/c9s:dev": "000b"}[name]
	digest += strings.Repeat("c", 64-len(digest))
	for path, text := range map[string]string{
		"blobs/sha256/" + digest: `{"name":"` + name + `"}`,
		"index.json":             `{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + digest + `","annotations":{"` + NameAnnotation + `":"` + name + `"}}]}`,
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
