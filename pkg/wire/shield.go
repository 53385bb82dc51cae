//go:build linux

package wire

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The kernel would process what a device sends, since it arrives on an interface of this
// namespace: it would answer ARP, or return an OSPF multicast to the router that sent it.
// Packet sockets receive frames before tc does. So a tc program on the leg's ingress drops
// everything and keeps it from the kernel's stack (many kernels lack gact's drop).

const shieldPriority = 49000

// shield keeps what arrives on a leg from the kernel's stack.
func (k *kernelWorker) shield(index int) error {
	if k.guard == 0 {
		fd, err := loadDrop()
		if err != nil {
			return err
		}
		k.guard = fd
	}
	if err := datapath.AddClsact(k.h, index); err != nil {
		return err
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: shieldPriority},
		Fd:          k.guard, Name: "c9s-shield", DirectAction: true,
	}
	if err := k.h.FilterReplace(filter); err != nil {
		return fmt.Errorf("tc filter on a leg: %w", err)
	}
	return nil
}

// unshield removes the filters.
func (k *kernelWorker) unshield(index int) {
	if err := k.h.QdiscDel(datapath.Clsact(index)); err != nil && !datapath.LinkGone(err) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		k.f.opt.Log.Debug("clsact stays on a leg", "error", err)
	}
}

// The program "return TC_ACT_SHOT" (linux/bpf.h, pkt_cls.h): r0 = 2; exit. The
// kernel gets addresses as numbers, so they must be those of package variables.
var (
	dropProgram = [2]uint64{0xb7 | 2<<32, 0x95}
	dropLicense = [4]byte{'G', 'P', 'L', 0}
)

func loadDrop() (int, error) {
	const bpfProgLoad, schedCls = 5, 3
	attr := struct {
		progType, count    uint32
		insns, license     uint64
		logLevel, logSize  uint32
		logBuf             uint64
		kernVersion, flags uint32
	}{progType: schedCls, count: 2, insns: uint64(uintptr(unsafe.Pointer(&dropProgram))), license: uint64(uintptr(unsafe.Pointer(&dropLicense)))}
	fd, _, e := unix.Syscall(unix.SYS_BPF, bpfProgLoad, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if e != 0 {
		return 0, fmt.Errorf("loading a BPF program: %w", e)
	}
	return int(fd), nil
}
