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

// procSys is where the kernel's settings are. The entries below net are those of
// the reader's network namespace.
const procSys = "/proc/sys/"

// SetSysctl writes one setting, given as path elements, where it differs. An
// interface's name may have dots, hence elements. What the kernel does not have
// is no error: IPv6 and netfilter may be left out of it.
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

// readSetting reads a short file by system calls: some forty are looked at in
// every pass, and os.File would put each on the poller.
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

// noAddresses keeps a helper from having a link-local address, which would make
// it send neighbour discovery into the lab.
func noAddresses(name string) error {
	return SetSysctl("1", "net", "ipv6", "conf", name, "disable_ipv6")
}
