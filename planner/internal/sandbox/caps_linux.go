package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/internal/capability"
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
	permitted, err := capability.Permitted()
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
	return capability.Keep(kept())
}
