//go:build linux

package local

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func workerFolder(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Open(t.TempDir())
	fatal(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// pair returns two connected sockets.
func pair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	fatal(t, err)
	conn := func(fd int) *net.UnixConn {
		f := os.NewFile(uintptr(fd), "")
		defer f.Close()
		c, err := net.FileConn(f)
		fatal(t, err)
		t.Cleanup(func() { c.Close() })
		return c.(*net.UnixConn)
	}
	return conn(fds[0]), conn(fds[1])
}

var (
	r1 = party{"r1", 7}
	r2 = party{"r2", 9}
)

func TestGreeting(t *testing.T) {
	something, err := os.Open("/dev/null")
	fatal(t, err)
	defer something.Close()
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	for name, c := range map[string]struct {
		client, server []byte
		asked          party
		ok             bool
	}{
		"both have the key":              {key, key, r2, true},
		"the client has another key":     {other, key, r2, false},
		"the server has another key":     {key, other, r2, false},
		"another process of the Pod":     {key, key, party{"r2", 10}, false},
		"another Pod, at a stolen place": {key, key, party{"r3", 9}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			done := make(chan error, 1)
			go func() {
				done <- serve(b, c.server, r2, int(something.Fd()))
				b.Close()
			}()
			f, err := greet(a, c.client, r1, c.asked)
			if served := <-done; (served == nil) != c.ok || (err == nil) != c.ok || (f != nil) != c.ok {
				t.Errorf("greet: %v %v, serve: %v", f, err, served)
			}
			if f != nil {
				f.Close()
			}
		})
	}
}

// A neighbour without the key gets a nonce, whatever it sends, and no descriptor.
func TestStrangersGetNothing(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	seen := map[string]bool{}
	for name, send := range map[string][]byte{
		"nothing": nil, "a byte": {0}, "zeros": make([]byte, 200), "too much": make([]byte, 5000),
		"no name": make([]byte, nonceLen+macLen+8), "the longest name": make([]byte, nonceLen+macLen+8+maxPod),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			done := make(chan error, 1)
			go func() {
				done <- serve(b, key, r2, 0)
				b.Close()
			}()
			nonce := make([]byte, 100)
			n, err := a.Read(nonce)
			if err != nil || n != nonceLen || seen[string(nonce[:n])] {
				t.Fatalf("first come %d bytes, %v", n, err)
			}
			seen[string(nonce[:n])] = true
			if send != nil {
				_, err = a.Write(send)
				fatal(t, err)
			} else {
				a.CloseWrite()
			}
			answer, rights := make([]byte, 100), make([]byte, 100)
			fatal(t, a.SetReadDeadline(time.Now().Add(time.Minute)))
			n, oob, _, _, _ := a.ReadMsgUnix(answer, rights)
			if n > 0 || oob > 0 {
				t.Errorf("a stranger gets %d bytes and %d of rights", n, oob)
			}
			if err := <-done; err == nil {
				t.Error("the server is content")
			}
		})
	}
}

// A server that has not the key leaves no descriptors behind, however many it passes.
func TestStrangersLeaveNothing(t *testing.T) {
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		fatal(t, err)
		return len(all)
	}
	a, b := pair(t)
	for _, n := range []int{1, 2, 3, 50} {
		before := open()
		go func() {
			_, _ = b.Write(make([]byte, nonceLen))
			_, _ = b.Read(make([]byte, 500))
			_, _, _ = b.WriteMsgUnix(make([]byte, macLen), unix.UnixRights(make([]int, n)...), nil)
		}()
		if f, err := greet(a, bytes.Repeat([]byte{1}, 32), r1, r2); f != nil || err == nil {
			t.Fatalf("%d descriptors: %v, %v", n, f, err)
		}
		if after := open(); after != before {
			t.Errorf("%d descriptors: %d are open, %d were", n, after, before)
		}
	}
}

// An old greeting is worth nothing: both ends have nonces.
func TestReplayedGreeting(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	a, b := pair(t)
	go func() {
		serve(b, key, r2, 0)
		b.Close()
	}()
	challenge := make([]byte, nonceLen)
	_, err := a.Read(challenge)
	fatal(t, err)
	nonce := newNonce()
	old := append(append([]byte(nil), nonce...), mac(key, "client", newNonce(), nonce, r1, r2)...)
	_, err = a.Write(append(append(old, 0, 0, 0, 0, 0, 0, 0, 7), "r1"...))
	fatal(t, err)
	if n, oob, _, _, _ := a.ReadMsgUnix(make([]byte, 100), make([]byte, 100)); n > 0 || oob > 0 {
		t.Error("an old proof was accepted")
	}
}

// FuzzServe sends anything to a server.
func FuzzServe(f *testing.F) {
	f.Add([]byte("x"))
	f.Add(make([]byte, nonceLen+macLen+10))
	key := bytes.Repeat([]byte{1}, 32)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 10_000 {
			return
		}
		a, b := pair(t)
		go a.Write(data)
		if serve(b, key, r2, 0) == nil {
			t.Error("a stranger was greeted")
		}
	})
}

// Labs do not find each other: the names of their folders come from their keys.
func TestFoldersOfLabs(t *testing.T) {
	names := map[string]string{}
	for _, key := range []string{"a", "b"} {
		for _, lab := range []string{"n/one", "n/two"} {
			name, _, err := deriveKeys([]byte(key), lab)
			fatal(t, err)
			if other, ok := names[name]; ok || len(name) != 32 || strings.Contains(name, "/") {
				t.Errorf("folder %q of lab %s, and %s", name, lab, other)
			}
			names[name] = lab
		}
	}
	same, _, err := deriveKeys([]byte("a"), "n/one")
	fatal(t, err)
	if names[same] != "n/one" {
		t.Error("the Pods of a lab do not find each other")
	}
}

// Nothing leads out of the folder, and its mode is right whatever it was.
func TestFolder(t *testing.T) {
	w := workerFolder(t)
	name, k, err := deriveKeys([]byte("key"), "n/lab")
	fatal(t, err)
	elsewhere := t.TempDir()
	fatal(t, os.Symlink(elsewhere, filepath.Join(w.Name(), name)))
	if f, err := openFolder(int(w.Fd()), name, k); err == nil {
		t.Errorf("a link was followed: %v", f)
	}
	fatal(t, os.Remove(filepath.Join(w.Name(), name)))
	fatal(t, os.Mkdir(filepath.Join(w.Name(), name), 0o777))
	f, err := openFolder(int(w.Fd()), name, k)
	fatal(t, err)
	defer f.dir.Close()
	if st, err := os.Stat(filepath.Join(w.Name(), name)); err != nil || st.Mode().Perm() != folderMode {
		t.Errorf("%v %v", st.Mode(), err)
	}
	if got, most := len(f.path(unfinished+f.socket(strings.Repeat("x", 63), 1<<63))), 107; got > most {
		t.Errorf("the path of a socket has %d bytes", got)
	}
}

// Sockets of processes that ended without a word go with the last process, and the folder
// with them; those that live stay.
func TestSweep(t *testing.T) {
	w := workerFolder(t)
	name, k, err := deriveKeys([]byte("key"), "n/lab")
	fatal(t, err)
	at := func(pod string, epoch uint64) (*folder, *net.UnixListener) {
		f, l, err := publish(int(w.Fd()), name, k, pod, epoch)
		fatal(t, err)
		return f, l
	}
	f, live := at("live", 1)
	for i := range 3 * sweepMost {
		dead, l := at(fmt.Sprintf("dead%d", i), 1)
		l.Close()
		dead.dir.Close()
	}
	_, old := at("again", 1)
	old.Close()
	_, again := at("again", 2) // its own it removes
	if n := len(f.names()); n != 3*sweepMost+2 {
		t.Errorf("%d sockets", n)
	}
	for range 1000 {
		f.sweep()
		if len(f.names()) == 2 {
			break
		}
	}
	if !f.has(f.socket("live", 1)) || !f.has(f.socket("again", 2)) || f.has(f.socket("again", 1)) || len(f.names()) != 2 {
		t.Errorf("there are %v", f.names())
	}
	live.Close()
	again.Close()
	f.sweep()
	if _, err := os.Stat(filepath.Join(w.Name(), name)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
}

// Pods come while the last others go: each has its socket in the folder that there is.
func TestFolderGoesAndComes(t *testing.T) {
	w := workerFolder(t)
	name, k, err := deriveKeys([]byte("key"), "n/lab")
	fatal(t, err)
	var pods sync.WaitGroup
	for i := range 4 {
		pods.Go(func() {
			pod := fmt.Sprintf("r%d", i)
			for epoch := range uint64(300) {
				f, l, err := publish(int(w.Fd()), name, k, pod, epoch)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Lstat(filepath.Join(w.Name(), name, f.socket(pod, epoch))); err != nil {
					t.Error(err)
				}
				f.remove(f.socket(pod, epoch))
				l.Close()
				f.sweep()
				f.dir.Close()
			}
		})
	}
	pods.Wait()
	if left, _ := filepath.Glob(w.Name() + "/*"); len(left) > 0 {
		t.Errorf("%v stays", left)
	}
}
