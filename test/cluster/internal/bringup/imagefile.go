package bringup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/c9s-lab/c9s/test/cluster/internal/images"
	"github.com/c9s-lab/c9s/test/cluster/internal/registry"
)

// accepted is what `load` takes also test images.
const accepted = "give a test image (see `load --help`), a tarball of `docker save`, an OCI layout (a folder or a tarball), or a static program with =NAME:TAG"

var errOther = errors.New("this is no image: " + accepted)

// A namedImage is one image under one full reference.
type namedImage struct {
	reference string
	image     v1.Image
}

// openImages finds out what a path holds by its content. A reference stands in
// for the name of a single image. work is a folder for what must be unpacked
// until the images are written.
func openImages(path, reference, work string) ([]namedImage, error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return openLayout(path, reference)
	}
	head, err := readHead(path)
	switch {
	case err != nil:
		return nil, err
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return openProgram(path, reference, work)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}): // gzip
		if path, err = gunzip(path, work); err != nil {
			return nil, err
		}
	}
	return openTarball(path, reference, work)
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(len(elf.ELFMAG))))
}

func openLayout(dir, reference string) ([]namedImage, error) {
	if _, err := os.Stat(filepath.Join(dir, "index.json")); errors.Is(err, os.ErrNotExist) {
		return nil, errOther
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if err := oneForOne(reference, len(manifest.Manifests)); err != nil {
		return nil, err
	}
	var found []namedImage
	for _, d := range manifest.Manifests {
		image, err := ofThisMachine(index, d)
		if err != nil {
			return nil, err
		}
		called := reference
		if called == "" {
			called = nameOf(d)
		}
		if called == "" {
			return nil, errors.New("the image has no name: add =NAME:TAG")
		}
		found = append(found, namedImage{called, image})
	}
	return found, nil
}

// nameOf is the full reference of an entry in a layout. BuildKit and containerd
// keep it apart: the standard's annotation has the tag alone then.
func nameOf(d v1.Descriptor) string {
	for _, annotation := range []string{"io.containerd.image.name", registry.NameAnnotation} {
		if called := d.Annotations[annotation]; called != "" {
			return registry.FullName(called)
		}
	}
	return ""
}

func oneForOne(reference string, count int) error {
	if count == 0 {
		return errors.New("it holds no image")
	}
	if reference != "" && count > 1 {
		return fmt.Errorf("it holds %d images, which cannot all be %s: load it without =NAME:TAG, under the names that they have", count, reference)
	}
	return nil
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
	return nil, fmt.Errorf("it has no image for linux/%s", runtime.GOARCH)
}

// openTarball prefers what `docker save` says of the images: newer ones are OCI
// layouts as well, where the names are not whole.
func openTarball(path, reference, work string) ([]namedImage, error) {
	names, err := tarNames(path)
	switch {
	case err != nil:
		return nil, err
	case names["manifest.json"]:
		return openSaved(path, reference)
	case names["index.json"]:
		unpacked := filepath.Join(work, "unpacked")
		if err := unpack(path, unpacked); err != nil {
			return nil, err
		}
		return openLayout(unpacked, reference)
	}
	return nil, errOther
}

func openSaved(path, reference string) ([]namedImage, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		return nil, err
	}
	if err := oneForOne(reference, len(manifest)); err != nil {
		return nil, err
	}
	if reference != "" {
		image, err := tarball.ImageFromPath(path, nil)
		return []namedImage{{reference, image}}, err
	}
	var found []namedImage
	for _, entry := range manifest {
		if len(entry.RepoTags) == 0 {
			return nil, errors.New("an image in it has no name: save it by its name, or, if it is the only one, add =NAME:TAG")
		}
		for _, called := range entry.RepoTags {
			image, err := savedImage(path, called)
			if err != nil {
				return nil, err
			}
			found = append(found, namedImage{registry.FullName(called), image})
		}
	}
	return found, nil
}

// savedImage finds an image by its name, which the tarball may have in short.
func savedImage(path, called string) (v1.Image, error) {
	tag, err := name.NewTag(called)
	if err != nil {
		return nil, err
	}
	return tarball.ImageFromPath(path, &tag)
}

// tarNames are the names of all files in a tarball.
func tarNames(path string) (map[string]bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names := map[string]bool{}
	for archive := tar.NewReader(f); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil && len(names) == 0:
			return nil, errOther
		case err != nil:
			return nil, fmt.Errorf("reading the tarball: %w", err)
		}
		names[filepath.Clean(header.Name)] = true
	}
}

func unpack(path, into string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Mkdir(into, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(into) // names that lead outside are rejected
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(f); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the tarball: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		file := filepath.Clean(header.Name)
		if err := root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		out, err := root.Create(file)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, archive)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}

func gunzip(path, work string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	from, err := gzip.NewReader(f)
	if err != nil {
		return "", err
	}
	plain, err := os.Create(filepath.Join(work, "plain.tar"))
	if err != nil {
		return "", err
	}
	_, err = io.Copy(plain, from)
	return plain.Name(), errors.Join(err, plain.Close())
}

// openProgram is an image of one program. There is nothing next to it, so it has
// to be static.
func openProgram(path, reference, work string) ([]namedImage, error) {
	program, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			return nil, errors.New("the program needs shared libraries, which its image would lack: build it with CGO_ENABLED=0, or link it with -static")
		}
	}
	if reference == "" {
		return nil, errors.New("a program has no name as an image: add =NAME:TAG")
	}
	dir := filepath.Join(work, "program")
	if err := images.OfProgram(dir, path, reference); err != nil {
		return nil, err
	}
	return openLayout(dir, reference)
}
