package sshconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/internal/markers"
)

// folder is that of c9s in ssh's.
const folder = "c9s"

// block names the lines of c9s in the user's configuration.
const block = "c9s: nodes of labs"

// Install writes a file of entries into c9s' folder below ssh's (~/.ssh), and has the user's
// configuration include that folder. It returns the file.
func Install(ssh, name, text string) (string, error) {
	file := filepath.Join(ssh, folder, name)
	if err := atomicfile.Write(file, []byte(text), 0o600, 0o700); err != nil {
		return "", fmt.Errorf("write ssh's configuration: %w", err)
	}
	return file, include(ssh, "Include "+folder+"/*.conf")
}

// Remove deletes a file that Install has written, and what includes it when it was the last.
// It reports whether there was one.
func Remove(ssh, name string) (bool, error) {
	dir := filepath.Join(ssh, folder)
	err := os.Remove(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := os.Remove(dir); err != nil {
		return true, nil // there are files of other labs
	}
	return true, include(ssh, "")
}

// include puts lines at the beginning of the user's configuration: after the first Host they
// would belong to that.
func include(ssh, lines string) error {
	file, err := filepath.EvalSymlinks(filepath.Join(ssh, "config")) // it may be linked to elsewhere
	if errors.Is(err, fs.ErrNotExist) {
		file, err = filepath.Join(ssh, "config"), nil
	}
	if err != nil {
		return err
	}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	text := markers.Set(string(old), block, lines, true)
	if text == string(old) {
		return nil
	}
	if err := atomicfile.Write(file, []byte(text), mode, 0o700); err != nil {
		return fmt.Errorf("write ssh's configuration: %w", err)
	}
	return nil
}
