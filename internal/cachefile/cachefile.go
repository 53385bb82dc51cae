// Package cachefile writes the files of c9s' caches.
package cachefile

import (
	"os"
	"path/filepath"
)

// Write puts the file in place whole, so that another run never reads half of it.
// Its folder is made, for the user alone.
func Write(file string, data []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.Write(data); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
