package prepare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// layOutPrograms gives every container with a program its folders: the helper,
// the program and payloads, which the device can read, and an empty one that the
// device's users can write.
func layOutPrograms(paths Paths, m *contract.Manifest) error {
	var errs []error
	first := ""
	for _, n := range m.Nodes {
		for _, c := range n.Containers {
			dir := filepath.Join(paths.State, contract.ExecDir, c.Name)
			if err := layOutProgram(paths, dir, c, first); err != nil {
				errs = append(errs, fmt.Errorf("program of container %s: %w", c.Name, err))
				continue
			}
			first = filepath.Join(dir, contract.HelperFile)
		}
	}
	return errors.Join(errs...)
}

func layOutProgram(paths Paths, dir string, c contract.Container, helper string) error {
	if err := layOut(dir, paths.Files, append([]contract.Entry{{Path: contract.RunDir, Mode: 0o755, Dir: true}}, c.Payloads...)); err != nil {
		return err
	}
	program, err := json.Marshal(c.Program)
	if err != nil {
		return err
	}
	if err := replace(filepath.Join(dir, contract.ProgramFile), 0o444, func(f *os.File) error {
		_, err := f.Write(program)
		return err
	}); err != nil {
		return err
	}
	if err := placeHelper(paths.Helper, helper, filepath.Join(dir, contract.HelperFile)); err != nil {
		return err
	}
	run := filepath.Join(paths.State, contract.RunDir, c.Name)
	if err := os.MkdirAll(run, 0o777); err != nil {
		return err
	}
	return os.Chmod(run, 0o777|os.ModeSticky)
}

// placeHelper copies the helper, or links it to a copy that is there already.
func placeHelper(source, copied, target string) error {
	if copied != "" {
		if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if os.Link(copied, target) == nil {
			return nil
		}
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	return replace(target, 0o555, func(f *os.File) error {
		_, err := io.Copy(f, in)
		return err
	})
}

// replace writes a file beside its name and renames it.
func replace(name string, mode os.FileMode, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".c9s-new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
