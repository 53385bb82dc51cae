package link

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// procSys is where the kernel's settings are. The entries below net are those of
// the reader's network namespace.
const procSys = "/proc/sys/"

// SetSysctl writes one setting, given as path elements, where it differs. An
// interface's name may have dots, hence elements. What the kernel does not have
// is no error: IPv6 and netfilter may be left out of it.
func SetSysctl(value string, path ...string) error {
	file := procSys + filepath.Join(path...)
	old, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && strings.TrimSpace(string(old)) == value:
		return nil
	}
	if err := os.WriteFile(file, []byte(value), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set %s: %w", strings.Join(path, "/"), err)
	}
	return nil
}

// Sysctl reads one setting; "" where the kernel has none such.
func Sysctl(path ...string) string {
	data, err := os.ReadFile(procSys + filepath.Join(path...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// noAddresses keeps a helper from having a link-local address, which would make
// it send neighbour discovery into the lab.
func noAddresses(name string) error {
	return SetSysctl("1", "net", "ipv6", "conf", name, "disable_ipv6")
}
