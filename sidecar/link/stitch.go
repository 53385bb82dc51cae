package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// tunnelMark ends the ifalias of a stitched tunnel; its leg has the key alone.
const tunnelMark = "#vxlan"

// ensureStitch ensures a veth to the device and a VXLAN to outside the lab, joined by tc, so
// that the device's interface stays if the tunnel changes.
func (r *round) ensureStitch(i *contract.Interface) error {
	k := KeyOf(i)
	leg := helper('x', k)
	if err := r.ensureLegged(i, leg, legUp); err != nil {
		return err
	}
	name := helper('w', k)
	tunnel, err := r.stitchTunnel(i, k, name)
	if err != nil {
		return err
	}
	return Join(r.own.nl, r.own.byName[leg], tunnel)
}

func (r *round) stitchTunnel(i *contract.Interface, k Key, name string) (netlink.Link, error) {
	want, err := r.tunnel(i, name, r.own)
	if err != nil {
		return nil, err
	}
	l := r.own.byName[name]
	if have, ok := l.(*netlink.Vxlan); !ok || !sameTunnel(have, want) {
		if l != nil {
			r.delete(r.own, l)
		}
		if l, err = r.own.create(want); err != nil {
			return nil, fmt.Errorf("make VXLAN %s to %s: %w", name, i.VXLAN.Remote, err)
		}
	}
	if alias := k.String() + tunnelMark; l.Attrs().Alias != alias && len(alias) <= maxAlias {
		if err := r.own.nl.LinkSetAlias(l, alias); err != nil {
			return nil, fmt.Errorf("mark %s: %w", name, err)
		}
	}
	if err := noAddresses(name); err != nil {
		return nil, err
	}
	return l, r.own.up(l)
}

// Join sends all frames that arrive on one interface out of the other, in both directions.
// u32 is the classifier that every kernel has.
func Join(nl *netlink.Handle, a, b netlink.Link) error {
	for _, way := range [][2]netlink.Link{{a, b}, {b, a}} {
		if err := redirect(nl, way[0], way[1]); err != nil {
			return fmt.Errorf("join %s to %s: %w", way[0].Attrs().Name, way[1].Attrs().Name, err)
		}
	}
	return nil
}

func redirect(nl *netlink.Handle, from, to netlink.Link) error {
	index := from.Attrs().Index
	qdiscs, err := nl.QdiscList(from)
	if err != nil {
		return err
	}
	clsact := false
	for _, q := range qdiscs {
		clsact = clsact || q.Type() == "clsact"
	}
	if clsact {
		filters, err := nl.FilterList(from, netlink.HANDLE_MIN_INGRESS)
		if err != nil {
			return err
		}
		for _, f := range filters {
			if u, ok := f.(*netlink.U32); ok && leadsTo(u, to.Attrs().Index) {
				return nil
			}
		}
	}
	qdisc := &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
		QdiscType:  "clsact",
	}
	// A redirect to another interface is replaced.
	if clsact {
		if err := nl.QdiscDel(qdisc); err != nil {
			return err
		}
	}
	if err := nl.QdiscAdd(qdisc); err != nil {
		return err
	}
	return nl.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_ALL},
		Actions: []netlink.Action{&netlink.MirredAction{
			ActionAttrs:  netlink.ActionAttrs{Action: netlink.TC_ACT_STOLEN},
			MirredAction: netlink.TCA_EGRESS_REDIR,
			Ifindex:      to.Attrs().Index,
		}},
	})
}

func leadsTo(u *netlink.U32, index int) bool {
	if u.RedirIndex == index {
		return true
	}
	for _, a := range u.Actions {
		if m, ok := a.(*netlink.MirredAction); ok && m.Ifindex == index {
			return true
		}
	}
	return false
}
