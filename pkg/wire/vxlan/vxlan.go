//go:build linux

package vxlan

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const (
	// overhead is Ethernet, VXLAN (RFC 7348) and UDP headers, without IP.
	overhead = 14 + 8 + 8
	vlanRoom = 8 // two tags

	redirectPriority = 100
)

// Datapath is the VXLAN devices of a Pod.
type Datapath struct {
	port  int
	log   *slog.Logger
	h     *netlink.Handle
	guard Guard
	// sources are those of the devices that exist.
	sources map[contract.WireID]Source
}

// New returns a datapath that uses UDP port port.
func New(port int, log *slog.Logger) *Datapath {
	return &Datapath{port: port, log: log, guard: Guard{Table: tableName, Port: port}, sources: map[contract.WireID]Source{}}
}

// device is the name of a wire's device; ids have at most 8 digits.
func device(id contract.WireID) string { return fmt.Sprintf("c9sv%d", id) }

// Open closes the VXLAN's port to strangers.
func (v *Datapath) Open(h *netlink.Handle) error {
	v.h = h
	return v.guard.Close()
}

// Wanted implements datapath.Datapath.
func (v *Datapath) Wanted(c datapath.Conditions) string {
	switch {
	case c.Impaired:
		return "impaired"
	case c.Encrypted:
		return "encrypted"
	case c.Plain:
		return "checksums are finished here"
	case !c.Chosen && c.MTU+vlanRoom+overhead+c.IPHeader > c.PathMTU:
		return "frames of the link's MTU do not fit the underlay"
	}
	return ""
}

// Ensure makes the device and joins what it receives to the leg.
func (v *Datapath) Ensure(l datapath.Leg, remote netip.Addr) error {
	v.delete(l.Wire) // of an earlier process: it may have another remote
	v.sources[l.Wire] = Source{remote, uint32(l.Wire)}
	if err := v.guardSources(); err != nil {
		return err
	}
	dev := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: device(l.Wire), MTU: 65000 - overhead - 40},
		VxlanId:   int(l.Wire), Group: remote.AsSlice(), Port: v.port,
		UDP6ZeroCSumTx: true, UDP6ZeroCSumRx: true,
	}
	// Without a lower device any MTU is allowed: IP fragments what does not fit the
	// underlay.
	link, err := datapath.AddDevice(v.h, dev)
	if err != nil {
		return err
	}
	index := link.Attrs().Index
	if err := datapath.AddClsact(v.h, index); err != nil {
		return err
	}
	if err := v.redirect(index, l.Index); err != nil {
		return err
	}
	return datapath.SetUp(v.h, link)
}

// Send switches the tc redirect of the leg.
func (v *Datapath) Send(l datapath.Leg, on bool) bool {
	if l.Sock == nil {
		return false
	}
	if !on {
		v.unredirect(l.Index)
		l.Sock.Accept(true)
		return false
	}
	link, err := v.h.LinkByName(device(l.Wire))
	if err != nil {
		return false
	}
	v.unredirect(l.Index) // of an earlier process, to a device that no longer exists
	l.Sock.Accept(false)
	if err := v.redirect(l.Index, link.Attrs().Index); err != nil {
		v.log.Warn("frames stay on udp", "wire", l.Wire, "error", err)
		l.Sock.Accept(true)
		return false
	}
	return true
}

// Remove deletes the device and the redirects.
func (v *Datapath) Remove(l datapath.Leg) {
	delete(v.sources, l.Wire)
	if l.Index != 0 {
		v.unredirect(l.Index)
	}
	v.delete(l.Wire)
}

// Finish removes sources without a device from the guard. What an earlier process admitted
// stays until this one has written the guard itself.
func (v *Datapath) Finish() error {
	if v.guard.now == nil {
		return nil
	}
	return v.guardSources()
}

// redirect sends everything that arrives on one device out of another one. u32
// without a key matches everything, also where matchall is missing.
func (v *Datapath) redirect(from, to int) error {
	filter := &netlink.U32{
		FilterAttrs: redirectAt(from),
		Sel:         &netlink.TcU32Sel{Flags: nl.TC_U32_TERMINAL},
		Actions:     []netlink.Action{netlink.NewMirredAction(to)},
	}
	if err := v.h.FilterAdd(filter); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("tc redirect: %w", err)
	}
	return nil
}

// unredirect removes the redirect.
func (v *Datapath) unredirect(from int) {
	if err := v.h.FilterDel(&netlink.U32{FilterAttrs: redirectAt(from)}); err != nil && !datapath.LinkGone(err) && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		v.log.Debug("a tc redirect stays", "error", err)
	}
}

func redirectAt(index int) netlink.FilterAttrs {
	return netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: redirectPriority, Protocol: unix.ETH_P_ALL}
}

func (v *Datapath) delete(id contract.WireID) {
	if err := datapath.DeleteDevice(v.h, device(id)); err != nil {
		v.log.Warn("a vxlan device stays", "device", device(id), "error", err)
	}
}

// guardSources admits the sources of the existing devices.
func (v *Datapath) guardSources() error {
	want := map[Source]bool{}
	for s := range maps.Values(v.sources) {
		want[s] = true
	}
	return v.guard.Allow(want)
}
