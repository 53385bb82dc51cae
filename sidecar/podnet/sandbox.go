package podnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/link"
)

// sandbox tells one network namespace from another. A Pod has a new one after a reboot
// of its worker, and when its pause container ended; its files are the same.
type sandbox struct {
	// Boot is the machine's boot (/proc/sys/kernel/random/boot_id).
	Boot string `json:"boot"`
	// Inode is the namespace's, which another may have later; Cookie is never given
	// again in one boot (SO_NETNS_COOKIE, Linux 5.14), 0 where there is none.
	Inode  uint64 `json:"inode"`
	Cookie uint64 `json:"cookie,omitempty"`
}

func presentSandbox() (sandbox, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return sandbox{}, err
	}
	s := sandbox{Boot: strings.TrimSpace(string(boot))}
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return s, fmt.Errorf("the network namespace: %w", err)
	}
	s.Inode = st.Ino
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return s, fmt.Errorf("the network namespace: %w", err)
	}
	defer unix.Close(fd)
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
		s.Cookie = cookie
	}
	return s, nil
}

// forgetOther removes the sidecar's state if it is of another sandbox: interfaces,
// settings and stages that are none of this one's.
func (c *Config) forgetOther() error {
	now, err := presentSandbox()
	if err != nil {
		return err
	}
	file := c.state("sandbox.json")
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var was sandbox
	if err == nil && json.Unmarshal(data, &was) == nil && was == now {
		return nil
	}
	if err == nil {
		c.Log.Info("the Pod has a new sandbox: its state is made anew")
		entries, err := os.ReadDir(filepath.Dir(file))
		if err != nil {
			return err
		}
		for _, e := range entries {
			// The note of whose it is goes last, with the new one.
			if name := filepath.Join(filepath.Dir(file), e.Name()); name != file {
				if err := os.RemoveAll(name); err != nil {
					return err
				}
			}
		}
	}
	if data, err = json.Marshal(now); err != nil {
		return err
	}
	return link.WriteFile(file, data)
}
