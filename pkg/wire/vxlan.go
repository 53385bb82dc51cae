//go:build linux

package wire

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The vxlan datapath: the kernel's VXLAN device, one per wire, joined to the leg
// by tc redirects both ways. Each end tells in its heartbeats whether it wants it
// and is ready to receive; it sends that way only while the far end says so too.
// Control stays on the wire's own socket.

const (
	// vxlanOverhead is Ethernet, VXLAN (RFC 7348) and UDP headers, without IP.
	vxlanOverhead = 14 + 8 + 8
	vlanRoom      = 8 // two tags
)

// vxlanState is the vxlan datapath of a wire's end.
type vxlanState struct {
	want   bool
	reason string // why not
	// remote is where the device sends; valid while it exists: ready.
	remote  netip.Addr
	leg     int // whose ingress is redirected to it, and back
	sending bool
	failed  bool
}

func (v *vxlanState) ready() bool { return v.remote.IsValid() }

func (v *vxlanState) bits() (b uint8) {
	if v.want && v.ready() {
		b |= beatVXLAN
	}
	if v.sending {
		b |= beatSending
	}
	return b
}

// vxlanName is the device's; ids have at most 8 digits.
func vxlanName(w *wireEnd) string { return fmt.Sprintf("c9sv%d", w.id) }

// vxlanDecide works out whether this end wants vxlan, under the lock. It tells
// whether the kernel is to be changed.
func (f *Fabric) vxlanDecide(w *wireEnd) bool {
	v := &w.vx
	v.want, v.reason = f.vxlanWanted(w)
	remote, send := f.vxlanTarget(w)
	return remote != v.remote || send != v.sending || (v.ready() && v.leg != w.legs[0].index)
}

func (f *Fabric) vxlanWanted(w *wireEnd) (bool, string) {
	p := f.eng.peers[w.want.PeerPod]
	switch {
	case w.local(), w.want.Datapath == DatapathUDP:
		return false, ""
	case p == nil || p.cur == nil:
		return w.vx.want, w.vx.reason
	case impairs(w.want.Impairment):
		return false, "impaired"
	case f.opt.Encrypt:
		return false, "encrypted"
	case w.want.Plain:
		return false, "checksums are finished here"
	case w.vx.failed:
		return false, "the kernel refused the device"
	case w.want.Datapath == DatapathVXLAN:
		return true, ""
	case w.want.MTU+vlanRoom+vxlanOverhead+p.cur.ipHeader() > p.cur.mtu.current:
		return false, "frames of the link's MTU do not fit the underlay"
	}
	return true, ""
}

// vxlanTarget is the desired state of the device, under the lock: its remote, not
// valid for no device, and whether this end sends by it. It stays while the far
// end still sends.
func (f *Fabric) vxlanTarget(w *wireEnd) (remote netip.Addr, send bool) {
	p := f.eng.peers[w.want.PeerPod]
	if w.gone || w.local() {
		return netip.Addr{}, false
	}
	if p == nil || p.cur == nil {
		return w.vx.remote, false
	}
	bits := p.remote[w.id]
	if w.vx.want || (w.vx.ready() && bits&beatSending != 0) {
		remote = p.cur.addr.Load().Addr().Unmap()
	}
	return remote, w.vx.want && w.vx.ready() && w.vx.remote == remote && bits&beatVXLAN != 0
}

// vxlan makes the device and the redirects what they should be.
func (k *kernelWorker) vxlan(w *wireEnd) bool {
	f := k.f
	f.mu.Lock()
	remote, send := f.vxlanTarget(w)
	now, leg := w.vx, w.legs[0].index
	f.mu.Unlock()
	if leg == 0 {
		remote, send = netip.Addr{}, false
	}
	stale := now.ready() && (now.remote != remote || now.leg != leg)
	if now.sending && (!send || stale) {
		k.vxlanSend(w, now.leg, false)
		now.sending = false
	}
	if stale {
		k.vxlanRemove(w)
		now.remote = netip.Addr{}
	}
	if remote.IsValid() && !now.ready() {
		if err := k.vxlanMake(w, remote, leg); err != nil {
			f.opt.Log.Warn("no vxlan datapath", "wire", w.id, "error", err)
			k.vxlanRemove(w)
			f.mu.Lock()
			w.vx.failed = true
			f.mu.Unlock()
		} else {
			now.remote, now.leg = remote, leg
			f.mu.Lock()
			_, send = f.vxlanTarget(w)
			f.mu.Unlock()
		}
	}
	if send && now.ready() && !now.sending {
		now.sending = k.vxlanSend(w, leg, true)
	}
	f.mu.Lock()
	changed := w.vx.bits()
	w.vx.remote, w.vx.leg, w.vx.sending = now.remote, now.leg, now.sending
	if changed != w.vx.bits() || w.vx.failed {
		f.legChanged(w)
		poke(f.changes)
	}
	f.mu.Unlock()
	return true
}

// vxlanMake makes the device and joins what it receives to the leg.
func (k *kernelWorker) vxlanMake(w *wireEnd, remote netip.Addr, leg int) error {
	k.vxlanDelete(w) // of an earlier process: its remote may be another
	if err := k.vxlanGuard(Source{remote, uint32(w.id)}); err != nil {
		return err
	}
	dev := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: vxlanName(w), MTU: 65000 - vxlanOverhead - 40},
		VxlanId:   int(w.id), Group: remote.AsSlice(), Port: k.f.opt.VXLANPort,
		UDP6ZeroCSumTx: true, UDP6ZeroCSumRx: true,
	}
	// Without a lower device the MTU may be any: what does not fit the underlay
	// is fragmented by IP.
	if err := k.h.LinkAdd(dev); err != nil {
		return fmt.Errorf("making %s: %w", dev.Name, err)
	}
	link, err := k.h.LinkByName(dev.Name)
	if err != nil {
		return fmt.Errorf("finding %s: %w", dev.Name, err)
	}
	index := link.Attrs().Index
	writeSysctl("ipv6/conf/"+dev.Name+"/disable_ipv6", "1")
	if err := k.clsact(index); err != nil {
		return err
	}
	if err := k.redirect(index, leg); err != nil {
		return err
	}
	if err := k.h.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting %s up: %w", dev.Name, err)
	}
	return nil
}

// redirect sends all that comes in at one device out of another one. u32
// without a key matches everything, also where matchall is missing.
func (k *kernelWorker) redirect(from, to int) error {
	filter := &netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: from, Parent: netlink.HANDLE_MIN_INGRESS, Priority: redirectPriority, Protocol: unix.ETH_P_ALL},
		Sel:         &netlink.TcU32Sel{Flags: nl.TC_U32_TERMINAL},
		Actions:     []netlink.Action{netlink.NewMirredAction(to)},
	}
	if err := k.h.FilterAdd(filter); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("tc redirect: %w", err)
	}
	return nil
}

// unredirect takes it back.
func (k *kernelWorker) unredirect(from int) {
	filter := &netlink.U32{FilterAttrs: netlink.FilterAttrs{LinkIndex: from, Parent: netlink.HANDLE_MIN_INGRESS, Priority: redirectPriority, Protocol: unix.ETH_P_ALL}}
	if err := k.h.FilterDel(filter); err != nil && !gone(err) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		k.f.opt.Log.Debug("a tc redirect stays", "error", err)
	}
}

// vxlanSend moves what the device sends to vxlan or back. In between a frame may
// be lost, but none goes twice.
func (k *kernelWorker) vxlanSend(w *wireEnd, leg int, on bool) bool {
	sock := w.legs[0].sock
	if sock == nil {
		return false
	}
	if !on {
		k.unredirect(leg)
		sock.accept(true)
		return false
	}
	link, err := k.h.LinkByName(vxlanName(w))
	if err != nil {
		return false
	}
	k.unredirect(leg) // of an earlier process, to a device that is no more
	sock.accept(false)
	if err := k.redirect(leg, link.Attrs().Index); err != nil {
		k.f.opt.Log.Warn("frames stay on udp", "wire", w.id, "error", err)
		sock.accept(true)
		return false
	}
	return true
}

// vxlanRemove takes the device and the redirects away, if there are any.
func (k *kernelWorker) vxlanRemove(w *wireEnd) {
	k.f.mu.Lock()
	leg := w.vx.leg
	w.vx.remote, w.vx.sending = netip.Addr{}, false
	k.f.mu.Unlock()
	if leg != 0 {
		k.unredirect(leg)
	}
	k.vxlanDelete(w)
}

func (k *kernelWorker) vxlanDelete(w *wireEnd) {
	if link, err := k.h.LinkByName(vxlanName(w)); err == nil {
		if err := k.h.LinkDel(link); err != nil && !gone(err) {
			k.f.opt.Log.Warn("a vxlan device stays", "device", vxlanName(w), "error", err)
		}
	}
}
