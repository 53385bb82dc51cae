package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// remoteAddr is what a tunnel's far end last resolved to.
type remoteAddr struct {
	addr netip.Addr
	at   time.Time
}

// Names of far ends are asked for again after remoteAge; one question may take
// remotePatience, since everything else waits for it.
const (
	remoteAge      = time.Minute
	remotePatience = time.Second
)

// ensureVXLAN keeps a tunnel to outside the lab: the device's interface itself,
// or the far half of a stitched one.
func (r *round) ensureVXLAN(i *contract.Interface, k Key, name string) error {
	dev := r.dev.device(k, name)
	if dev == nil && r.elsewhere(k) {
		return nil
	}
	// By an interface that the device has, the tunnel is the device's; else it
	// takes the Pod's way out, which is in the sidecar's namespace.
	from := r.own
	if r.dev.byName[i.VXLAN.Parent] != nil {
		from = r.dev
	}
	want, err := r.tunnel(i, name, from)
	if err != nil {
		return err
	}
	if have, ok := dev.(*netlink.Vxlan); ok && sameTunnel(have, want) {
		return r.finish(i, dev, nil)
	}
	if err := r.clear(r.dev, k, name); err != nil {
		return err
	}
	if i.MAC != "" {
		if want.HardwareAddr, err = net.ParseMAC(i.MAC); err != nil {
			return fmt.Errorf("interface %s: MAC address %q: %w", i.Name, i.MAC, err)
		}
	}
	want.MTU = i.MTU
	if from == r.own {
		want.Namespace = netlink.NsFd(r.dev.fd)
	}
	if err := from.nl.LinkAdd(want); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make VXLAN %s to %s: %w", name, i.VXLAN.Remote, err)
	}
	if dev, err = r.dev.read(name); err != nil {
		return fmt.Errorf("make VXLAN %s to %s: %w", name, i.VXLAN.Remote, err)
	}
	return r.finish(i, dev, nil)
}

// tunnel is the VXLAN device that the link wants, with its outer side in a
// namespace.
func (r *round) tunnel(i *contract.Interface, name string, from *place) (*netlink.Vxlan, error) {
	remote, err := r.resolve(i.VXLAN.Remote)
	if err != nil {
		return nil, fmt.Errorf("interface %s: far end of its VXLAN, %s: %w", i.Name, i.VXLAN.Remote, err)
	}
	parentName := i.VXLAN.Parent
	if parentName == "" {
		parentName = r.opts.Underlay
	}
	a := netlink.NewLinkAttrs()
	a.Name = name
	v := &netlink.Vxlan{LinkAttrs: a, VxlanId: i.VXLAN.VNI, Group: remote.AsSlice(), Port: i.VXLAN.DstPort, Learning: true}
	// A tunnel whose parent the Pod does not have goes the way of the Pod's own
	// traffic: the topology's name is one of the machine that containerlab runs on.
	parent := from.byName[parentName]
	if parent == nil {
		parent = from.byName[r.opts.Underlay]
	}
	if parent == nil {
		return v, nil
	}
	v.VtepDevIndex = parent.Attrs().Index
	if parent.Attrs().Name == r.opts.Underlay {
		for _, src := range r.opts.Source {
			if src.Is4() == remote.Is4() {
				v.SrcAddr = src.AsSlice()
				break
			}
		}
	}
	if p := i.VXLAN.SrcPort; p != 0 {
		v.PortLow, v.PortHigh = p, p+1
	}
	return v, nil
}

func sameTunnel(a, b *netlink.Vxlan) bool {
	return a.VxlanId == b.VxlanId && a.Group.Equal(b.Group) && a.Port == b.Port && a.VtepDevIndex == b.VtepDevIndex
}

// resolve finds a far end's address. A name that cannot be found just now keeps
// the address that it had.
func (s *Set) resolve(remote string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(remote); err == nil {
		return addr.Unmap(), nil
	}
	known, ok := s.remote[remote]
	if ok && time.Since(known.at) < remoteAge {
		return known.addr, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), remotePatience)
	defer cancel()
	addrs, err := s.opts.Resolve(ctx, remote)
	if err != nil || len(addrs) == 0 {
		if ok {
			s.remote[remote] = remoteAddr{known.addr, time.Now()}
			return known.addr, nil
		}
		return netip.Addr{}, fmt.Errorf("name not found: %w", err)
	}
	for _, a := range addrs {
		// Of several addresses the one in use stays.
		if ok && a == known.addr {
			addrs[0] = a
		}
	}
	s.remote[remote] = remoteAddr{addrs[0], time.Now()}
	return addrs[0], nil
}
