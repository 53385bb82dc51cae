// Package seat limits how many processes of a kind run in a Pod.
package seat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrTaken reports that all seats are taken.
var ErrTaken = errors.New("all seats are taken")

// Take locks one of the files that limit the processes of a kind. dir is a folder of the
// sidecar's own. The lock ends with the process.
func Take(dir, kind string, most int) (free func(), err error) {
	for i := range most {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("%s-%d.lock", kind, i)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return func() { f.Close() }, nil
		}
		f.Close()
	}
	return nil, ErrTaken
}
