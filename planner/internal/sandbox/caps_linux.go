package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that hooks use: they give files in the workspace to
// groups of their device, with setgid. See capabilities(7). In namespaces of its
// own the program enters that of the network too (setns(2)), to look at eth0, and
// makes a bridge there that is in a container's namespace.
func kept() uint64 {
	set := uint64(1<<unix.CAP_CHOWN | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID)
	if Contained() {
		set |= 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN
	}
	return set
}

// DropCapabilities takes all other capabilities from this process and from what it
// starts, for good. In a user namespace of its own they reached no further than
// that; where the kernel has given none, they were the user's. A program built with
// cgo cannot do so, and says that on standard error.
func DropCapabilities() error {
	if _, _, e := syscall.AllThreadsSyscall(syscall.SYS_GETPID, 0, 0, 0); e == syscall.ENOTSUP {
		fmt.Fprintln(os.Stderr, "built with cgo, which keeps a process from dropping capabilities; build with CGO_ENABLED=0")
		return nil
	}
	permitted, err := permittedCapabilities()
	if err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	if permitted&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			if kept()&(1<<c) != 0 {
				continue
			}
			// EINVAL is a capability that this kernel does not know.
			if _, _, e := syscall.AllThreadsSyscall(syscall.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); e != 0 && e != syscall.EINVAL {
				return fmt.Errorf("dropping capability %d: %w", c, e)
			}
		}
	}
	// Version 3 of the header takes two words of each set.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	remaining := uint32(permitted & kept())
	data := [2]unix.CapUserData{{Effective: remaining, Permitted: remaining}}
	if _, _, e := syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0); e != 0 {
		return fmt.Errorf("dropping capabilities: %w", e)
	}
	if _, _, e := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("setting no_new_privs: %w", e)
	}
	return nil
}

// permittedCapabilities is the bit set CapPrm of /proc/self/status.
func permittedCapabilities() (uint64, error) {
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
