//go:build linux

package local

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The folder of the worker has a folder for each lab, named by the lab's key, and that one
// a socket for each process of the lab, named by its Pod and its epoch. A name never means
// another process later, so whoever finds a dead socket may delete it.

const (
	folderMode = 0o700
	// unfinished begins the name of a socket that does not listen yet, which takes far less
	// than unfinishedFor.
	unfinished    = "."
	unfinishedFor = time.Minute
	// openTries bounds the repetitions when others delete the folder at the same time.
	openTries = 20
	// sweepMost is how many sockets one process tests when it ends. The last processes of a
	// lab test all.
	sweepMost = 8
	// listMost bounds how many names are read.
	listMost = 10_000
)

// folder is the folder of a lab.
type folder struct {
	worker int // the descriptor of the worker's folder
	name   string
	dir    *os.File
	keys   keys
}

// keys are those of the socket names and of the greeting.
type keys struct{ name, greet []byte }

// openFolder opens the lab's folder, and makes it if it does not exist.
func openFolder(worker int, name string, k keys) (*folder, error) {
	if err := unix.Mkdirat(worker, name, folderMode); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("making the lab's folder on the worker: %w", err)
	}
	fd, err := unix.Openat(worker, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the lab's folder on the worker: %w", err)
	}
	f := &folder{worker: worker, name: name, dir: os.NewFile(uintptr(fd), name), keys: k}
	if err := unix.Fchmod(fd, folderMode); err != nil { // whatever the umask left
		f.dir.Close()
		return nil, fmt.Errorf("the mode of the lab's folder on the worker: %w", err)
	}
	return f, nil
}

// pod begins the names of a Pod's sockets.
func (f *folder) pod(pod string) string {
	h := hmac.New(sha256.New, f.keys.name)
	h.Write([]byte(pod))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (f *folder) socket(pod string, epoch uint64) string {
	return fmt.Sprintf("%s-%016x", f.pod(pod), epoch)
}

// path is how bind and connect get a name in the folder: it has no path in this process's
// file system.
func (f *folder) path(name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.dir.Fd(), name)
}

// has reports whether a process has a socket. It does not block.
func (f *folder) has(name string) bool {
	return unix.Faccessat(int(f.dir.Fd()), name, unix.F_OK, 0) == nil
}

// listen makes a socket, which has its name once it listens.
func (f *folder) listen(name string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: f.path(unfinished + name), Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	dir := int(f.dir.Fd())
	if err := unix.Renameat(dir, unfinished+name, dir, name); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// remove deletes a name.
func (f *folder) remove(name string) { _ = unix.Unlinkat(int(f.dir.Fd()), name, 0) }

// names lists the folder.
func (f *folder) names() []string {
	if _, err := f.dir.Seek(0, 0); err != nil {
		return nil
	}
	all, _ := f.dir.Readdirnames(listMost) // io.EOF, or what there is
	return all
}

// removeOthers deletes the sockets that earlier processes of the Pod have left.
func (f *folder) removeOthers(pod, keep string) {
	for _, name := range f.names() {
		if name != keep && strings.HasPrefix(strings.TrimPrefix(name, unfinished), f.pod(pod)+"-") {
			f.remove(name)
		}
	}
}

// sweep deletes some of the sockets whose processes have ended, and the folder if it is
// empty.
func (f *folder) sweep() {
	names := f.names()
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(len(names), sweepMost)] {
		if f.dead(name) {
			f.remove(name)
		}
	}
	_ = unix.Unlinkat(f.worker, f.name, unix.AT_REMOVEDIR) // ENOTEMPTY: the others do it
}

// dead reports whether nobody listens at a socket any more.
func (f *folder) dead(name string) bool {
	if strings.HasPrefix(name, unfinished) {
		var st unix.Stat_t
		err := unix.Fstatat(int(f.dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		return err == nil && time.Since(time.Unix(st.Mtim.Unix())) > unfinishedFor
	}
	c, err := f.dial(name)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}

// dial connects without waiting: a listener without room is an error.
func (f *folder) dial(name string) (*net.UnixConn, error) {
	return net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: f.path(name), Net: "unixpacket"})
}

// publish opens the lab's folder and makes the Pod's socket in it.
func publish(worker int, name string, k keys, pod string, epoch uint64) (*folder, *net.UnixListener, error) {
	for try := 0; ; try++ {
		f, err := openFolder(worker, name, k)
		if err == nil {
			own := f.socket(pod, epoch)
			f.removeOthers(pod, own)
			l, listenErr := f.listen(own)
			if listenErr == nil {
				return f, l, nil
			}
			f.dir.Close()
			err = fmt.Errorf("making a socket in the lab's folder on the worker: %w", listenErr)
		}
		// The last of the lab's other Pods has just deleted the folder.
		if !errors.Is(err, fs.ErrNotExist) || try == openTries {
			return nil, nil, err
		}
	}
}
