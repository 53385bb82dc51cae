package link

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/pkg/contract"
)

var macvlanModes = map[string]netlink.MacvlanMode{
	"":         netlink.MACVLAN_MODE_BRIDGE,
	"bridge":   netlink.MACVLAN_MODE_BRIDGE,
	"vepa":     netlink.MACVLAN_MODE_VEPA,
	"private":  netlink.MACVLAN_MODE_PRIVATE,
	"passthru": netlink.MACVLAN_MODE_PASSTHRU,
	"source":   netlink.MACVLAN_MODE_SOURCE,
}

// ensureMacvlan ensures a macvlan on an interface of the worker. It is created from the
// worker's side, directly in the Pod.
func (r *round) ensureMacvlan(i *contract.Interface) error {
	k, name := KeyOf(i), LinuxName(i.Node, i.Name)
	mode, ok := macvlanModes[i.Macvlan.Mode]
	if !ok {
		return fmt.Errorf("macvlan %s: mode %q in links.json is not one that Linux has", i.Name, i.Macvlan.Mode)
	}
	dev := r.dev.device(k, name)
	if mv, isMacvlan := dev.(*netlink.Macvlan); isMacvlan {
		old, known := r.memory.get(k)
		if mv.Mode == mode && (!known || old.Spec.Macvlan != nil && *old.Spec.Macvlan == *i.Macvlan) {
			return r.finish(i, dev, nil)
		}
	}
	if dev == nil && r.elsewhere(k) {
		return nil
	}
	if err := r.clear(r.dev, k, name); err != nil {
		return err
	}
	w, err := r.worker()
	if err != nil {
		return err
	}
	parent, err := w.nl.LinkByName(i.Macvlan.Parent)
	if err != nil {
		return fmt.Errorf("macvlan %s: the worker's interface %s: %w", i.Name, i.Macvlan.Parent, err)
	}
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU, a.ParentIndex, a.Namespace = name, i.MTU, parent.Attrs().Index, netlink.NsFd(r.dev.fd)
	if a.HardwareAddr, err = net.ParseMAC(i.MAC); err != nil && i.MAC != "" {
		return fmt.Errorf("macvlan %s: MAC address %q: %w", i.Name, i.MAC, err)
	}
	if err := w.nl.LinkAdd(&netlink.Macvlan{LinkAttrs: a, Mode: mode}); err != nil {
		return fmt.Errorf("make macvlan %s on %s: %w", i.Name, i.Macvlan.Parent, err)
	}
	if dev, err = r.dev.read(name); err != nil {
		return fmt.Errorf("macvlan %s: %w", i.Name, err)
	}
	return r.finish(i, dev, nil)
}
