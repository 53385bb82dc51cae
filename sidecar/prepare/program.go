package prepare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/internal/atomicfile"
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
	if err := atomicfile.Write(filepath.Join(dir, contract.ProgramFile), program, 0o444, 0o755); err != nil {
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
	return atomicfile.Copy(target, 0o555, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}
