package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/vishvananda/netlink"
)

const (
	// work is the working directory in the sandbox's own root folder.
	work = "/work"
	// program is where the running program is found there.
	program = "/bin/c9s-planner"
)

// Program is the path of the running program, in a sandbox too.
func Program() (string, error) {
	if Contained() {
		return program, nil
	}
	if filepath.IsAbs(os.Args[0]) {
		return os.Args[0], nil
	}
	return os.Executable()
}

// ownRoot makes a root folder in memory and goes there. It has the few devices that
// programs expect, the program itself, and nothing else of the machine.
func ownRoot() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts to itself: %w", err)
	}
	if err := syscall.Mount("c9s", root, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "size=1g,mode=0755"); err != nil {
		return fmt.Errorf("mounting a root folder: %w", err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"bin", "dev/pts", "etc", "old", "proc", "tmp", "work"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"etc/hosts": "127.0.0.1 localhost\n", "etc/resolv.conf": "", "etc/os-release": "ID=c9s\n", "etc/passwd": "root:x:0:0::" + work + ":/\n",
	} {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom"} {
		if err := bind("/dev/"+name, at("dev/"+name), 0); err != nil {
			return err
		}
	}
	if err := bind(self, at(program), syscall.MS_RDONLY); err != nil {
		return err
	}
	if err := syscall.Mount("devpts", at("dev/pts"), "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("mounting terminals: %w", err)
	}
	if err := os.Symlink("pts/ptmx", at("dev/ptmx")); err != nil {
		return err
	}
	if err := mountProc(at("proc")); err != nil {
		return err
	}
	return enterRoot(root)
}

// bind makes one file of the machine visible in the new root folder.
func bind(source, target string, flags uintptr) error {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o755)
	if err != nil {
		return err
	}
	file.Close()
	if err := syscall.Mount(source, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s: %w", source, err)
	}
	if flags == 0 {
		return nil
	}
	// The flags that the mount has already must stay (mount_namespaces(7)).
	var fs syscall.Statfs_t
	if err := syscall.Statfs(target, &fs); err != nil {
		return err
	}
	const locked = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_NOATIME | syscall.MS_NODIRATIME | syscall.MS_RELATIME
	if err := syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|flags|uintptr(fs.Flags)&locked, ""); err != nil {
		return fmt.Errorf("binding %s read-only: %w", source, err)
	}
	return nil
}

// mountProc shows the sandbox's own processes. Where the kernel does not allow it, as in
// a container that hides parts of /proc, there is the machine's /proc, in which the
// user namespace keeps other processes' memory and folders out of reach.
func mountProc(target string) error {
	err := syscall.Mount("proc", target, "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, "")
	if err == nil {
		return nil
	}
	fmt.Fprintf(os.Stderr, "the names of the machine's processes can be seen: %v\n", err)
	if err := syscall.Mount("/proc", target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return nil
}

// enterRoot changes the root folder and drops the old one, as pivot_root(2) has it.
func enterRoot(root string) error {
	if err := syscall.PivotRoot(root, filepath.Join(root, "old")); err != nil {
		return fmt.Errorf("changing the root folder: %w", err)
	}
	if err := os.Chdir(work); err != nil {
		return err
	}
	if err := syscall.Unmount("/old", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("dropping the machine's root folder: %w", err)
	}
	return os.Remove("/old")
}

// ownInterfaces gives the sandbox's network namespace the interface eth0 that some
// hooks look for, as one end of a pair.
func ownInterfaces() error {
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "mp0"}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("making eth0 in the sandbox: %w", err)
	}
	return nil
}
