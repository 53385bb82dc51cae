package link

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// ensureDummy ensures an interface that leads nowhere. If the kernel has no dummy module,
// it is a veth whose other end is an idle leg.
func (r *round) ensureDummy(i *contract.Interface) error {
	k, name := KeyOf(i), LinuxName(i.Node, i.Name)
	if r.own.legs[k.String()] != nil {
		return r.ensureLegged(i, helper('d', k), legUp)
	}
	dev := r.home(i).device(k, name)
	if dev != nil && dev.Type() == "dummy" {
		return r.finish(i, dev, nil)
	}
	if dev == nil && r.elsewhere(k) {
		return nil
	}
	if err := r.clear(r.home(i), k, name); err != nil {
		return err
	}
	veth, err := vethOf(i, name, "")
	if err != nil {
		return err
	}
	dev, err = r.home(i).create(&netlink.Dummy{LinkAttrs: veth.LinkAttrs})
	if errors.Is(err, unix.EOPNOTSUPP) {
		return r.ensureLegged(i, helper('d', k), legUp)
	}
	if err != nil {
		return fmt.Errorf("make dummy %s: %w", name, err)
	}
	return r.finish(i, dev, nil)
}
