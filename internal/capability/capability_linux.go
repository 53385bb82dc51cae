// Package capability drops capabilities of the running program; see capabilities(7).
package capability

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Keep drops all capabilities but those of a bit set, in every thread. What the program starts
// gets none back, not even as root. A program built with cgo cannot do so: the error is
// syscall.ENOTSUP.
func Keep(set uint64) error {
	permitted, err := Permitted()
	if err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	if _, _, e := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("setting no_new_privs: %w", e)
	}
	// Version 3 of the header takes two words of each set.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	remaining := uint32(permitted & set)
	data := [2]unix.CapUserData{{Effective: remaining, Permitted: remaining}}
	if _, _, e := syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0); e != 0 {
		return fmt.Errorf("dropping capabilities: %w", e)
	}
	return nil
}

// Permitted is the bit set CapPrm of /proc/self/status.
func Permitted() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapPrm:"); ok {
			return strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no CapPrm")
}
