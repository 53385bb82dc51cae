package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// sandbox identifies the Pod's network namespace. A Pod has a new one after a reboot
// of its worker, and when its pause container ended; its files are the same.
type sandbox struct {
	// Boot is the machine's boot (/proc/sys/kernel/random/boot_id).
	Boot string `json:"boot"`
	// Inode is the namespace's, which another may have later; Cookie is never given
	// again in one boot, and 0 where the kernel has none.
	Inode  uint64 `json:"inode"`
	Cookie uint64 `json:"cookie,omitempty"`
}

func sandboxOf(pod *nspace.Namespace) (s sandbox, err error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return s, err
	}
	s.Boot = strings.TrimSpace(string(boot))
	if s.Inode, err = pod.Inode(); err != nil {
		return s, err
	}
	s.Cookie, _ = pod.Cookie()
	return s, nil
}

// stateFile is what the supervisor keeps for the next one.
const stateFile = "sandbox.json"

// state is whose the folder's files are, and the sidecar's own namespace.
type state struct {
	sandbox
	// Own identifies the sidecar's namespace; it is 0 before that is made.
	Own uint64 `json:"own,omitempty"`
}

// load reads the state. It removes all files of another sandbox, which say nothing of
// this one.
func (s *supervisor) load(pod *nspace.Namespace) error {
	now, err := sandboxOf(pod)
	if err != nil {
		return err
	}
	file := filepath.Join(s.Dir, stateFile)
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known := err == nil
	if known && json.Unmarshal(data, &s.state) == nil && s.state.sandbox == now {
		return nil
	}
	s.state = state{sandbox: now}
	if known {
		s.Log.Info("the Pod has a new sandbox: its state is made anew")
		if err := s.forget(file); err != nil {
			return err
		}
	}
	return s.save()
}

func (s *supervisor) forget(keep string) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// The note of whose it is goes last, with the new one.
		if name := filepath.Join(s.Dir, e.Name()); name != keep {
			if err := os.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *supervisor) save() error {
	data, err := json.Marshal(s.state)
	if err != nil {
		return err
	}
	if err := link.WriteFile(filepath.Join(s.Dir, stateFile), data); err != nil {
		return fmt.Errorf("note the sidecar's network namespace: %w", err)
	}
	return nil
}
