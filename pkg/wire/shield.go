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

// A leg is in the same network namespace as its device. What the device sends
// comes in on the leg, and the kernel would take it for traffic of its own: answer
// ARP, or hand an OSPF multicast back to the router that sent it. The packet
// socket sees frames before tc does, so a tc program on the leg's ingress that
// drops all keeps the kernel's stack out (gact's drop is missing on many kernels).

const shieldPriority = 49000

// shield makes the kernel's own stack blind for what comes in on a leg.
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

// unshield takes the filters off again.
func (k *kernelWorker) unshield(index int) {
	if err := k.h.QdiscDel(datapath.Clsact(index)); err != nil && !datapath.LinkGone(err) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		k.f.opt.Log.Debug("clsact stays on a leg", "error", err)
	}
}

// The program "return TC_ACT_SHOT" (linux/bpf.h, pkt_cls.h): r0 = 2; exit. The
// kernel is given addresses in numbers, so they are of variables that stay.
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
