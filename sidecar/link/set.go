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
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// Options are the settings of a Set.
type Options struct {
	// StateFile keeps what was applied across restarts of the sidecar.
	StateFile string
	// HostNetNS is the path of the worker's network namespace. It is opened only for
	// links that need it.
	HostNetNS string
	// Owner identifies this Pod's interfaces on the worker: namespace and name of the
	// Pod.
	Owner string
	// Device is the Pod's namespace, which is the device's.
	Device *nspace.Namespace
	// Underlay is the name of the Pod's cluster interface, and Source the
	// addresses that tunnels to outside the lab come from.
	Underlay string
	Source   []netip.Addr
	// Resolve finds the address of a tunnel's far end.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
}

// State is the observed state of one interface.
type State struct {
	Key  Key
	Kind string
	// Name, Index, Carrier and Up are those of the device's end while it is in the
	// Pod's namespace. Elsewhere is set if the device moved it.
	Name      string
	Index     int
	Carrier   bool
	Up        bool
	Elsewhere bool
	MAC       string
	MTU       int
	// Leg is the sidecar's end and LegIndex its ifindex, if there is one.
	Leg      string
	LegIndex int
	// Err is the last error, or nil.
	Err error
}

// Set keeps the data interfaces of a Pod.
type Set struct {
	opts   Options
	own    nets
	dev    nets
	memory *memory
	// masks are the group forward masks that the ports of each bridge have.
	masks  map[string]uint16
	remote map[string]remoteAddr
}

// nets is a network namespace with the means to change it.
type nets struct {
	nl *netlink.Handle
	do func(func() error) error
	fd int
}

// NewSet returns a Set between own, the network namespace of the caller and of the handle,
// and the device's.
func NewSet(nl *netlink.Handle, own *nspace.Namespace, device *netlink.Handle, opts Options) *Set {
	here := func(f func() error) error { return f() }
	return &Set{
		opts: opts, own: nets{nl, here, own.FD()}, dev: nets{device, opts.Device.Do, opts.Device.FD()},
		memory: loadMemory(opts.StateFile), masks: map[string]uint16{}, remote: map[string]remoteAddr{},
	}
}

// look reads the interfaces of a namespace. other is the namespace that its veths lead to.
func (n nets) look(other nets) (*place, error) {
	id, err := PeerID(n.nl, other.fd)
	if err != nil {
		return nil, err
	}
	snap, err := Read(n.nl)
	if err != nil {
		return nil, err
	}
	return &place{Snapshot: snap, nl: n.nl, do: n.do, fd: n.fd, peer: id}, nil
}

// PeerID returns the id of another namespace in a handle's namespace, and assigns one if
// there is none.
func PeerID(nl *netlink.Handle, fd int) (int, error) {
	const auto = -1
	if err := nl.SetNetNsIdByFd(fd, auto); err != nil && !errors.Is(err, unix.EEXIST) {
		return 0, fmt.Errorf("number a network namespace: %w", err)
	}
	id, err := nl.GetNetNsIdByFd(fd)
	if err != nil {
		return 0, fmt.Errorf("number of a network namespace: %w", err)
	}
	return id, nil
}

// Apply brings the kernel to the state that the document describes. It returns the state of
// each interface in the same order, and continues after a failure, which the state holds.
func (s *Set) Apply(ctx context.Context, want []contract.Interface, bridges []contract.Bridge) ([]State, error) {
	own, err := s.own.look(s.dev)
	if err != nil {
		return nil, err
	}
	dev, err := s.dev.look(s.own)
	if err != nil {
		return nil, err
	}
	r := &round{Set: s, ctx: ctx, own: own, dev: dev, wantMasks: map[string]uint16{}, errs: map[Key]error{}, want: map[string]*contract.Interface{}}
	defer r.close()
	for i := range want {
		r.want[KeyOf(&want[i]).String()] = &want[i]
	}
	for _, b := range bridges {
		r.wantMasks[b.Name] = b.GroupForwardMask
	}
	r.removeUnwanted()
	r.bridges(bridges)
	for i := range want {
		if err := r.ensure(&want[i]); err != nil {
			r.fail(KeyOf(&want[i]), err)
		}
	}
	err = errors.Join(s.memory.save(), r.dropDeadRedirects())
	states, readErr := r.states(want)
	return states, errors.Join(err, readErr)
}

// round is one pass over the document.
type round struct {
	*Set
	ctx context.Context
	// own and dev are the sidecar's namespace and the device's.
	own, dev *place
	want     map[string]*contract.Interface
	errs     map[Key]error
	// wantMasks are the group forward masks by bridge.
	wantMasks map[string]uint16
	// host is the worker's namespace, opened on demand.
	host *hostNS
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

// kindOf returns the word for the other end of an interface.
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

// removeUnwanted deletes what is no longer in links.json. Deleting a leg deletes the
// device's end too, wherever it is.
func (r *round) removeUnwanted() {
	wantAlt := map[string]*contract.Interface{}
	for _, i := range r.want {
		wantAlt[ownerAlt(KeyOf(i))] = i
	}
	for _, p := range []*place{r.own, r.dev} {
		for _, l := range slices.Clone(p.links) {
			a := l.Attrs()
			if p.byIndex[a.Index] != l {
				continue // deleted with another one
			}
			if p == r.own && strings.HasPrefix(a.Name, Prefix) {
				if strings.HasPrefix(a.Alias, aliasPrefix) && !r.wantsLeg(a.Alias) {
					r.delete(p, l)
				}
				continue
			}
			for _, alt := range a.AltNames {
				if i := wantAlt[alt]; strings.HasPrefix(alt, ownerAltPrefix) && (i == nil || r.home(i) != p) {
					r.delete(p, l)
					break
				}
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

// wantsLeg reports whether a helper is still needed: its interface is desired and of a kind
// that has such a helper.
func (r *round) wantsLeg(alias string) bool {
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
