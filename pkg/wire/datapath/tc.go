//go:build linux

package datapath

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Clsact is the place for tc filters of an interface.
func Clsact(index int) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
}

// AddClsact adds it, unless it exists.
func AddClsact(h *netlink.Handle, index int) error {
	if err := h.QdiscAdd(Clsact(index)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("clsact on a leg: %w", err)
	}
	return nil
}

// AddDevice makes an interface of a wire and returns it as the kernel has it. It is down, and the
// kernel's IPv6 does not use it.
func AddDevice(h *netlink.Handle, made netlink.Link) (netlink.Link, error) {
	name := made.Attrs().Name
	if err := h.LinkAdd(made); err != nil {
		return nil, fmt.Errorf("making %s: %w", name, err)
	}
	link, err := h.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", name, err)
	}
	// Best effort: it keeps router solicitations out of the wire.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
	return link, nil
}

// SetUp sets an interface of a wire up.
func SetUp(h *netlink.Handle, link netlink.Link) error {
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting %s up: %w", link.Attrs().Name, err)
	}
	return nil
}

// DeleteDevice deletes an interface of a wire, if it exists.
func DeleteDevice(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return nil
	}
	if err := h.LinkDel(link); err != nil && !LinkGone(err) {
		return err
	}
	return nil
}

// LinkGone reports whether an error says that an interface does not exist.
func LinkGone(err error) bool {
	var missing netlink.LinkNotFoundError
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) || errors.As(err, &missing)
}
