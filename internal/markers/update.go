package markers

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Update changes a file in place, as its lock allows: other programs that call Update wait. The
// file may be a mount of its own, so it is not replaced by another one.
func Update(file string, change func(text string) string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() // the lock ends with it
	if err := lock(f); err != nil {
		return err
	}
	old, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	err = rewrite(f, []byte(change(string(old))))
	if err != nil { // the disk may be full: what was there has room
		_ = rewrite(f, old)
	}
	return err
}

func lock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}

func rewrite(f *os.File, data []byte) error {
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(data)))
}
