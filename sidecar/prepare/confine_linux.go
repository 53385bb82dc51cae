package prepare

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// needed are the capabilities that Run uses: it writes to folders of any owner, and gives
// files their owner and mode. See capabilities(7).
const needed = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER

// Confine drops all other capabilities of this process, in every thread. The sidecar has every
// capability of its worker, and Run reads folders that a device has filled.
func Confine() error {
	permitted, err := permittedCapabilities()
	if err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	// What this process starts gets none back, not even as root.
	if _, _, e := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("setting no_new_privs: %w", e)
	}
	// Version 3 of the header takes two words of each set.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	remaining := uint32(permitted & needed)
	data := [2]unix.CapUserData{{Effective: remaining, Permitted: remaining}}
	if _, _, e := syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0); e != 0 {
		return fmt.Errorf("dropping capabilities: %w", e)
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
