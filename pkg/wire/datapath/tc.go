//go:build linux

package datapath

import (
	"errors"
	"fmt"

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

// LinkGone reports whether an error says that an interface does not exist.
func LinkGone(err error) bool {
	var missing netlink.LinkNotFoundError
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) || errors.As(err, &missing)
}
