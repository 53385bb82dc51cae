package mgmt

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Proxy sets the addresses that the kernel answers for on an interface: the peers' on the
// leg, the node's own on the mesh.
func Proxy(nl *netlink.Handle, l netlink.Link, want map[netip.Addr]bool) error {
	for _, family := range families {
		have, err := nl.NeighProxyList(l.Attrs().Index, family)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return fmt.Errorf("proxied addresses of %s: %w", l.Attrs().Name, err)
		}
		there := make(map[netip.Addr]bool, len(have))
		for _, n := range have {
			a := addr(n.IP)
			there[a] = true
			if !want[a] {
				if err := nl.NeighDel(proxied(l, a)); err != nil && !errors.Is(err, unix.ENOENT) {
					return fmt.Errorf("proxied address %s of %s: %w", a, l.Attrs().Name, err)
				}
			}
		}
		for a := range want {
			if isFamily(a, family) && !there[a] {
				if err := nl.NeighSet(proxied(l, a)); err != nil {
					return fmt.Errorf("proxied address %s of %s: %w", a, l.Attrs().Name, err)
				}
			}
		}
	}
	return nil
}

func proxied(l netlink.Link, a netip.Addr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: l.Attrs().Index, Family: familyOf(a), Flags: netlink.NTF_PROXY, IP: a.AsSlice()}
}

// ndaDST is NDA_DST (linux/neighbour.h).
const ndaDST = 1

// Proxied reports whether the kernel still answers for an address. It drops all entries of
// an interface that loses its carrier (pneigh_ifdown), so one address represents all.
func Proxied(l netlink.Link, a netip.Addr) bool {
	req := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, 0)
	req.AddData(&netlink.Ndmsg{Family: uint8(familyOf(a)), Index: uint32(l.Attrs().Index), Flags: netlink.NTF_PROXY})
	req.AddData(nl.NewRtAttr(ndaDST, a.AsSlice()))
	_, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	return err == nil
}
