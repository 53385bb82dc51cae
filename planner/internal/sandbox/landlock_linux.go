package sandbox

import (
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// confine limits this process, and what it starts, to its workspace and to the files
// that every Go program reads, as far as the kernel knows how (landlock(7)): newer
// kernels also deny the network, and signals to processes outside. The error says that
// the kernel has no Landlock.
func confine() error {
	if _, err := ll.LandlockGetABIVersion(); err != nil {
		return fmt.Errorf("this kernel has no Landlock: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	workspace, err := os.Getwd()
	if err != nil {
		return err
	}
	return landlock.V11.BestEffort().Restrict(
		landlock.RWDirs(workspace).WithRefer(),
		landlock.ROFiles(self),
		landlock.RODirs("/proc", "/sys").IgnoreIfMissing(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/ptmx").WithIoctlDev().IgnoreIfMissing(),
		landlock.RWDirs("/dev/pts").WithIoctlDev().IgnoreIfMissing(),
		landlock.ROFiles("/dev/random", "/dev/urandom", "/etc/hosts", "/etc/resolv.conf", "/etc/os-release", "/etc/passwd", "/etc/localtime").IgnoreIfMissing(),
	)
}
