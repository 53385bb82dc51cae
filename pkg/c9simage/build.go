// Package c9simage makes c9s' own image, without Docker: /c9s-controller and
// /c9s-sidecar, one static program each, for several platforms.
// The same source gives the same digest.
package c9simage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Programs are the paths, in the image, of its programs, in the order of their
// layers: the sidecar first, since every Pod needs it and it changes less.
var Programs = []Program{
	{Path: "c9s-sidecar", Package: "./cmd/c9s-sidecar"},
	{Path: "c9s-controller", Package: "./cmd/c9s-controller"},
}

// Program is one program of the image.
type Program struct {
	// Path in the image, relative to its root.
	Path string
	// Package is the Go package, relative to the module's root, "" for a text.
	Package string
}

// Binary is a program built for one platform: a file on disk.
type Binary struct {
	Program
	File string
}

// Image puts programs into an image of one platform, a layer each.
func Image(platform v1.Platform, version string, programs []Binary) (v1.Image, error) {
	base := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	base = mutate.ConfigMediaType(base, types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/c9s-controller"},
			Env:        []string{"PATH=/"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":   "c9s",
				"org.opencontainers.image.version": version,
			},
		},
	})
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		layer, err := layer(p)
		if err != nil {
			return nil, fmt.Errorf("adding %s: %w", p.Path, err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// layer holds one program, owned by root and without a date.
func layer(b Binary) (v1.Layer, error) {
	data, err := os.ReadFile(b.File)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	mode := int64(0o755)
	if b.Package == "" { // a text
		mode = 0o644
	}
	if err := w.WriteHeader(&tar.Header{Name: b.Path, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0)}); err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// Index joins the images of several platforms.
func Index(images map[string]v1.Image, order []v1.Platform) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range order {
		img := images[p.String()]
		if img == nil {
			return nil, fmt.Errorf("no image for %s", p)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &p}})
	}
	return index, nil
}
