package c9simage

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// refAnnotation names an image in a layout (OCI image specification, annotations).
const refAnnotation = "org.opencontainers.image.ref.name"

// WriteLayout writes an index as an OCI image layout, as reference, into a folder
// that is new, empty or such a layout.
func WriteLayout(dir string, index v1.ImageIndex, reference string) error {
	if err := layoutFolder(dir); err != nil {
		return err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{refAnnotation: reference}))
}

// layoutFolder rejects a folder with anything else in it, and empties one with a
// layout, whose old blobs would stay forever.
func layoutFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
		return fmt.Errorf("%s is neither empty nor an OCI layout: choose another folder", dir)
	}
	for _, name := range []string{"blobs", "index.json", "oci-layout"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// WriteArchive writes the same layout as a tar file, which `ctr images import`,
// podman and skopeo take.
func WriteArchive(file string, index v1.ImageIndex, reference string) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".c9s-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "layout")
	if err := WriteLayout(tree, index, reference); err != nil {
		return err
	}
	unfinished := filepath.Join(dir, "image.tar")
	if err := archive(unfinished, tree); err != nil {
		return err
	}
	return os.Rename(unfinished, file)
}

func archive(file, tree string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(rel), Typeflag: tar.TypeReg, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.Copy(w, in)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}

// Push uploads an index to its registry with the user's own credentials.
func Push(ctx context.Context, index v1.ImageIndex, ref name.Reference) error {
	return remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}
