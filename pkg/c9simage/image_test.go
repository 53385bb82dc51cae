package c9simage

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

var (
	amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64 = v1.Platform{OS: "linux", Architecture: "arm64"}
)

// programs are small stand-ins for a platform's programs, on disk again each time.
func programs(t *testing.T, text string) []Binary {
	t.Helper()
	dir := t.TempDir()
	var out []Binary
	for _, p := range Programs {
		file := filepath.Join(dir, p.Path)
		if err := os.WriteFile(file, []byte(p.Path+text), 0o600); err != nil {
			t.Fatal(err)
		}
		out = append(out, Binary{Program: p, File: file})
	}
	return out
}

func index(t *testing.T, version, text string) v1.ImageIndex {
	t.Helper()
	images := map[string]v1.Image{}
	for _, p := range []v1.Platform{amd64, arm64} {
		img, err := Image(p, version, programs(t, p.Architecture+text))
		if err != nil {
			t.Fatal(err)
		}
		images[p.String()] = img
	}
	index, err := Index(images, []v1.Platform{amd64, arm64})
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	h, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

func TestSameSourceSameDigest(t *testing.T) {
	first := digest(t, index(t, "1.0", ""))
	for name, c := range map[string]struct {
		version, text string
		same          bool
	}{
		"again":           {"1.0", "", true},
		"another version": {"1.1", "", false},
		"another program": {"1.0", "changed", false},
	} {
		if got := digest(t, index(t, c.version, c.text)); (got == first) != c.same {
			t.Errorf("%s: %s, and the first was %s", name, got, first)
		}
	}
}

func TestImage(t *testing.T) {
	img, err := Image(arm64, "1.0", programs(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || !slices.Equal(config.Config.Entrypoint, []string{"/" + Programs[1].Path}) {
		t.Errorf("config %+v", config)
	}
	if !config.Created.IsZero() {
		t.Errorf("created %s: a date makes each build another image", config.Created)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		header, body := only(t, content)
		paths = append(paths, header.Name)
		if header.Mode != 0o755 || header.Uid != 0 || header.ModTime.Unix() != 0 {
			t.Errorf("%s: mode %o, owner %d, time %s", header.Name, header.Mode, header.Uid, header.ModTime)
		}
		if string(body) != header.Name {
			t.Errorf("%s holds %q", header.Name, body)
		}
	}
	if !slices.Equal(paths, []string{Programs[0].Path, Programs[1].Path}) {
		t.Errorf("layers %v", paths)
	}
	if _, err := Image(amd64, "1.0", []Binary{{Program: Programs[0], File: filepath.Join(t.TempDir(), "none")}}); err == nil || !strings.Contains(err.Error(), "c9s-sidecar") {
		t.Errorf("a program that is missing: %v", err)
	}
}

// only reads an archive of one file.
func only(t *testing.T, r io.ReadCloser) (*tar.Header, []byte) {
	t.Helper()
	defer r.Close()
	archive := tar.NewReader(r)
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more than %s: %v", header.Name, err)
	}
	return header, body
}

func TestIndexNeedsEveryPlatform(t *testing.T) {
	img, err := Image(amd64, "1.0", programs(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Index(map[string]v1.Image{amd64.String(): img}, []v1.Platform{amd64, arm64}); err == nil || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("got %v", err)
	}
}

func TestWriteLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "image")
	first, second := index(t, "1.0", ""), index(t, "2.0", "changed")
	for _, i := range []v1.ImageIndex{first, second} {
		if err := WriteLayout(dir, i, "registry.example/c9s:dev"); err != nil {
			t.Fatal(err)
		}
		manifest := manifestOf(t, dir)
		if len(manifest.Manifests) != 1 {
			t.Fatalf("%d images in the layout, of which one is wanted", len(manifest.Manifests))
		}
		got := manifest.Manifests[0]
		if got.Digest.String() != digest(t, i) || got.Annotations[refAnnotation] != "registry.example/c9s:dev" {
			t.Errorf("the layout has %s called %q", got.Digest, got.Annotations[refAnnotation])
		}
	}
	// The first image's blobs are gone with it.
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 2*(2+len(Programs)); len(blobs) != want {
		t.Errorf("%d blobs, want %d", len(blobs), want)
	}
}

func manifestOf(t *testing.T, dir string) *v1.IndexManifest {
	t.Helper()
	path, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	root, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}

func TestWriteLayoutLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := WriteLayout(dir, index(t, "1.0", ""), "c9s:dev")
	if err == nil || !strings.Contains(err.Error(), "is neither empty nor an OCI layout") {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v)", entries, err)
	}
}

func TestWriteArchive(t *testing.T) {
	dir := t.TempDir()
	var contents []string
	for _, name := range []string{"a.tar", "b.tar"} {
		file := filepath.Join(dir, name)
		if err := WriteArchive(file, index(t, "1.0", ""), "c9s:dev"); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(data))
	}
	if contents[0] != contents[1] {
		t.Error("the same image gives two archives")
	}
	var names []string
	archive := tar.NewReader(strings.NewReader(contents[0]))
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	for _, want := range []string{"oci-layout", "index.json"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("something is left beside the archives: %v", entries)
	}
}

func TestFindSource(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "pkg", "x")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := FindSource(deep); err == nil || !strings.Contains(err.Error(), "--source") {
		t.Errorf("outside: %v", err)
	}
	for text, found := range map[string]bool{"module " + module + "\n\ngo 1.26\n": true, "module example.net/other\n": false} {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := FindSource(deep)
		if found != (err == nil) || found && got != dir {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

// TestImageHasTheLicencesOfItsPrograms: the file is c9s' own licence and every linked
// module's, and is a text.
func TestImageHasTheLicencesOfItsPrograms(t *testing.T) {
	text, err := licensesOf(t.Context(), "../..", amd64, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(text.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Apache License", "Go standard library", "github.com/vishvananda/netlink", "k8s.io/client-go"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the licences lack %q", want)
		}
	}
	img, err := Image(amd64, "1.0", append(programs(t, ""), text))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[len(layers)-1].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	h, err := tar.NewReader(content).Next()
	if err != nil || h.Name != "LICENSES" || h.Mode != 0o644 || h.Size != int64(len(data)) {
		t.Errorf("the last layer has %+v, %v", h, err)
	}
}
