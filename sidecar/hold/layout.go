package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/sidecar/link"
)

// ErrLayOut reports that the files of the devices could not be laid out.
var ErrLayOut = errors.New("laying out the files")

// laidOutFile notes that the files are laid out. It goes with the state of a sandbox that no
// longer exists: the containers of a new one start from the beginning.
const laidOutFile = "laid-out"

// layOut lays out the files of the devices, unless that is done.
func (s *supervisor) layOut() error {
	file := filepath.Join(s.Dir, laidOutFile)
	if s.LayOut == nil {
		return nil
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.LayOut(); err != nil {
		return fmt.Errorf("%w: %w", ErrLayOut, err)
	}
	return link.WriteFile(file, nil)
}
