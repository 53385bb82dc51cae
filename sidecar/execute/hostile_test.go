package execute

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// within runs f and fails where it takes long: it hangs at a pipe, say.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
}

// What a device's user puts into the helper's folder leads no result elsewhere, into
// no file that was there, and lets the helper wait for nobody.
func TestResultStaysInFolder(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(victim, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{contract.ResultFile, "." + contract.ResultFile} {
		for what, plant := range map[string]func(path string) error{
			"a symbolic link": func(path string) error { return os.Symlink(victim, path) },
			"a hard link":     func(path string) error { return os.Link(victim, path) },
			"a pipe":          func(path string) error { return syscall.Mkfifo(path, 0o666) },
			"an empty folder": func(path string) error { return os.Mkdir(path, 0o777) },
			"a file":          func(path string) error { return os.WriteFile(path, []byte("{}"), 0o666) },
		} {
			n, o := newNode(t, true, contract.Step{Run: sh("true")})
			if err := plant(filepath.Join(n.dir, contract.RunDir, name)); err != nil {
				t.Fatal(err)
			}
			within(t, func() {
				if err := Main(t.Context(), o); err != nil {
					t.Error(err)
				}
			})
			if r := n.result(); !r.Done {
				t.Errorf("%s as %s: %+v", what, name, r)
			}
			if data, err := os.ReadFile(victim); string(data) != "secret" {
				t.Fatalf("%s as %s: the file holds %q, %v", what, name, data, err)
			}
			left, err := os.ReadDir(filepath.Join(n.dir, contract.RunDir))
			if err != nil || len(left) > 2 {
				t.Errorf("%s as %s: left %v, %v", what, name, left, err)
			}
		}
	}
}

// A user who replaces files all the time wins no race either.
func TestResultRace(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(victim, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	end := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
			}
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				path := filepath.Join(dir, e.Name())
				_ = os.Remove(path)
				_ = os.Symlink(victim, path)
			}
			_ = os.Symlink(victim, filepath.Join(dir, "."+contract.ResultFile))
		}
	})
	for range 2000 {
		_ = report(filepath.Join(dir, contract.ResultFile), []byte("{}")) // it may lose, but hurt nobody
	}
	close(end)
	group.Wait()
	if data, err := os.ReadFile(victim); string(data) != "secret" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

// A payload is written to the path and no other file, and is nobody else's then. What
// the image has there is written in place.
func TestWriteAmongUsersOfTheDevice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files of other users are made by root")
	}
	const user = 4321
	outside := t.TempDir()
	victim := filepath.Join(outside, "shadow")
	real := filepath.Join(outside, "real")
	for what, c := range map[string]struct {
		plant   func(path string) error
		inPlace bool
	}{
		"nothing":                 {plant: func(string) error { return nil }},
		"a link of a user":        {plant: func(path string) error { return withOwner(path, user, os.Symlink(victim, path)) }},
		"a file of a user":        {plant: func(path string) error { return withOwner(path, user, os.WriteFile(path, nil, 0o777)) }},
		"a second name of a file": {plant: func(path string) error { return os.Link(victim, path) }},
		"a pipe":                  {plant: func(path string) error { return syscall.Mkfifo(path, 0o666) }},
		"a file of the image":     {plant: func(path string) error { return os.WriteFile(path, []byte("a longer text"), 0o644) }, inPlace: true},
		"a link of the image":     {plant: func(path string) error { return os.Symlink(real, path) }, inPlace: true},
	} {
		if err := os.WriteFile(real, []byte("a longer text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(victim, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "setup.sh")
		if err := c.plant(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Stat(path)
		n, o := newNode(t, true, contract.Step{Write: &contract.Write{Path: path, Mode: 0o755, Payload: "p"}})
		if err := os.WriteFile(filepath.Join(n.dir, "p"), []byte("#!ours"), 0o444); err != nil {
			t.Fatal(err)
		}
		within(t, func() {
			if err := Main(t.Context(), o); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
		data, err := os.ReadFile(path)
		if string(data) != "#!ours" {
			t.Errorf("%s: written %q, %v", what, data, err)
		}
		after, err := os.Stat(path)
		if err != nil || after.Mode().Perm() != 0o755 || after.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s: %v, %v", what, after, err)
		}
		if c.inPlace && !os.SameFile(before, after) {
			t.Errorf("%s: the file was replaced; a mount would still show the old one", what)
		}
		if data, err := os.ReadFile(victim); string(data) != "secret" {
			t.Errorf("%s: the file outside holds %q, %v", what, data, err)
		}
	}
}

func withOwner(path string, user int, err error) error {
	if err != nil {
		return err
	}
	return os.Lchown(path, user, user)
}
