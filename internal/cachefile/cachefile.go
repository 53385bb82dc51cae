// Package cachefile writes the files of c9s' caches.
package cachefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts the file in place whole, so that another run never reads half of it.
// Its folder is made, for the user alone.
func Write(file string, data []byte) error {
	dir := filepath.Dir(file)
	tmp, err := os.CreateTemp(dir, "new-")
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		tmp, err = os.CreateTemp(dir, "new-")
	}
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
