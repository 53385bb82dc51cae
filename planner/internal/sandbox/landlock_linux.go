package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a process without namespaces may do with files (landlock(7)): all in its
// workspace, reading and running itself, the devices, and reading what a Go program
// asks the machine for.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readable = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	runnable = readFile | unix.LANDLOCK_ACCESS_FS_EXECUTE
	writable = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	// everything is what the first version of Landlock knows.
	everything = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
)

// confineFiles limits this process, and what it starts, to the files that it needs. The
// error says that the kernel cannot do so.
func confineFiles() error {
	if _, _, e := syscall.AllThreadsSyscall(syscall.SYS_GETPID, 0, 0, 0); e == syscall.ENOTSUP {
		return fmt.Errorf("built with cgo: %w", e)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: everything}
	fd, _, e := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Handled_access_fs), 0)
	if e != 0 {
		return fmt.Errorf("Landlock: %w", e)
	}
	defer syscall.Close(int(fd))
	self, err := os.Executable()
	if err != nil {
		return err
	}
	workspace, err := os.Getwd()
	if err != nil {
		return err
	}
	for name, access := range map[string]uint64{
		workspace: everything, self: runnable, "/proc": readable, "/sys": readable,
		"/dev/null": writable, "/dev/zero": writable, "/dev/urandom": readFile, "/dev/random": readFile, "/dev/ptmx": writable, "/dev/pts": writable,
		"/etc/hosts": readFile, "/etc/resolv.conf": readFile, "/etc/os-release": readFile, "/etc/passwd": readFile, "/etc/localtime": readFile,
	} {
		if err := allow(int(fd), name, access); err != nil {
			return err
		}
	}
	if _, _, e := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("setting no_new_privs: %w", e)
	}
	if _, _, e := syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return fmt.Errorf("Landlock: %w", e)
	}
	return nil
}

// allow adds a rule for a path, if that is there.
func allow(ruleset int, name string, access uint64) error {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if _, _, e := syscall.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return fmt.Errorf("Landlock, %s: %w", name, e)
	}
	return nil
}
