package bringup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/c9s-lab/c9s/test/cluster/internal/registry"
)

// What `load` takes lands in the registry's folder under its full name, with the
// very layers that it had.
func TestLoadFile(t *testing.T) {
	image, other := newImage(t), newImage(t)
	for _, test := range []struct {
		title     string
		make      func(t *testing.T, dir string) (path string)
		reference string
		want      string
	}{
		{"tarball of docker save", saved("lab/host:1", image), "", "docker.io/lab/host:1"},
		{"the same under another name", saved("lab/host:1", image), "quay.io/x/y:2", "quay.io/x/y:2"},
		{"tarball without the suffix", renamed(saved("lab/host:1", image), "host.docker"), "", "docker.io/lab/host:1"},
		{"the same, compressed", zipped(saved("lab/host:1", image)), "", "docker.io/lab/host:1"},
		{"tarball that is a layout as well", withLayout(saved("lab/host:1", image)), "", "docker.io/lab/host:1"},
		{"layout that names its image", asLayout("alpine:3", image), "", "docker.io/library/alpine:3"},
		{"layout without a name", asLayout("", image), "ghcr.io/a/b", "ghcr.io/a/b:latest"},
		{"layout of several platforms", asIndex("lab/multi:1", image, other), "", "docker.io/lab/multi:1"},
		{"layout as a tar file", packed(asLayout("lab/oci:1", image)), "", "docker.io/lab/oci:1"},
		{"layout of several platforms as a tar file", packed(asIndex("lab/multi:1", image, other)), "r/s:t", "docker.io/r/s:t"},
		{"image with an = in its path", func(t *testing.T, dir string) string {
			return saved("lab/host:1", image)(t, filepath.Join(dir, "a=b"))
		}, "", "docker.io/lab/host:1"},
	} {
		t.Run(test.title, func(t *testing.T) {
			argument := test.make(t, t.TempDir())
			if test.reference != "" {
				argument += "=" + test.reference
			}
			store := filepath.Join(t.TempDir(), "images")
			if err := loadFile(store, argument); err != nil {
				t.Fatal(err)
			}
			names := loadedNames(t, store)
			if len(names) != 1 || names[test.want] == nil {
				t.Fatalf("loaded %v, want %s", names, test.want)
			}
			if got, want := layersOf(t, names[test.want]), layersOf(t, image); got != want {
				t.Errorf("layers %s, want %s", got, want)
			}
		})
	}
}

func TestLoadSeveralImagesOfOneTarball(t *testing.T) {
	path := filepath.Join(t.TempDir(), "two.tar")
	first, second := newImage(t), newImage(t)
	if err := tarball.MultiWriteToFile(path, map[name.Tag]v1.Image{tag(t, "lab/a:1"): first, tag(t, "lab/b:1"): second}); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(t.TempDir(), "images")
	if err := loadFile(store, path); err != nil {
		t.Fatal(err)
	}
	names := loadedNames(t, store)
	for reference, image := range map[string]v1.Image{"docker.io/lab/a:1": first, "docker.io/lab/b:1": second} {
		if names[reference] == nil || layersOf(t, names[reference]) != layersOf(t, image) {
			t.Errorf("%s is not the image that was saved; loaded: %v", reference, names)
		}
	}
	if err := loadFile(store, path+"=x:1"); err == nil || !strings.Contains(err.Error(), "holds 2 images") {
		t.Errorf("one name for two images: %v", err)
	}
}

// Loading the same file again replaces what it was; a file that is none leaves it.
func TestLoadAgain(t *testing.T) {
	store, dir := filepath.Join(t.TempDir(), "images"), t.TempDir()
	second := newImage(t)
	for _, image := range []v1.Image{newImage(t), second} {
		if err := loadFile(store, saved("lab/host:1", image)(t, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "image.tar"), []byte("torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := loadFile(store, filepath.Join(dir, "image.tar")); err == nil {
		t.Error("a torn file was taken")
	}
	names := loadedNames(t, store)
	if len(names) != 1 || layersOf(t, names["docker.io/lab/host:1"]) != layersOf(t, second) {
		t.Errorf("loaded: %v", names)
	}
	entries, err := os.ReadDir(filepath.Dir(store))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside the images: %v, %v", entries, err)
	}
}

func TestLoadProgram(t *testing.T) {
	store := filepath.Join(t.TempDir(), "images")
	if err := loadFile(store, programOf(t)+"=lab/tool:dev"); err != nil {
		t.Fatal(err)
	}
	if names := loadedNames(t, store); names["docker.io/lab/tool:dev"] == nil {
		t.Errorf("loaded: %v", names)
	}
}

// Whoever gives something else is reported what is taken.
func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	image := newImage(t)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ title, argument, want string }{
		{"nothing of that name", filepath.Join(dir, "missing"), accepted},
		{"a text", write("notes.txt", "hello"), accepted},
		{"a text with a name", write("notes.txt", "hello") + "=a:b", accepted},
		{"a text that is called a tarball", write("image.tar", "hello"), accepted},
		{"an empty file", write("empty.tar", ""), accepted},
		{"a script", write("run.sh", "#!/bin/sh\n") + "=a:b", accepted},
		{"a folder", filepath.Join(dir, "folder"), accepted},
		{"a tarball of other files", tarOf(t, filepath.Join(dir, "other.tar"), os.DirFS(dir), "notes.txt"), accepted},
		{"half a tarball", half(t, saved("a:b", image)(t, filepath.Join(dir, "s1"))), "half.tar"},
		{"a program without a name", programOf(t), "=NAME:TAG"},
		{"a program with shared libraries", programOf(t, elf.PT_INTERP) + "=a:b", "CGO_ENABLED=0"},
		{"a layout without a name", asLayout("", image)(t, filepath.Join(dir, "l1")), "=NAME:TAG"},
		{"a layout of other platforms", asIndex("a:b", nil, image)(t, filepath.Join(dir, "l2")), "linux/" + runtime.GOARCH},
		{"a name that cannot be", saved("a:b", image)(t, filepath.Join(dir, "s2")) + "=Upper Case:1", "Upper Case"},
	} {
		t.Run(test.title, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "images")
			err := loadFile(store, test.argument)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if names := loadedNames(t, store); len(names) > 0 {
				t.Errorf("loaded: %v", names)
			}
		})
	}
}

func newImage(t *testing.T) v1.Image {
	t.Helper()
	image, err := random.Image(512, 2)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func tag(t *testing.T, reference string) name.Tag {
	t.Helper()
	parsed, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

type maker func(t *testing.T, dir string) string

// saved writes an image as `docker save` does.
func saved(reference string, image v1.Image) maker {
	return func(t *testing.T, dir string) string {
		t.Helper()
		path := filepath.Join(dir, "image.tar")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := tarball.WriteToFile(path, tag(t, reference), image); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func renamed(make maker, name string) maker {
	return func(t *testing.T, dir string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.Rename(make(t, dir), path); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

func zipped(make maker) maker {
	return func(t *testing.T, dir string) string {
		t.Helper()
		path := make(t, dir)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var small bytes.Buffer
		w := gzip.NewWriter(&small)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Close(), os.WriteFile(path+".gz", small.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		return path + ".gz"
	}
}

// withLayout adds what Docker saves since version 25: an index that has the tag
// alone.
func withLayout(make maker) maker {
	return func(t *testing.T, dir string) string {
		t.Helper()
		saved := make(t, dir)
		unpacked := filepath.Join(dir, "saved")
		if err := unpack(saved, unpacked); err != nil {
			t.Fatal(err)
		}
		index := `{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","annotations":{"` + registry.NameAnnotation + `":"1"}}]}`
		if err := errors.Join(os.WriteFile(filepath.Join(unpacked, "index.json"), []byte(index), 0o644),
			os.WriteFile(filepath.Join(unpacked, "oci-layout"), []byte("{}"), 0o644)); err != nil {
			t.Fatal(err)
		}
		files, err := fs.Glob(os.DirFS(unpacked), "*")
		if err != nil {
			t.Fatal(err)
		}
		return tarOf(t, filepath.Join(dir, "both.tar"), os.DirFS(unpacked), files...)
	}
}

// programOf writes the head of a program with the given parts.
func programOf(t *testing.T, parts ...elf.ProgType) string {
	t.Helper()
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(parts)),
	}
	var text bytes.Buffer
	err := binary.Write(&text, binary.LittleEndian, header)
	for _, part := range parts {
		err = errors.Join(err, binary.Write(&text, binary.LittleEndian, elf.Prog64{Type: uint32(part)}))
	}
	path := filepath.Join(t.TempDir(), "tool")
	if err := errors.Join(err, os.WriteFile(path, text.Bytes(), 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

func asLayout(reference string, image v1.Image) maker {
	return func(t *testing.T, dir string) string {
		t.Helper()
		path, err := layout.Write(dir, empty.Index)
		if err != nil {
			t.Fatal(err)
		}
		var options []layout.Option
		if reference != "" {
			options = append(options, layout.WithAnnotations(map[string]string{registry.NameAnnotation: reference}))
		}
		if err := path.AppendImage(image, options...); err != nil {
			t.Fatal(err)
		}
		return dir
	}
}

// asIndex writes a layout of an index with an image for another platform, and one
// for this unless it is nil.
func asIndex(reference string, mine, others v1.Image) maker {
	return func(t *testing.T, dir string) string {
		t.Helper()
		platform := func(os, arch string) v1.Descriptor {
			return v1.Descriptor{Platform: &v1.Platform{OS: os, Architecture: arch}}
		}
		index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: others, Descriptor: platform("windows", runtime.GOARCH)})
		if mine != nil {
			index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: mine, Descriptor: platform("linux", runtime.GOARCH)})
		}
		path, err := layout.Write(dir, empty.Index)
		if err != nil {
			t.Fatal(err)
		}
		if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{registry.NameAnnotation: reference})); err != nil {
			t.Fatal(err)
		}
		return dir
	}
}

// packed makes a tar file of a layout, as `skopeo copy ... oci-archive:` does.
func packed(make maker) maker {
	return func(t *testing.T, dir string) string {
		t.Helper()
		source := make(t, filepath.Join(dir, "layout"))
		var files []string
		if err := fs.WalkDir(os.DirFS(source), ".", func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files = append(files, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return tarOf(t, filepath.Join(dir, "oci.tar"), os.DirFS(source), files...)
	}
}

func tarOf(t *testing.T, path string, source fs.FS, files ...string) string {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := tar.NewWriter(out)
	for _, file := range files {
		text, err := fs.ReadFile(source, file)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func half(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(filepath.Dir(path), "half.tar")
	if err := os.WriteFile(torn, text[:len(text)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	return torn
}

// loadedNames are the images that the registry would serve.
func loadedNames(t *testing.T, store string) map[string]v1.Image {
	t.Helper()
	names := map[string]v1.Image{}
	dirs, err := filepath.Glob(filepath.Join(store, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		index, err := layout.ImageIndexFromPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range manifest.Manifests {
			image, err := index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			names[d.Annotations[registry.NameAnnotation]] = image
		}
	}
	return names
}

// layersOf are the digests of an image's layers, uncompressed: formats differ in
// how they keep them.
func layersOf(t *testing.T, image v1.Image) string {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var ids []v1.Hash
	for _, layer := range layers {
		id, err := layer.DiffID()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if !slices.Equal(ids, config.RootFS.DiffIDs) {
		t.Errorf("the layers are %v, and the image says %v", ids, config.RootFS.DiffIDs)
	}
	return fmt.Sprint(ids)
}
