package image

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// serve starts a registry that counts requests and rejects layers and a repository.
func serve(t *testing.T) (host string, requests *atomic.Int64) {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		if strings.Contains(r.URL.Path, "/private/") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), &count
}

func makeImage(t *testing.T, arch string) v1.Image {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{
		Entrypoint: []string{"/init"}, Cmd: []string{"run"}, User: "frr", Labels: map[string]string{"a": "b"},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "check"}, Retries: 2},
	}
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func push(t *testing.T, image string, img v1.Image) string {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestResolve(t *testing.T) {
	host, requests := serve(t)
	digest := push(t, host+"/net/frr:1", makeImage(t, "amd64"))
	push(t, host+"/net/arm:1", makeImage(t, "arm64"))
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: makeImage(t, "amd64"), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: makeImage(t, "arm64"), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}})
	ref, err := name.ParseReference(host + "/net/multi:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	r := &Resolver{
		CacheDir: t.TempDir(), Keychain: authn.NewMultiKeychain(), Insecure: []string{host},
		Mirrors: map[string]string{"index.docker.io": host, "quay.io": host},
	}
	info, err := r.Resolve(t.Context(), "quay.io/net/frr:1")
	if err != nil {
		t.Fatal(err)
	}
	if info.Digest != digest || info.User != "frr" || info.Entrypoint[0] != "/init" || info.Healthcheck == nil || info.Healthcheck.Retries != 2 || info.Platforms[0] != "linux/amd64" {
		t.Errorf("%+v", info)
	}
	if info, err := r.Resolve(t.Context(), host+"/net/multi:1"); err != nil || strings.Join(info.Platforms, " ") != "linux/amd64 linux/arm64" {
		t.Errorf("%+v, %v", info, err)
	}
	byDigest := "quay.io/net/frr@" + digest
	if _, err := r.Resolve(t.Context(), byDigest); err != nil {
		t.Fatal(err)
	}
	before := requests.Load()
	if _, err := r.Resolve(t.Context(), byDigest); err != nil || requests.Load() != before {
		t.Errorf("an image by digest is asked for again: %v", err)
	}
	for image, want := range map[string]string{
		"quay.io/net/none:1":        "does not have it",
		"quay.io/private/frr:1":     "denies access",
		"quay.io/net/arm:1":         "it is for linux/arm64",
		"Not A Name":                "could not parse reference",
		"127.0.0.1:1/unreachable:1": "refused",
	} {
		if _, err := r.Resolve(t.Context(), image); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), image) {
			t.Errorf("%s: %v, want %q", image, err, want)
		}
	}
}

func TestPin(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for image, want := range map[string]string{
		"alpine":                "alpine@" + digest,
		"alpine:3":              "alpine@" + digest,
		"quay.io:443/a/b:1.0":   "quay.io:443/a/b@" + digest,
		"quay.io/a/b@" + digest: "quay.io/a/b@" + digest,
	} {
		if got, err := Pin(image, digest); got != want || err != nil {
			t.Errorf("Pin(%q) = %q, %v, want %q", image, got, err, want)
		}
	}
	if _, err := Pin("Not A Name", digest); err == nil {
		t.Error("a name that is none was pinned")
	}
}

// TestRegistryThatAnswersWithNonsense: every answer is an error soon, and none fills the
// memory.
func TestRegistryThatAnswersWithNonsense(t *testing.T) {
	var sent, requests atomic.Int64 // of one answer
	endless := func(w http.ResponseWriter) {
		chunk := make([]byte, 1<<20)
		for range 16 * maxAnswer / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
			sent.Add(int64(len(chunk)))
		}
	}
	const manifest = "application/vnd.oci.image.manifest.v1+json"
	const blob = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"endless manifest": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", manifest); endless(w) },
		"endless configuration": func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				endless(w)
				return
			}
			w.Header().Set("Content-Type", manifest)
			_, _ = io.WriteString(w, `{"schemaVersion":2,"mediaType":"`+manifest+`","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":9000000000000,"digest":"`+blob+`"},"layers":[]}`)
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", manifest)
			_, _ = w.Write([]byte("\x00{"))
		},
		"empty": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", manifest)
			_, _ = w.Write([]byte("{}"))
		},
		"null": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", manifest)
			_, _ = w.Write([]byte("null"))
		},
		"no type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "")
			_, _ = w.Write([]byte("{}"))
		},
		"index": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
			_, _ = w.Write([]byte(`{"manifests":[{},{"platform":null}]}`))
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"/x", http.StatusFound) },
		"file": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sent.Store(0)
			requests.Store(0)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) == 10*maxRequests {
					http.Error(w, "enough", http.StatusTeapot)
					return
				}
				if r.URL.Path == "/v2/" {
					return
				}
				answer(w, r)
			}))
			defer server.Close()
			r := Resolver{Keychain: authn.NewMultiKeychain()}
			if info, err := r.Resolve(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/x:1"); err == nil {
				t.Errorf("it resolves: %+v", info)
			}
			if n := sent.Load(); n > 2*maxAnswer {
				t.Errorf("%d bytes were read", n)
			}
			if n := requests.Load(); n > maxRequests {
				t.Errorf("%d requests were made", n)
			}
		})
	}
}

func FuzzConfiguration(f *testing.F) {
	f.Add([]byte(`{"os":"linux","architecture":"amd64","config":{"Healthcheck":{"Test":["CMD","x"],"Interval":1}}}`))
	f.Add([]byte(`{"config":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var info Info
		if err := info.fill(raw); err == nil && len(info.Platforms) != 1 {
			t.Errorf("%q gives %+v", raw, info)
		}
	})
}
