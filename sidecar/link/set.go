package link

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Options say where the interfaces are made.
type Options struct {
	// StateFile remembers what was applied, over restarts of the sidecar.
	StateFile string
	// HostNetNS is the path of the worker's network namespace; opened only for
	// links that need it.
	HostNetNS string
	// Owner tells this Pod's interfaces on the worker from others': namespace and
	// name of the Pod.
	Owner string
	// Underlay is the name of the Pod's cluster interface, and Source the
	// addresses that tunnels to outside the lab come from.
	Underlay string
	Source   []netip.Addr
	// Resolve finds the address of a tunnel's far end.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
}

// State is what has become of one interface.
type State struct {
	Key  Key
	Kind string
	// Name, Index, Carrier and Up are the device's end, as long as it is in the
	// Pod's own namespace; Elsewhere tells that the device moved it.
	Name      string
	Index     int
	Carrier   bool
	Up        bool
	Elsewhere bool
	MAC       string
	MTU       int
	// Leg is the sidecar's end and LegIndex its ifindex, where there is one.
	Leg      string
	LegIndex int
	// Err is what went wrong last, nil for nothing.
	Err error
}

// Set keeps the data interfaces of a Pod.
type Set struct {
	opts   Options
	nl     *netlink.Handle
	memory *memory
	remote map[string]remoteAddr
}

// NewSet works in the handle's network namespace, which must be the caller's.
func NewSet(nl *netlink.Handle, opts Options) *Set {
	return &Set{opts: opts, nl: nl, memory: loadMemory(opts.StateFile), remote: map[string]remoteAddr{}}
}

// Apply makes the kernel agree with the document and tells the state of every
// interface in its order. It goes on after a failure, which is in the state.
func (s *Set) Apply(ctx context.Context, want []contract.Interface, bridges []contract.Bridge) ([]State, error) {
	snap, err := Read(s.nl)
	if err != nil {
		return nil, err
	}
	r := &round{Set: s, ctx: ctx, snap: snap, masks: map[string]uint16{}, errs: map[Key]error{}, want: map[string]*contract.Interface{}}
	defer r.close()
	for i := range want {
		r.want[KeyOf(&want[i]).String()] = &want[i]
	}
	for _, b := range bridges {
		r.masks[b.Name] = b.GroupForwardMask
	}
	r.removeUnwanted()
	r.bridges(bridges)
	for i := range want {
		if err := r.ensure(&want[i]); err != nil {
			r.fail(KeyOf(&want[i]), err)
		}
	}
	err = s.memory.save()
	states, readErr := r.states(want)
	return states, errors.Join(err, readErr)
}

// round is one pass over the document.
type round struct {
	*Set
	ctx   context.Context
	snap  *Snapshot
	want  map[string]*contract.Interface
	masks map[string]uint16
	errs  map[Key]error
	// host is the worker's namespace, opened on demand.
	host *hostNS
	// touched tells that something was changed, so that the snapshot is old.
	touched bool
}

func (r *round) close() {
	if r.host != nil {
		r.host.close()
	}
}

func (r *round) fail(k Key, err error) { r.errs[k] = errors.Join(r.errs[k], err) }

func (r *round) ensure(i *contract.Interface) error {
	switch {
	case i.Wire != nil:
		return r.ensureLegged(i, LegName(i.Wire.ID, ""), legDown)
	case i.Local != nil && Impaired(i, r.want):
		return r.ensureLegged(i, LegName(i.Local.ID, localSuffix(i)), legDown)
	case i.Local != nil:
		return r.ensureLocal(i)
	case i.Host != nil:
		return r.ensureHost(i)
	case i.Macvlan != nil:
		return r.ensureMacvlan(i)
	case i.VXLAN != nil && i.Stitch:
		return r.ensureStitch(i)
	case i.VXLAN != nil:
		return r.ensureVXLAN(i, KeyOf(i), LinuxName(i.Node, i.Name))
	case i.MgmtNet != nil:
		return r.ensureLegged(i, MgmtLeg(i), legUp)
	case i.Dummy:
		return r.ensureDummy(i)
	}
	return fmt.Errorf("interface %s of node %s leads nowhere: links.json is of a newer version", i.Name, i.Node)
}

// kindOf is the word for what is at the other end.
func kindOf(i *contract.Interface) string {
	switch {
	case i.Wire != nil:
		return "wire"
	case i.Local != nil:
		return "local"
	case i.Host != nil:
		return "host"
	case i.Macvlan != nil:
		return "macvlan"
	case i.VXLAN != nil && i.Stitch:
		return "vxlan-stitch"
	case i.VXLAN != nil:
		return "vxlan"
	case i.MgmtNet != nil:
		return "mgmt-net"
	case i.Dummy:
		return "dummy"
	}
	return ""
}

// removeUnwanted takes away what links.json no longer has. A leg takes the
// device's end with it, wherever that is.
func (r *round) removeUnwanted() {
	wantAlt := map[string]*contract.Interface{}
	for _, i := range r.want {
		wantAlt[ownerAlt(KeyOf(i))] = i
	}
	for _, l := range slices.Clone(r.snap.links) {
		a := l.Attrs()
		if r.snap.byIndex[a.Index] == nil {
			continue
		}
		if strings.HasPrefix(a.Name, Prefix) {
			if strings.HasPrefix(a.Alias, aliasPrefix) && !r.wantsLeg(a.Alias, a.Name) {
				r.delete(l)
			}
			continue
		}
		for _, alt := range a.AltNames {
			if strings.HasPrefix(alt, ownerAltPrefix) && wantAlt[alt] == nil {
				r.delete(l)
				break
			}
		}
	}
	for key, a := range r.memory.items {
		if r.want[key] != nil {
			continue
		}
		r.removeElsewhere(&a.Spec)
		r.memory.forget(key)
	}
}

// wantsLeg tells whether the helper still has a use: its interface is wanted and
// of a kind that has such a helper.
func (r *round) wantsLeg(alias, name string) bool {
	i := r.want[strings.TrimSuffix(alias, tunnelMark)]
	if i == nil {
		return false
	}
	if strings.HasSuffix(alias, tunnelMark) {
		return i.VXLAN != nil && i.Stitch
	}
	switch {
	case i.Local != nil:
		return Impaired(i, r.want)
	case i.Wire != nil, i.MgmtNet != nil, i.Dummy:
		return true
	}
	return i.VXLAN != nil && i.Stitch
}

// delete removes an interface and, for a veth, what goes with it.
func (r *round) delete(l netlink.Link) {
	r.touched = true
	if err := r.nl.LinkDel(l); err != nil && !gone(err) {
		r.fail(Key{Name: l.Attrs().Name}, fmt.Errorf("remove %s: %w", l.Attrs().Name, err))
		return
	}
	if l.Type() == "veth" {
		if peer := r.snap.Peer(l); peer != nil {
			r.snap.remove(peer)
		}
	}
	r.snap.remove(l)
}

// gone tells that what was to be removed or read is no longer there.
func gone(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.As(err, &notFound) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT)
}

// create makes an interface, reads it back and takes it, and a veth's other end,
// into the snapshot. One that came into being meanwhile is taken as it is.
func (r *round) create(l netlink.Link) (netlink.Link, error) {
	if err := r.nl.LinkAdd(l); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return r.read(l.Attrs().Name)
}

// read takes an interface, and a veth's other end, into the snapshot.
func (r *round) read(name string) (netlink.Link, error) {
	r.touched = true
	got, err := r.nl.LinkByName(name)
	if err != nil {
		return nil, err
	}
	r.snap.add(got)
	if a := got.Attrs(); got.Type() == "veth" && a.NetNsID < 0 && a.ParentIndex != 0 {
		peer, err := r.nl.LinkByIndex(a.ParentIndex)
		if err != nil {
			return nil, err
		}
		r.snap.add(peer)
	}
	return got, nil
}

func (r *round) up(l netlink.Link) error {
	if l.Attrs().RawFlags&unix.IFF_UP != 0 {
		return nil
	}
	r.touched = true
	if err := r.nl.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", l.Attrs().Name, err)
	}
	l.Attrs().RawFlags |= unix.IFF_UP
	return nil
}
