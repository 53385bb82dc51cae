package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

func output(argv ...string) (string, error) {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

func isRoot() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("the user is %d", uid)
	}
	return nil
}

func isFirst() error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("it is process %d", pid)
	}
	return nil
}

// numbers are those of linux/capability.h.
var numbers = map[string]uint{
	"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8, "NET_BIND_SERVICE": 10,
	"NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_CHROOT": 18, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_NICE": 23, "SYS_TIME": 25,
	"MKNOD": 27, "AUDIT_WRITE": 29, "SETFCAP": 31, "SYSLOG": 34,
}

func capabilities(names ...string) func() error {
	return func() error {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(text), "CapEff:")
		line, _, _ := strings.Cut(rest, "\n")
		have, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
		if err != nil {
			return err
		}
		var missing []string
		for _, name := range names {
			number, known := numbers[name]
			if !known || have&(1<<number) == 0 {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("it lacks %s", strings.Join(missing, ", "))
		}
		return nil
	}
}

func environment(pairs ...string) func() error {
	return func() error {
		var errs []error
		for pair := range slices.Chunk(pairs, 2) {
			if got := os.Getenv(pair[0]); got != pair[1] {
				errs = append(errs, fmt.Errorf("%s is %q, not %q", pair[0], got, pair[1]))
			}
		}
		return errors.Join(errs...)
	}
}

// setenv wants what systemd gives to its services.
func setenv(pairs ...string) func() error {
	return func() error {
		for _, pair := range pairs {
			if !slices.Contains(os.Args[1:], "systemd.setenv="+pair) {
				return fmt.Errorf("no argument systemd.setenv=%s among %q", pair, os.Args[1:])
			}
		}
		return nil
	}
}

func sysctl(name, want string) func() error {
	return func() error {
		text, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
		if got := strings.TrimSpace(string(text)); err == nil && got != want {
			err = fmt.Errorf("%s is %s, not %s", name, got, want)
		}
		return err
	}
}

func atLeast(path string, want int) func() error {
	return func() error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if got, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || got < want {
			return fmt.Errorf("%s is %d, less than %d", path, got, want)
		}
		return nil
	}
}

func exists(path string) func() error {
	return func() error {
		_, err := os.Stat(path)
		return err
	}
}

func executable(path string) func() error {
	return func() error {
		info, err := os.Stat(path)
		if err == nil && info.Mode()&0o111 == 0 {
			err = fmt.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	}
}

func holds(path, text string) func() error {
	return func() error {
		data, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(data), text) {
			err = fmt.Errorf("%s has no %q", path, text)
		}
		return err
	}
}

// writable writes to a folder, or to a setting what it has.
func writable(path string) func() error {
	return func() error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, data, 0)
		}
		f, err := os.CreateTemp(path, "standin-")
		if err != nil {
			return err
		}
		f.Close()
		return os.Remove(f.Name())
	}
}

func writableCgroups() error {
	dirs, _ := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err == nil {
		dirs = append(dirs, "/sys/fs/cgroup/cgroup.procs")
	}
	if len(dirs) == 0 {
		return errors.New("there are none in /sys/fs/cgroup")
	}
	dir := filepath.Join(filepath.Dir(dirs[0]), fmt.Sprintf("standin-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return os.Remove(dir)
}

func mayMount() error {
	dir, err := os.MkdirTemp("/tmp", "standin-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		return err
	}
	return syscall.Unmount(dir, 0)
}

func mountedAs(path, kind string) func() error {
	return func() error {
		data, err := os.ReadFile("/proc/self/mounts")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 2 && f[1] == path && f[2] == kind {
				return nil
			}
		}
		return fmt.Errorf("%s is no %s of its own", path, kind)
	}
}

// port is an interface that is up and takes packets of that size.
func port(name string, mtu int) func() error {
	return func() error {
		i, err := net.InterfaceByName(name)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case i.Flags&net.FlagUp == 0:
			return fmt.Errorf("%s is down", name)
		case i.MTU < mtu:
			return fmt.Errorf("%s takes %d bytes, not %d", name, i.MTU, mtu)
		}
		return nil
	}
}

// addressed is an interface with an IPv4 address, one of IPv6 too if so wanted, and a gateway.
func addressed(name string, both bool) func() error {
	return func() error {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		addresses, err := i.Addrs()
		if err != nil {
			return err
		}
		v4, v6 := false, false
		for _, a := range addresses {
			ip := a.(*net.IPNet).IP
			v4 = v4 || ip.To4() != nil
			v6 = v6 || ip.To4() == nil && !ip.IsLinkLocalUnicast()
		}
		if !v4 || both && !v6 {
			return fmt.Errorf("%s has the addresses %v", name, addresses)
		}
		routes, err := os.ReadFile("/proc/net/route")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(routes)) {
			if f := strings.Fields(line); f[0] == name && f[1] == "00000000" {
				return nil
			}
		}
		return fmt.Errorf("there is no default route by %s", name)
	}
}

func hardware(name, prefix string) func() error {
	return func() error {
		i, err := net.InterfaceByName(name)
		if err == nil && (len(i.HardwareAddr) != 6 || !strings.HasPrefix(i.HardwareAddr.String(), prefix)) {
			err = fmt.Errorf("%s has the address %s, not %s...", name, i.HardwareAddr, prefix)
		}
		return err
	}
}

func nextAddress(file, name string) func() error {
	return func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		next, err := net.ParseMAC(strings.TrimSpace(string(text)))
		if err != nil {
			return err
		}
		i, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		want := slices.Clone(i.HardwareAddr)
		want[5]++
		if !slices.Equal(want, next) {
			return fmt.Errorf("%s has %s, and %s %s", file, next, name, i.HardwareAddr)
		}
		return nil
	}
}

func baseAddress(variable, name string) func() error {
	return func() error {
		i, err := net.InterfaceByName(name)
		if err == nil && !strings.EqualFold(os.Getenv(variable), i.HardwareAddr.String()) {
			err = fmt.Errorf("%s is %q, and %s has %s", variable, os.Getenv(variable), name, i.HardwareAddr)
		}
		return err
	}
}

// ifreq is struct ifreq (netdevice(7)) with flags or a pointer.
type ifreq struct {
	name  [syscall.IFNAMSIZ]byte
	flags uint16
	_     [6]byte
	_     [16]byte
}

type ifreqPointer struct {
	name    [syscall.IFNAMSIZ]byte
	pointer unsafe.Pointer
	_       [16]byte
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

// withSocket opens the socket that requests about interfaces need.
func withSocket(ask func(fd int) error) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return ask(fd)
}

// noOffload asks whether the kernel leaves checksums of sent packets unfinished (SIOCETHTOOL,
// ETHTOOL_GTXCSUM).
func noOffload(name string) func() error {
	return func() error {
		const siocethtool, gtxcsum = 0x8946, 0x16
		value := &[2]uint32{gtxcsum, 0}
		r := &ifreqPointer{pointer: unsafe.Pointer(value)}
		copy(r.name[:], name)
		err := withSocket(func(fd int) error { return ioctl(fd, siocethtool, unsafe.Pointer(r)) })
		if err == nil && value[1] != 0 {
			err = fmt.Errorf("%s leaves checksums to its hardware", name)
		}
		return err
	}
}

func noARP(name string) func() error {
	return func() error {
		const iffNoARP = 0x80
		r := &ifreq{}
		copy(r.name[:], name)
		err := withSocket(func(fd int) error { return ioctl(fd, syscall.SIOCGIFFLAGS, unsafe.Pointer(r)) })
		if err == nil && r.flags&iffNoARP == 0 {
			err = fmt.Errorf("%s answers ARP", name)
		}
		return err
	}
}

func packetSocket(name string) func() error {
	return func() error {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		const all = 0x0300 // ETH_P_ALL in network byte order
		fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, all)
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		return syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: all, Ifindex: i.Index})
	}
}

// openTap makes a tap device for as long as it looks at it (TUNSETIFF, IFF_TAP|IFF_NO_PI).
func openTap(name string) func() error {
	return func() error {
		fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR, 0)
		if err != nil {
			return fmt.Errorf("/dev/net/tun: %w", err)
		}
		defer syscall.Close(fd)
		const tunsetiff, tap = 0x400454ca, 0x1002
		r := &ifreq{flags: tap}
		copy(r.name[:], name)
		if err := ioctl(fd, tunsetiff, unsafe.Pointer(r)); err != nil {
			return fmt.Errorf("tap %s: %w", name, err)
		}
		return nil
	}
}

// xrInterfaces are "linux:NAME,xr_name=NAME;" for each.
func xrInterfaces() error {
	list := strings.TrimSuffix(os.Getenv("XR_INTERFACES"), ";")
	if list == "" {
		return errors.New("XR_INTERFACES names none")
	}
	for entry := range strings.SplitSeq(list, ";") {
		name, ok := strings.CutPrefix(strings.Split(entry, ",")[0], "linux:")
		if !ok {
			return fmt.Errorf("XR_INTERFACES has %q", entry)
		}
		if err := port(name, 1500)(); err != nil {
			return err
		}
	}
	return nil
}

// setsRoutes adds a route as a routing daemon does, and takes it away.
func setsRoutes() error {
	route := []string{"203.0.113.0/24", "dev", "eth1", "proto", "static"}
	if _, err := output(append([]string{"ip", "route", "add"}, route...)...); err != nil {
		return err
	}
	_, err := output(append([]string{"ip", "route", "del"}, route...)...)
	return err
}
