//go:build linux

package wire

import (
	"errors"
	"fmt"

	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// findDevice opens the devices' namespace, if there is one.
func (f *Fabric) findDevice() error {
	if f.opt.Device == 0 {
		return nil
	}
	fd, err := unix.FcntlInt(uintptr(f.opt.Device), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the devices' network namespace: %w", err)
	}
	f.device.fd = fd
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	defer handle.Close()
	const auto = -1
	if err := handle.SetNetNsIdByFd(fd, auto); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("numbering the devices' network namespace: %w", err)
	}
	if f.deviceID, err = handle.GetNetNsIdByFd(fd); err != nil {
		return fmt.Errorf("the number of the devices' network namespace: %w", err)
	}
	return nil
}

// linkLoop follows the state of the interfaces of a namespace: the legs', or the
// devices'. It ends if messages of the kernel were lost (ENOBUFS), so that the caller
// starts again with a full list.
func (f *Fabric) linkLoop(handle *netlink.Handle, fd int, devices bool) error {
	ns := netns.NsHandle(fd)
	updates, done := make(chan netlink.LinkUpdate, 256), make(chan struct{})
	defer close(done)
	err := netlink.LinkSubscribeWithOptions(updates, done, netlink.LinkSubscribeOptions{
		Namespace: &ns, ReceiveBufferSize: 1 << 20, ReceiveBufferForceSize: true,
		ErrorCallback: func(err error) { f.opt.Log.Debug("link messages were lost", "error", err) },
	})
	if err != nil {
		return fmt.Errorf("watching the legs: %w", err)
	}
	// What changed before the subscription began.
	all, err := handle.LinkList()
	if err != nil { // one that was interrupted is not complete
		return fmt.Errorf("listing the legs: %w", err)
	}
	if !devices {
		f.onlyLinks(all)
	}
	for _, l := range all {
		f.linkSeen(l, devices)
	}
	for {
		select {
		case <-f.ctx.Done():
			return nil
		case u, ok := <-updates:
			if !ok {
				return nil
			}
			if u.Header.Type == unix.RTM_DELLINK {
				// A bridge tells of its ports with the same type.
				if u.IfInfomsg.Family != unix.AF_BRIDGE {
					f.linkGone(u.Attrs().Index, devices)
				}
				continue
			}
			if u.IfInfomsg.Family == unix.AF_UNSPEC {
				f.linkSeen(u.Link, devices)
			}
		}
	}
}

// onlyLinks removes links that are not among all: the message about their deletion may
// have been lost.
func (f *Fabric) onlyLinks(all []netlink.Link) {
	there := map[int]bool{0: true}
	for _, l := range all {
		there[l.Attrs().Index] = true
	}
	var gone []int
	f.mu.Lock()
	for _, w := range f.wires {
		for _, l := range w.legs {
			if l != nil && !there[l.index] {
				gone = append(gone, l.index)
			}
		}
	}
	f.pathsLost(func(index int) bool { return !there[index] })
	f.mu.Unlock()
	for _, index := range gone {
		f.linkGone(index, false)
	}
}

// linkSeen records the state of a link, which may be a leg or a device's side.
func (f *Fabric) linkSeen(l netlink.Link, devices bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if devices {
		f.takeDevice(l.Attrs())
		return
	}
	f.linkNews++
	f.takeLink(l.Attrs(), l.Type())
}

// linkLooks limits how often a link is read again because its state changed meanwhile.
const linkLooks = 20

// lookAt reads a link beside linkLoop and records its state. If linkLoop processed a
// message meanwhile, the answer may be stale and nothing would correct it, so lookAt reads
// again.
func (f *Fabric) lookAt(ask func() (netlink.Link, error)) (netlink.Link, error) {
	for range linkLooks {
		f.mu.Lock()
		before := f.linkNews
		f.mu.Unlock()
		link, err := ask()
		if err != nil {
			return nil, err
		}
		f.mu.Lock()
		fresh := f.linkNews == before
		if fresh {
			f.takeLink(link.Attrs(), link.Type())
		}
		f.mu.Unlock()
		if fresh {
			return link, nil
		}
	}
	return nil, errors.New("the interfaces change all the time")
}

// takeLink records the state of a link. The caller holds the lock.
func (f *Fabric) takeLink(a *netlink.LinkAttrs, kind string) {
	if a.Name == f.opt.Underlay && f.eng.Limit != clampMTU(a.MTU) {
		f.eng.Remeasure(f.underlayMTU())
	}
	admin, lower := a.RawFlags&unix.IFF_UP != 0, a.RawFlags&unix.IFF_LOWER_UP != 0
	for _, w := range f.wires {
		for _, l := range w.legs {
			if l == nil {
				continue
			}
			switch {
			case l.index == a.Index || (l.index == 0 && l.name == a.Name):
				if l.index == 0 {
					l.index = a.Index
					poke(f.kernel)
				}
				was, wasAway := l.peerIndex, l.away
				l.away = f.device.fd != 0 && a.NetNsID == f.deviceID
				l.peerIndex = 0
				if kind == "veth" && (a.NetNsID < 0 || l.away) {
					l.peerIndex = a.ParentIndex
				}
				if l.away && (l.peerIndex != was || !wasAway) {
					l.looked = false // its message may have come before
					poke(f.kernel)
				}
				wasAdmin := l.admin
				if l.see(admin, lower) || wasAdmin != admin {
					f.legChanged(w)
				}
			case !l.away && l.peerIndex == a.Index && a.ParentIndex == l.index:
				// The device's side: its own state, even while the leg is down.
				if kind != "veth" || a.NetNsID >= 0 {
					l.peerIndex = 0
				} else if l.seeDevice(admin) {
					f.legChanged(w)
				}
			}
		}
	}
}

// takeDevice records the state of an interface in the devices' namespace, which shows a
// device's side even while its leg is down. The caller holds the lock.
func (f *Fabric) takeDevice(a *netlink.LinkAttrs) {
	for _, w := range f.wires {
		for _, l := range w.legs {
			if l != nil && l.away && l.peerIndex == a.Index && a.ParentIndex == l.index && l.seeDevice(a.RawFlags&unix.IFF_UP != 0) {
				f.legChanged(w)
			}
		}
	}
}

// linkGone records that a link was deleted.
func (f *Fabric) linkGone(index int, devices bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !devices {
		f.linkNews++
		f.pathsLost(func(i int) bool { return i == index })
	}
	for _, w := range f.wires {
		for _, l := range w.legs {
			switch {
			case l == nil:
			case !devices && l.index == index:
				l.lost()
				f.legChanged(w)
				poke(f.kernel)
			case l.away == devices && l.peerIndex == index:
				l.peerIndex = 0 // probably moved to another namespace
			}
		}
	}
}

// legChanged notifies the far end, and decides again.
func (f *Fabric) legChanged(w *wireEnd) {
	f.decide(w)
	if p := f.eng.Peers[w.want.PeerPod]; !w.local() && p != nil {
		f.eng.Urgent(p)
		poke(f.ticks)
	}
}

// underlayMTU returns the MTU of the Pod network's interface.
func (f *Fabric) underlayMTU() int {
	mtu := f.udp.InterfaceMTU(f.opt.Underlay)
	if mtu == 0 {
		mtu = 1500
	}
	return clampMTU(mtu)
}

func clampMTU(mtu int) int { return max(proto.MinMTU, min(mtu, 65535)) }
