//go:build linux

package datapath

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Program is a tc program, one instruction an element (linux/bpf.h).
type Program []uint64

// Drop drops every frame.
var Drop = Program{0xb7 | tcShot<<32, exit}

// The results and helpers of tc programs (linux/pkt_cls.h, linux/bpf.h).
const (
	exit       = 0x95
	tcShot     = 2
	toEgress   = 23  // bpf_redirect
	toPeerSide = 155 // bpf_redirect_peer, Linux 5.10
)

// Redirect sends every frame out of an interface.
func Redirect(index int) Program { return redirect(index, toEgress) }

// RedirectToPeer has every frame arrive at the other side of a veth, in another network
// namespace, without a wait in its queue.
func RedirectToPeer(index int) Program { return redirect(index, toPeerSide) }

// redirect is: r1 = index; r2 = 0 (flags); call helper; exit.
func redirect(index int, helper uint64) Program {
	return Program{0xb7 | 1<<8 | uint64(uint32(index))<<32, 0xb7 | 2<<8, 0x85 | helper<<32, exit}
}

// loadTries is how often a load is repeated that a signal interrupts.
const loadTries = 50

// Load loads a tc program.
func (p Program) Load() (int, error) {
	const bpfProgLoad, schedCls = 5, 3
	license := []byte("GPL\x00")
	var pins runtime.Pinner // the kernel gets addresses as numbers
	defer pins.Unpin()
	pins.Pin(&p[0])
	pins.Pin(&license[0])
	attr := struct {
		progType, count    uint32
		insns, license     uint64
		logLevel, logSize  uint32
		logBuf             uint64
		kernVersion, flags uint32
	}{progType: schedCls, count: uint32(len(p)), insns: uint64(uintptr(unsafe.Pointer(&p[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	// The verifier gives up when a signal arrives, as those by which Go preempts threads.
	for try := 0; ; try++ {
		fd, _, e := unix.Syscall(unix.SYS_BPF, bpfProgLoad, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		switch {
		case e == 0:
			return int(fd), nil
		case (e != unix.EAGAIN && e != unix.EINTR) || try == loadTries:
			return 0, fmt.Errorf("loading a BPF program: %w", e)
		}
	}
}

// OnIngress runs a loaded program for what arrives on an interface, in place of the one with
// the same priority.
func OnIngress(h *netlink.Handle, index int, priority uint16, fd int, name string) error {
	if err := AddClsact(h, index); err != nil {
		return err
	}
	filter := ingress(index, priority)
	filter.Fd, filter.Name, filter.DirectAction = fd, name, true
	if err := h.FilterReplace(filter); err != nil {
		return fmt.Errorf("tc filter on a leg: %w", err)
	}
	return nil
}

// NotOnIngress removes the program with the priority, if there is one.
func NotOnIngress(h *netlink.Handle, index int, priority uint16) error {
	err := h.FilterDel(ingress(index, priority))
	if err != nil && !LinkGone(err) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("tc filter on a leg: %w", err)
	}
	return nil
}

func ingress(index int, priority uint16) *netlink.BpfFilter {
	return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: priority}}
}
