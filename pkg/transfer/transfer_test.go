package transfer

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write makes files in a folder: a name that ends in "/" is a folder, a text that begins with
// "-> " a symbolic link.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file, text := filepath.Join(dir, name), files[name]
		var err error
		switch target, link := strings.CutPrefix(text, "-> "); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(file, 0o755)
		case link:
			err = os.Symlink(target, file)
		default:
			_ = os.MkdirAll(filepath.Dir(file), 0o755)
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// read is the inverse of write.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, _ := filepath.Rel(dir, file)
		switch entry.Type() {
		case fs.ModeDir:
			out[name+"/"] = ""
		case fs.ModeSymlink:
			target, _ := os.Readlink(file)
			out[name] = "-> " + target
		default:
			data, _ := os.ReadFile(file)
			out[name] = string(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The rules of docker cp, for what becomes of a source and a destination.
func TestCopy(t *testing.T) {
	for name, c := range map[string]struct {
		from   string // in the source
		there  map[string]string
		to     string // in the destination
		o      UnpackOptions
		follow bool
		want   map[string]string // all that is there afterwards
		failed string
	}{
		"file to a new name":         {from: "f", to: "g", want: map[string]string{"g": "file"}},
		"file into a folder":         {from: "f", there: map[string]string{"d/": ""}, to: "d", want: map[string]string{"d/": "", "d/f": "file"}},
		"file over a file":           {from: "f", there: map[string]string{"g": "old and longer"}, to: "g", want: map[string]string{"g": "file"}},
		"file over a link":           {from: "f", there: map[string]string{"d/f": "-> ../x", "x": "kept"}, to: "d", want: map[string]string{"d/": "", "d/f": "file", "x": "kept"}},
		"file to a missing folder":   {from: "f", to: "d/", failed: "there is no folder"},
		"file into a missing parent": {from: "f", to: "d/e", failed: "no such file"},
		"folder to a new name":       {from: "a", to: "n", want: map[string]string{"n/": "", "n/b/": "", "n/b/c": "deep", "n/l": "-> b/c"}},
		"folder into a folder":       {from: "a", there: map[string]string{"d/": ""}, to: "d", want: map[string]string{"d/": "", "d/a/": "", "d/a/b/": "", "d/a/b/c": "deep", "d/a/l": "-> b/c"}},
		"what is in a folder":        {from: "a", there: map[string]string{"d/x": "kept"}, to: "d", o: UnpackOptions{Inside: true}, want: map[string]string{"d/": "", "d/x": "kept", "d/b/": "", "d/b/c": "deep", "d/l": "-> b/c"}},
		"folder over a file":         {from: "a", there: map[string]string{"d": "file"}, to: "d", failed: "is a file"},
		"folder over a link":         {from: "a", there: map[string]string{"d/a": "-> /etc"}, to: "d", want: map[string]string{"d/": "", "d/a/": "", "d/a/b/": "", "d/a/b/c": "deep", "d/a/l": "-> b/c"}},
		"link":                       {from: "a/l", to: "n", want: map[string]string{"n": "-> b/c"}},
		"link, followed":             {from: "a/l", to: "n", follow: true, want: map[string]string{"n": "deep"}},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := t.TempDir(), t.TempDir()
			write(t, source, map[string]string{"f": "file", "a/b/c": "deep", "a/l": "-> b/c"})
			for file, text := range c.there {
				if strings.Contains(file, "/") {
					_ = os.MkdirAll(filepath.Dir(filepath.Join(target, file)), 0o755)
				}
				write(t, target, map[string]string{file: text})
			}
			var stream bytes.Buffer
			if err := Pack(&stream, filepath.Join(source, c.from), PackOptions{Name: filepath.Base(c.from), Follow: c.follow}); err != nil {
				t.Fatal(err)
			}
			c.o.Modes = 0o777
			to := filepath.Join(target, c.to)
			if strings.HasSuffix(c.to, "/") {
				to += "/"
			}
			_, err := Unpack(&stream, to, c.o)
			switch {
			case c.failed != "":
				if err == nil || !strings.Contains(err.Error(), c.failed) {
					t.Fatalf("%v, want %q", err, c.failed)
				}
			case err != nil:
				t.Fatal(err)
			case !maps.Equal(read(t, target), c.want):
				t.Errorf("got %v, want %v", read(t, target), c.want)
			}
		})
	}
}

// A copy keeps modes and times.
func TestAttributes(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	write(t, source, map[string]string{"a/run": "#!/bin/sh"})
	if err := os.Chmod(filepath.Join(source, "a/run"), 0o4751); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(source, "a"), 0o511|fs.ModeDir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(source, "a"), 0o755)
		_ = os.Chmod(filepath.Join(target, "a"), 0o755)
	})
	var stream bytes.Buffer
	if err := Pack(&stream, filepath.Join(source, "a"), PackOptions{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	done, err := Unpack(&stream, target, UnpackOptions{Modes: 0o777})
	if err != nil || done != (Result{Files: 1, Bytes: 9}) {
		t.Fatalf("%+v, %v", done, err)
	}
	for name, want := range map[string]fs.FileMode{"a": fs.ModeDir | 0o511, "a/run": 0o751} {
		before, err := os.Stat(filepath.Join(source, name))
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(filepath.Join(target, name))
		if err != nil || after.Mode() != want || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("%s: %v at %v, want %v at %v; %v", name, after.Mode(), after.ModTime(), want, before.ModTime(), err)
		}
	}
}

// A stream of a hostile device writes nothing outside the destination.
func TestHostileStreams(t *testing.T) {
	for name, entries := range map[string][]tar.Header{
		"dots":           {{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "a/../../out", Typeflag: tar.TypeReg}},
		"absolute":       {{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "/out", Typeflag: tar.TypeReg}},
		"through a link": {{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "a/l", Typeflag: tar.TypeSymlink, Linkname: "../.."}, {Name: "a/l/out", Typeflag: tar.TypeReg}},
		"over a link":    {{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "a/l", Typeflag: tar.TypeSymlink, Linkname: "../../out"}, {Name: "a/l", Typeflag: tar.TypeReg}},
	} {
		for _, o := range []UnpackOptions{{}, {Inside: true}, {Whole: true}} {
			around := t.TempDir()
			target := filepath.Join(around, "target")
			if err := os.Mkdir(target, 0o755); err != nil {
				t.Fatal(err)
			}
			var stream bytes.Buffer
			w := tar.NewWriter(&stream)
			for _, h := range entries {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
			}
			_ = w.Close()
			o.Modes = 0o777
			_, _ = Unpack(&stream, target, o)
			entries, err := os.ReadDir(around)
			if err != nil || len(entries) != 1 {
				t.Errorf("%s, %+v: there is %v, %v", name, o, entries, err)
			}
		}
	}
}

// TestHostileSource: whatever a node calls its files, a copy has the name that was asked for, and
// nothing next to it is touched.
func TestHostileSource(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }
	for name, c := range map[string]struct {
		entries []tar.Header
		to      string // in the folder
		want    []string
		fails   bool
	}{
		"a file with another name":      {[]tar.Header{file(".bashrc")}, ".", []string{".ssh", "hosts"}, false},
		"dots below a new name":         {[]tar.Header{{Name: "x/", Typeflag: tar.TypeDir, Mode: 0o755}, file("x/../../.bashrc")}, "hosts", []string{".ssh", "hosts"}, true},
		"dots":                          {[]tar.Header{file("../../.bashrc")}, "hosts", []string{".ssh"}, true},
		"a second file":                 {[]tar.Header{file("hosts"), file("x/.bashrc")}, "hosts", []string{".ssh", "hosts"}, true},
		"a link to a neighbour, a file": {[]tar.Header{{Name: "hosts", Typeflag: tar.TypeSymlink, Linkname: ".ssh"}, file("hosts/keys")}, ".", []string{".ssh", "hosts"}, true},
		"a folder replaced by a link": {[]tar.Header{
			{Name: "hosts/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "hosts", Typeflag: tar.TypeSymlink, Linkname: ".ssh"}, file("hosts/keys")}, ".", []string{".ssh", "hosts"}, true},
		"a link in the folder": {[]tar.Header{
			{Name: "hosts/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "hosts/l", Typeflag: tar.TypeSymlink, Linkname: "../.ssh"}, file("hosts/l/keys")}, ".", []string{".ssh", "hosts"}, true},
		"a hard link to a neighbour": {[]tar.Header{
			{Name: "hosts/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "hosts/l", Typeflag: tar.TypeLink, Linkname: "hosts/../.ssh/id"}}, ".", []string{".ssh", "hosts"}, true},
	} {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".ssh", "id"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var stream bytes.Buffer
		w := tar.NewWriter(&stream)
		for _, h := range c.entries {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.Close()
		_, err := Unpack(&stream, filepath.Join(home, c.to), UnpackOptions{Name: "hosts", Modes: 0o777})
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		var have []string
		for _, folder := range []string{".", ".ssh"} {
			entries, err := os.ReadDir(filepath.Join(home, folder))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if folder == "." {
					have = append(have, e.Name())
				} else if e.Name() != "id" {
					t.Errorf("%s: .ssh has %s", name, e.Name())
				}
			}
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%s: there are %v, want %v", name, have, c.want)
		}
	}
}

// TestHardLinks: a hard link of a stream is one of the copy.
func TestHardLinks(t *testing.T) {
	var stream bytes.Buffer
	w := tar.NewWriter(&stream)
	for _, h := range []tar.Header{
		{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "a/one", Typeflag: tar.TypeReg, Mode: 0o644, Size: 3}, {Name: "a/two", Typeflag: tar.TypeLink, Linkname: "a/one"},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = w.Write([]byte("abc"))
		}
	}
	_ = w.Close()
	to := filepath.Join(t.TempDir(), "copy")
	if _, err := Unpack(&stream, to, UnpackOptions{Modes: 0o777}); err != nil {
		t.Fatal(err)
	}
	one, err1 := os.Stat(filepath.Join(to, "one"))
	two, err2 := os.Stat(filepath.Join(to, "two"))
	if err1 != nil || err2 != nil || !os.SameFile(one, two) || two.Size() != 3 {
		t.Errorf("%v, %v, %v, %v", one, two, err1, err2)
	}
}
