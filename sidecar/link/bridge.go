package link

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// bridgeAlias marks the bridges that the sidecar made.
const bridgeAlias = "c9s-bridge"

// The kernel refuses STP, pause and LACP (bits 0 to 2) in a bridge's mask, but
// only pause (bit 1) in a port's (net/bridge/br_private.h, BR_GROUPFWD_*).
const (
	bridgeMaskRefused = 0x0007
	portMaskRefused   = 0x0002
)

// bridgeName returns the bridge's name in the kernel. links.json has only legal names.
func bridgeName(b *contract.Bridge) string { return LinuxName("", b.Name) }

// bridges creates the desired bridges and deletes the others.
func (r *round) bridges(want []contract.Bridge) {
	for _, l := range slices.Clone(r.own.links) {
		if l.Type() != "bridge" || l.Attrs().Alias != bridgeAlias || r.own.byIndex[l.Attrs().Index] == nil {
			continue
		}
		if !slices.ContainsFunc(want, func(b contract.Bridge) bool { return bridgeName(&b) == l.Attrs().Name }) {
			r.delete(r.own, l)
		}
	}
	for i := range want {
		if err := r.bridge(&want[i]); err != nil {
			r.fail(Key{Name: want[i].Name}, err)
		}
	}
	if len(want) > 0 {
		// With br_netfilter on the worker, bridged frames would run through the
		// sidecar's firewall, which drops them.
		if err := PassBridged(); err != nil {
			r.fail(Key{Name: "bridge"}, err)
		}
	}
}

// PassBridged excludes bridged frames from the namespace's firewall.
func PassBridged() error {
	var errs []error
	for _, name := range []string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables", "bridge-nf-call-arptables"} {
		errs = append(errs, SetSysctl("0", "net", "bridge", name))
	}
	return errors.Join(errs...)
}

func (r *round) bridge(b *contract.Bridge) error {
	name := bridgeName(b)
	l := r.own.byName[name]
	if l == nil {
		off, mask := false, b.GroupForwardMask&^bridgeMaskRefused
		a := netlink.NewLinkAttrs()
		a.Name = name
		created, err := r.own.create(&netlink.Bridge{LinkAttrs: a, MulticastSnooping: &off, GroupFwdMask: &mask})
		if err != nil {
			return fmt.Errorf("make bridge %s: %w", name, err)
		}
		l = created
	}
	br, ok := l.(*netlink.Bridge)
	if !ok {
		return fmt.Errorf("bridge %s: an interface of that name is a %s", name, l.Type())
	}
	if br.Alias != bridgeAlias {
		if err := r.own.nl.LinkSetAlias(l, bridgeAlias); err != nil {
			return fmt.Errorf("mark bridge %s: %w", name, err)
		}
	}
	if br.MulticastSnooping != nil && *br.MulticastSnooping {
		if err := r.own.nl.BridgeSetMcastSnoop(l, false); err != nil {
			return fmt.Errorf("multicast snooping of bridge %s off: %w", name, err)
		}
	}
	if mask := b.GroupForwardMask &^ bridgeMaskRefused; br.GroupFwdMask != nil && *br.GroupFwdMask != mask {
		change := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: br.Index, Name: name}, GroupFwdMask: &mask}
		if err := r.own.nl.LinkModify(change); err != nil {
			return fmt.Errorf("group_fwd_mask of bridge %s: %w", name, err)
		}
	}
	if had, known := r.masks[name]; !known || had != b.GroupForwardMask {
		if err := r.portMasks(b, br.Index); err != nil {
			return err
		}
		r.masks[name] = b.GroupForwardMask
	}
	if err := noAddresses(name); err != nil {
		return err
	}
	return r.own.up(l)
}

// portMasks sets the mask of the existing ports.
func (r *round) portMasks(b *contract.Bridge, index int) error {
	for _, l := range r.own.byIndex {
		if l.Attrs().MasterIndex != index {
			continue
		}
		if err := r.own.nl.LinkSetBRSlaveGroupFwdMask(l, b.GroupForwardMask&^portMaskRefused); err != nil {
			return fmt.Errorf("group_fwd_mask of port %s: %w", l.Attrs().Name, err)
		}
	}
	return nil
}

// enslave makes l a port of its bridge.
func (r *round) enslave(l netlink.Link, i *contract.Interface) error {
	if i.Bridge == "" {
		return nil
	}
	b := contract.Bridge{Name: i.Bridge}
	br := r.own.byName[bridgeName(&b)]
	if br == nil {
		return fmt.Errorf("port %s: there is no bridge %s", i.Name, i.Bridge)
	}
	if l.Attrs().MasterIndex != br.Attrs().Index {
		if err := r.own.nl.LinkSetMaster(l, br); err != nil {
			return fmt.Errorf("port %s of bridge %s: %w", i.Name, i.Bridge, err)
		}
		l.Attrs().MasterIndex = br.Attrs().Index
	}
	if err := r.own.nl.LinkSetBRSlaveGroupFwdMask(l, r.wantMasks[i.Bridge]&^portMaskRefused); err != nil {
		return fmt.Errorf("group_fwd_mask of port %s: %w", i.Name, err)
	}
	if err := r.own.nl.LinkSetIsolated(l, i.Isolated); err != nil {
		return fmt.Errorf("isolation of port %s: %w", i.Name, err)
	}
	return noAddresses(l.Attrs().Name)
}
