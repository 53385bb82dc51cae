package probe

import (
	"errors"
	"fmt"
	"net"
	"os"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// trial is one feature and how it is tried.
type trial struct {
	feature Feature
	try     func() error
	// here is set if no network namespace is needed.
	here bool
}

func (t trial) run() error {
	if t.here {
		return t.try()
	}
	return apart(t.try)
}

// trials are all of them, in the order of the report.
var trials = []trial{
	{feature: Veth, try: func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs("a"), PeerName: "b"})
	}},
	{feature: Bridge, try: func() error { return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs("a")}) }},
	{feature: Dummy, try: func() error { return netlink.LinkAdd(&netlink.Dummy{LinkAttrs: attrs("a")}) }},
	{feature: VXLAN, try: func() error {
		return netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs("a"), VxlanId: 1, Group: net.IPv4(192, 0, 2, 1), Port: 4789})
	}},
	{feature: Macvlan, try: onVeth(func(parent int) error {
		a := attrs("c")
		a.ParentIndex = parent
		return netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: a, Mode: netlink.MACVLAN_MODE_BRIDGE})
	})},
	{feature: VLAN, try: onVeth(func(parent int) error {
		a := attrs("c")
		a.ParentIndex = parent
		return netlink.LinkAdd(&netlink.Vlan{LinkAttrs: a, VlanId: 1, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q})
	})},
	{feature: Rules, try: tryRules},
	{feature: NAT, try: tryNAT},
	{feature: Conntrack, try: tryConntrack},
	{feature: Redirect, try: onVeth(tryRedirect)},
	{feature: Flower, try: onVeth(tryFlower)},
	{feature: Shield, try: onVeth(tryShield)},
	{feature: PeerRedirect, try: tryPeerRedirect},
	{feature: Packet, try: func() error { return packetSocket(unix.PACKET_AUXDATA) }},
	{feature: VnetHeader, try: func() error { return packetSocket(unix.PACKET_VNET_HDR) }},
	{feature: Segment, try: trySegment},
	{feature: TUN, try: tryTUN},
	{feature: KVM, try: tryKVM, here: true},
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

// onVeth gives a try an interface to build on.
func onVeth(try func(index int) error) func() error {
	return func() error {
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs("a"), PeerName: "b"}); err != nil {
			return err
		}
		link, err := netlink.LinkByName("a")
		if err != nil {
			return err
		}
		return try(link.Attrs().Index)
	}
}

// tryRules routes what comes in by an interface by a table of its own.
func tryRules() error {
	r := netlink.NewRule()
	r.Family, r.Table, r.Priority, r.IifName = netlink.FAMILY_V4, 14801, 10, "lo"
	return netlink.RuleAdd(r)
}

func packetSocket(option int) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1)
}

// trySegment asks for UDP GSO and GRO (Linux 4.18 and 5.0).
func trySegment() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1200),
		unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1))
}

func tryTUN() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/net/tun: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("tap0")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

// tryKVM asks for a virtual machine, since a device that is there may still refuse
// it (KVM_CREATE_VM, linux/kvm.h).
func tryKVM() error {
	const kvmCreateVM = 0xae01
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	vm, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), kvmCreateVM, uintptr(unsafe.Pointer(nil)))
	if errno != 0 {
		return fmt.Errorf("making a virtual machine: %w", errno)
	}
	return unix.Close(int(vm))
}
