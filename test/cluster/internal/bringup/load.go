package bringup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/images"
	"github.com/c9s-lab/c9s/test/cluster/internal/registry"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// Load brings an image into a cluster's registry. It is the name of a test
// image, or a path with an optional "=reference": an OCI layout, a tarball as
// `docker save` writes it, or a static program, which needs the reference.
func Load(ctx context.Context, c site.Cluster, image string, tell func(string)) error {
	if images.Known(image) {
		return LoadNamed(ctx, c, image, tell)
	}
	path, reference, _ := strings.Cut(image, "=")
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("image %s is neither a file nor one of the test images %s: %w", path, strings.Join(images.Names(), ", "), err)
	}
	target := filepath.Join(c.Images(), entryName(path, reference))
	return replace(target, func(unfinished string) error {
		switch {
		case info.IsDir():
			return loadLayout(path, reference, unfinished)
		case strings.HasSuffix(path, ".tar"):
			return loadTarball(path, reference, unfinished)
		case reference == "":
			return fmt.Errorf("program %s needs a reference: %s=NAME:TAG", path, path)
		default:
			return images.OfProgram(unfinished, path, registry.FullName(reference))
		}
	})
}

// LoadNamed brings a test image in, built when it is not in the cache.
func LoadNamed(ctx context.Context, c site.Cluster, name string, tell func(string)) error {
	dir, err := images.Ensure(ctx, binaries.Cache{Dir: c.Cache}, name, tell)
	if err != nil {
		return err
	}
	link := filepath.Join(c.Images(), name)
	if present, err := os.Readlink(link); err == nil && present == dir {
		return nil
	}
	if err := errors.Join(os.MkdirAll(c.Images(), 0o755), os.RemoveAll(link)); err != nil {
		return err
	}
	return os.Symlink(dir, link)
}

func loadLayout(path, reference, target string) error {
	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return fmt.Errorf("reading OCI layout %s: %w", path, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("OCI layout %s holds %d images: give one with a single image", path, len(manifest.Manifests))
	}
	if reference == "" {
		reference = manifest.Manifests[0].Annotations[registry.NameAnnotation]
	}
	if reference == "" {
		return fmt.Errorf("the image in %s has no name: %s=NAME:TAG", path, path)
	}
	image, err := ofThisMachine(index, manifest.Manifests[0])
	if err != nil {
		return fmt.Errorf("OCI layout %s: %w", path, err)
	}
	return images.WriteLayout(target, image, registry.FullName(reference))
}

// ofThisMachine is the image itself, or that of this machine's platform where
// there are several.
func ofThisMachine(index v1.ImageIndex, d v1.Descriptor) (v1.Image, error) {
	if d.MediaType.IsImage() {
		return index.Image(d.Digest)
	}
	inner, err := index.ImageIndex(d.Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		if m.Platform != nil && m.Platform.OS == "linux" && m.Platform.Architecture == runtime.GOARCH {
			return inner.Image(m.Digest)
		}
	}
	return nil, fmt.Errorf("no image for linux/%s", runtime.GOARCH)
}

// unpackLayout unpacks an OCI archive (a layout as a tar file); ok is false for
// any other tarball.
func unpackLayout(path, into string) (ok bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	root, err := os.OpenRoot(into)
	if err != nil {
		return false, err
	}
	defer root.Close()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return ok, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading tarball %s: %w", path, err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		name := filepath.Clean(header.Name)
		ok = ok || name == "oci-layout"
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return false, err
		}
		out, err := root.Create(name)
		if err != nil {
			return false, err
		}
		_, err = io.Copy(out, archive)
		if err = errors.Join(err, out.Close()); err != nil {
			return false, err
		}
	}
}

func loadTarball(path, reference, target string) error {
	unpacked, err := os.MkdirTemp(filepath.Dir(target), ".unpacked-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unpacked)
	if ok, err := unpackLayout(path, unpacked); err != nil {
		return err
	} else if ok {
		return loadLayout(unpacked, reference, target)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		return fmt.Errorf("reading tarball %s: %w", path, err)
	}
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		return fmt.Errorf("reading tarball %s: %w", path, err)
	}
	if reference == "" && len(manifest) > 0 && len(manifest[0].RepoTags) > 0 {
		reference = manifest[0].RepoTags[0]
	}
	if reference == "" {
		return fmt.Errorf("the image in %s has no name: %s=NAME:TAG", path, path)
	}
	return images.WriteLayout(target, image, registry.FullName(reference))
}

// replace makes a folder under another name first, so that the registry never
// sees half an image.
func replace(target string, fill func(unfinished string) error) error {
	unfinished := filepath.Join(filepath.Dir(filepath.Dir(target)), "."+filepath.Base(target))
	if err := errors.Join(os.RemoveAll(unfinished), os.MkdirAll(filepath.Dir(target), 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(unfinished)
	if err := fill(unfinished); err != nil {
		return err
	}
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	return os.Rename(unfinished, target)
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func entryName(path, reference string) string {
	return "loaded-" + notInNames.ReplaceAllString(filepath.Base(path)+"-"+reference, "-")
}
