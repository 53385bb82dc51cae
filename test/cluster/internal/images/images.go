// Package images makes container images without a container engine: of single
// programs, and of devices from Debian's packages. An image is an OCI layout,
// built once into the cache.
package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/registry"
)

// A recipe makes the layers of an image.
type recipe struct {
	references []string // the names that the registry answers to
	version    string   // changes when the result would
	config     v1.Config
	seconds    int // what making it takes, to be told
	layers     func(ctx context.Context, b builder) ([]string, error)
}

// Essential are the images of every cluster.
var Essential = []string{"pause", "coredns"}

// Names are the images that there are recipes for.
func Names() []string {
	names := make([]string, 0, len(recipes))
	for name := range recipes {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Known reports whether there is a recipe of that name.
func Known(name string) bool { _, ok := recipes[name]; return ok }

var recipes = map[string]recipe{
	"pause":   pauseRecipe,
	"coredns": corednsRecipe,
	"linux":   linuxRecipe,
	"frr":     frrRecipe,
	"bird":    birdRecipe,
	"vm":      vmRecipe,
}

// A builder has what recipes need.
type builder struct {
	cache binaries.Cache
	work  string // a folder for layers, removed afterwards
	tell  func(string)
}

// Ensure builds an image unless it is there, and returns its OCI layout.
func Ensure(ctx context.Context, cache binaries.Cache, name string, tell func(string)) (string, error) {
	r, ok := recipes[name]
	if !ok {
		return "", fmt.Errorf("there is no test image %q: there are %s", name, strings.Join(Names(), ", "))
	}
	dir := filepath.Join(cache.Dir, "images", name+"-"+r.version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	unlock, err := host.Lock(ctx, filepath.Join(cache.Dir, "images", "."+name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if r.seconds > 5 {
		tell(fmt.Sprintf("making image %s (about %d s; once)", name, r.seconds))
	}
	start := time.Now()
	if err := build(ctx, cache, name, r, dir, tell); err != nil {
		return "", fmt.Errorf("making image %s: %w", name, err)
	}
	if r.seconds > 5 {
		tell(fmt.Sprintf("image %s made in %s", name, time.Since(start).Round(time.Second)))
	}
	return dir, nil
}

func build(ctx context.Context, cache binaries.Cache, name string, r recipe, dir string, tell func(string)) error {
	work := filepath.Join(cache.Dir, "images", ".work-"+name)
	if err := os.RemoveAll(work); err != nil { // an interrupted build's
		return err
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	layers, err := r.layers(ctx, builder{cache: cache, work: work, tell: tell})
	if err != nil {
		return err
	}
	image, err := assemble(layers, r.config)
	if err != nil {
		return err
	}
	unfinished := filepath.Join(work, "layout")
	if err := WriteLayout(unfinished, image, r.references...); err != nil {
		return err
	}
	return os.Rename(unfinished, dir)
}

func assemble(layers []string, config v1.Config) (v1.Image, error) {
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	for _, path := range layers {
		layer, err := newTarLayer(path)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
	}
	whole, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	whole = whole.DeepCopy()
	whole.Architecture, whole.OS = runtime.GOARCH, "linux"
	whole.Config = config
	return mutate.ConfigFile(image, whole)
}

// WriteLayout writes an image as an OCI layout that names it.
func WriteLayout(dir string, image v1.Image, references ...string) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	for _, reference := range references {
		if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{registry.NameAnnotation: reference})); err != nil {
			return err
		}
	}
	return nil
}

// OfProgram is an image of one static program, which is its entry point.
func OfProgram(dir, program, reference string) error {
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), ".work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	name := filepath.Base(program)
	layer := filepath.Join(work, "layer.tar")
	if err := writeFiles(layer, map[string]file{name: {mode: 0o755, text: text}}); err != nil {
		return err
	}
	image, err := assemble([]string{layer}, v1.Config{Entrypoint: []string{"/" + name}, Env: []string{"PATH=/:/usr/bin:/bin"}})
	if err != nil {
		return err
	}
	return WriteLayout(dir, image, reference)
}
