//go:build linux

package wire

import (
	"fmt"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// kernelRetry is the pause before a failed change is tried again.
const kernelRetry = 500 * time.Millisecond

// kernelLoop brings the kernel's objects to their desired state: sockets on legs, the
// state of the legs, the objects of datapaths. Nothing else changes them.
func (f *Fabric) kernelLoop() error {
	if err := f.ns.enter(); err != nil {
		return err
	}
	handle, err := netlink.NewHandleAt(netns.NsHandle(f.ns.fd), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("netlink: %w", err)
	}
	defer handle.Close()
	var watching sync.WaitGroup // it has the handle too
	defer watching.Wait()
	watching.Go(func() { f.watch(handle, f.ns.fd, false) })
	k := &kernelWorker{f: f, h: handle}
	for _, d := range f.datapaths {
		if err := d.Open(handle); err != nil {
			f.opt.Log.Warn("a datapath cannot be used", "datapath", d.name, "error", err)
		}
	}
	if f.device.fd != 0 {
		devices, err := netlink.NewHandleAt(netns.NsHandle(f.device.fd), unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("netlink: %w", err)
		}
		defer devices.Close()
		defer watching.Wait()
		watching.Go(func() { f.watch(devices, f.device.fd, true) })
		k.devices = devices
	}
	defer k.close()
	var retry <-chan time.Time
	for {
		if k.reconcile() {
			retry = nil
		} else {
			retry = time.After(kernelRetry)
		}
		select {
		case <-f.ctx.Done():
			return nil
		case <-f.kernel:
		case <-retry:
		}
	}
}

// watch keeps linkLoop running.
func (f *Fabric) watch(handle *netlink.Handle, fd int, devices bool) {
	for f.ctx.Err() == nil {
		if err := f.linkLoop(handle, fd, devices); err != nil {
			f.opt.Log.Warn("the interfaces are not watched", "devices", devices, "error", err)
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// kernelWorker is the state of kernelLoop.
type kernelWorker struct {
	f       *Fabric
	h       *netlink.Handle
	devices *netlink.Handle // of the devices' namespace, nil for none
	guard   int             // BPF program that drops, 0 before it is loaded
}

// reconcile does one round, and reports whether everything succeeded.
func (k *kernelWorker) reconcile() bool {
	f := k.f
	f.mu.Lock()
	old := f.old
	f.old = nil
	var wires []*wireEnd
	for _, w := range f.wires {
		wires = append(wires, w)
	}
	f.mu.Unlock()
	ok := true
	for _, w := range old {
		k.remove(w)
	}
	for _, w := range wires {
		k.lines(w)
		for i, l := range w.legs {
			if l == nil {
				continue
			}
			err := k.leg(w, i)
			ok = ok && err == nil
			f.legResult(w, l, err)
		}
		if !w.local() && !k.paths(w) {
			ok = false
		}
	}
	for _, d := range f.datapaths {
		if err := d.Finish(); err != nil {
			f.opt.Log.Warn("a datapath is not up to date", "datapath", d.name, "error", err)
			ok = false
		}
	}
	return ok
}

// legResult records in the status why a leg does not work.
func (f *Fabric) legResult(w *wireEnd, l *leg, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	why := ""
	if err != nil {
		why = err.Error()
		if l.failed != why {
			f.opt.Log.Warn("a leg does not work", "wire", w.ID, "leg", l.name, "error", err)
		}
	}
	if l.failed != why {
		l.failed = why
		f.decide(w)
	}
}

// leg brings the socket on a leg, and the leg's state, to their desired state.
func (k *kernelWorker) leg(w *wireEnd, i int) error {
	f := k.f
	f.mu.Lock()
	l := w.legs[i]
	index, sockIndex := l.index, l.sockIndex
	f.mu.Unlock()
	if index == 0 {
		link, err := f.lookAt(func() (netlink.Link, error) { return k.h.LinkByName(l.name) })
		if err == nil {
			index = link.Attrs().Index
		}
	}
	if sockIndex != 0 && sockIndex != index {
		k.detach(w, i)
	}
	if index == 0 {
		return nil // linkLoop reports it when it appears
	}
	if l.sock == nil {
		if err := k.attach(w, i, index); err != nil {
			if datapath.LinkGone(err) {
				f.linkGone(index, false)
				return nil
			}
			return err
		}
	}
	k.lookAtDevice(l)
	f.mu.Lock()
	up, change := l.up, !l.keep && l.up != l.admin && l.index == index
	plain := w.want.Plain
	f.mu.Unlock()
	if out := w.outs(i).Load(); out != nil && out.Plain != plain {
		w.outs(i).Store(&datapath.Out{Sock: l.sock, Plain: plain, Drops: &w.Drops})
	}
	if !change {
		return nil
	}
	link := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
	set := k.h.LinkSetDown
	if up {
		set = k.h.LinkSetUp
	}
	if err := set(link); err != nil {
		if datapath.LinkGone(err) {
			f.linkGone(index, false)
			return nil
		}
		return fmt.Errorf("setting leg %s up or down: %w", l.name, err)
	}
	// linkLoop reports it too, but the next decision should not wait for that.
	_, _ = f.lookAt(func() (netlink.Link, error) { return k.h.LinkByIndex(index) })
	return nil
}

// lookAtDevice reads the device's side of a leg once: its state may date from before it
// was known to belong to the leg.
func (k *kernelWorker) lookAtDevice(l *leg) {
	f := k.f
	f.mu.Lock()
	index, ask := l.peerIndex, l.away && !l.looked && !l.observed
	l.looked = true
	f.mu.Unlock()
	if !ask || index == 0 || k.devices == nil {
		return
	}
	link, err := k.devices.LinkByIndex(index)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !l.observed {
		f.takeDevice(link.Attrs())
	}
}

// attach starts to read a leg.
func (k *kernelWorker) attach(w *wireEnd, i, index int) error {
	f, l := k.f, w.legs[i]
	if _, err := f.lookAt(func() (netlink.Link, error) { return k.h.LinkByIndex(index) }); err != nil {
		return err
	}
	if err := k.shield(index); err != nil {
		return err
	}
	sock, err := datapath.Open(index, !f.opt.noOffload)
	if err != nil {
		return err
	}
	r := &datapath.Reader{Poll: f.poll, Pool: f.batches, Sock: sock, Drops: &w.Drops, Pass: f.entry(w, i)}
	f.mu.Lock()
	l.sock, l.sockIndex, l.reader = sock, index, r
	plain := w.want.Plain
	f.mu.Unlock()
	w.outs(i).Store(&datapath.Out{Sock: sock, Plain: plain, Drops: &w.Drops})
	if err := r.Start(); err != nil {
		return err
	}
	f.mu.Lock()
	f.decide(w)
	f.mu.Unlock()
	return nil
}

// detach stops reading a leg. The leg's state stays.
func (k *kernelWorker) detach(w *wireEnd, i int) {
	f, l := k.f, w.legs[i]
	if l == nil || l.sock == nil {
		return
	}
	w.outs(i).Store(nil)
	l.reader.End()
	// The delay lines' goroutines and the other leg's reader write to this leg.
	f.rxMu.Lock()
	f.mu.Lock()
	sock := l.sock
	l.sock, l.sockIndex, l.reader = nil, 0, nil
	f.mu.Unlock()
	sock.Close()
	f.rxMu.Unlock()
}

// remove deletes what was created for a wire.
func (k *kernelWorker) remove(w *wireEnd) {
	w.udp.Route(nil)
	for i := range w.line {
		if d := w.line[i].Swap(nil); d != nil {
			d.End()
		}
	}
	for i, l := range w.legs {
		if l == nil {
			continue
		}
		k.detach(w, i)
		if l.index != 0 && !k.f.usesLeg(l.index) {
			k.unshield(l.index)
		}
	}
	k.removePaths(w)
}

// usesLeg reports whether a remaining wire has the leg.
func (f *Fabric) usesLeg(index int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.wires {
		for _, l := range w.legs {
			if l != nil && l.index == index {
				return true
			}
		}
	}
	return false
}

// close stops the readers. The kernel's objects stay for the next process.
func (k *kernelWorker) close() {
	f := k.f
	f.mu.Lock()
	var all []*wireEnd
	for _, w := range f.wires {
		all = append(all, w)
	}
	all = append(all, f.old...)
	f.mu.Unlock()
	for _, w := range all {
		for i := range w.line {
			if d := w.line[i].Swap(nil); d != nil {
				d.End()
			}
		}
		for i := range w.legs {
			k.detach(w, i)
		}
	}
	if k.guard != 0 {
		unix.Close(k.guard)
	}
}
