package link

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// ensureHost ensures a veth between the device and the worker. The kernel deletes the
// worker's end with the Pod's namespace.
func (r *round) ensureHost(i *contract.Interface) error {
	k, name := KeyOf(i), LinuxName(i.Node, i.Name)
	mark := aliasPrefix + r.opts.Owner + ":" + i.Node + ":" + i.Name
	mark = mark[:min(len(mark), maxAlias)]
	w, err := r.worker()
	if err != nil {
		return err
	}
	dev := r.dev.device(k, name)
	farName := LinuxName("host", i.Host.Interface)
	far, _ := w.nl.LinkByName(farName)
	switch {
	case far != nil && far.Attrs().Alias != mark && !(dev != nil && dev.Attrs().ParentIndex == far.Attrs().Index && far.Attrs().Alias == ""):
		return fmt.Errorf("the worker has an interface %s already that is not this Pod's", i.Host.Interface)
	case far == nil && dev != nil:
		// The worker's end was renamed: the wire still works. Otherwise the
		// device's end is not ours.
		if dev.Type() == "veth" && dev.Attrs().NetNsID >= 0 {
			return r.finish(i, dev, nil)
		}
		return r.clear(r.dev, k, name)
	case far == nil:
		if r.elsewhere(k) {
			return nil
		}
		if dev, err = r.makeHost(i, name, w); err != nil {
			return err
		}
		if far, err = w.nl.LinkByName(farName); err != nil {
			return fmt.Errorf("interface %s of the worker: %w", i.Host.Interface, err)
		}
	}
	if far.Attrs().Alias != mark {
		if err := w.nl.LinkSetAlias(far, mark); err != nil {
			return fmt.Errorf("mark interface %s of the worker: %w", i.Host.Interface, err)
		}
	}
	if err := altNameOfHost(w, far, i.Host.Interface); err != nil {
		return err
	}
	old, known := r.memory.get(k)
	if i.MTU != 0 && far.Attrs().MTU != i.MTU && (!known || old.Spec.MTU != i.MTU) {
		if err := w.nl.LinkSetMTU(far, i.MTU); err != nil {
			return fmt.Errorf("MTU %d of %s on the worker: %w", i.MTU, i.Host.Interface, err)
		}
	}
	if !known {
		if err := w.nl.LinkSetUp(far); err != nil {
			return fmt.Errorf("set %s on the worker up: %w", i.Host.Interface, err)
		}
	}
	return r.finish(i, dev, nil)
}

// altNameOfHost gives the worker's end a name that Linux accepts only as an altname.
func altNameOfHost(w *hostNS, far netlink.Link, name string) error {
	if Legal(name) || slices.Contains(far.Attrs().AltNames, AltName(name)) {
		return nil
	}
	if err := w.nl.LinkAddAltName(far, AltName(name)); err != nil {
		return fmt.Errorf("alternative name %s on the worker: %w", name, err)
	}
	return nil
}

func (r *round) makeHost(i *contract.Interface, name string, w *hostNS) (netlink.Link, error) {
	if err := r.clear(r.dev, KeyOf(i), name); err != nil {
		return nil, err
	}
	r.memory.forget(KeyOf(i).String())
	veth, err := vethOf(i, name, LinuxName("host", i.Host.Interface))
	if err != nil {
		return nil, err
	}
	veth.PeerNamespace = netlink.NsFd(w.ns)
	dev, err := r.dev.create(veth)
	if err != nil {
		return nil, fmt.Errorf("make %s with %s on the worker: %w", name, i.Host.Interface, err)
	}
	return dev, nil
}
