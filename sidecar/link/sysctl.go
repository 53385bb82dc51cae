package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// procSys is the folder of the kernel's settings. Those below net are of the reader's network
// namespace.
const procSys = "/proc/sys/"

// SetSysctl writes a setting if it differs. The path is given as elements since the name of
// an interface may contain dots. A missing setting is not an error: the kernel may have been
// built without IPv6 or netfilter.
func SetSysctl(value string, path ...string) error {
	file := procSys + filepath.Join(path...)
	old, err := readSetting(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && old == value {
		return nil
	}
	if err := os.WriteFile(file, []byte(value), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set %s: %w", strings.Join(path, "/"), err)
	}
	return nil
}

// readSetting reads a short file by system calls: each pass reads about forty, and os.File
// would register each with the poller.
func readSetting(file string) (string, error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var buf [256]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(buf[:n])), nil
}

// noAddresses prevents a link-local address on a helper, which would send neighbour
// discovery into the lab.
func noAddresses(name string) error {
	return SetSysctl("1", "net", "ipv6", "conf", name, "disable_ipv6")
}
