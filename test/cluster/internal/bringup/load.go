package bringup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/images"
	"github.com/c9s-lab/c9s/test/cluster/internal/registry"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// Load brings an image into a cluster's registry: a test image, or what a file or
// a folder holds (see accepted), with an optional "=reference".
func Load(ctx context.Context, c site.Cluster, image string, tell func(string)) error {
	if images.Known(image) {
		return LoadNamed(ctx, c, image, tell)
	}
	return loadFile(c.Images(), image)
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

// loadFile adds to the registry's folder what a path holds.
func loadFile(store, argument string) error {
	path, reference := splitArgument(argument)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no %s: %s", path, accepted)
	}
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(store), ".load-") // not where the registry looks
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	found, err := openImages(path, reference, work)
	if err != nil {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	for _, image := range found {
		if _, err := name.NewTag(image.reference); err != nil {
			return fmt.Errorf("loading %s: %w", path, err)
		}
		if err := image.replace(store, work); err != nil {
			return fmt.Errorf("loading %s as %s: %w", path, image.reference, err)
		}
	}
	return nil
}

// splitArgument parts PATH=NAME:TAG at the last =, which no name has; paths may.
func splitArgument(argument string) (path, reference string) {
	at := strings.LastIndex(argument, "=")
	if _, err := os.Stat(argument); err == nil || at < 0 {
		return argument, ""
	}
	return argument[:at], registry.FullName(argument[at+1:])
}

// replace writes the image elsewhere first, so that the registry never sees half
// of it.
func (i namedImage) replace(store, work string) error {
	target := filepath.Join(store, entryName(i.reference))
	unfinished := filepath.Join(work, filepath.Base(target))
	if err := images.WriteLayout(unfinished, i.image, i.reference); err != nil {
		return err
	}
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	return os.Rename(unfinished, target)
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9.]+`)

// entryName is the image's in the registry's folder: one of the same reference
// replaces it, wherever it comes from.
func entryName(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return fmt.Sprintf("loaded-%s-%x", notInNames.ReplaceAllString(reference, "-"), sum[:4])
}
