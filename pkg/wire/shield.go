//go:build linux

package wire

import (
	"errors"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"golang.org/x/sys/unix"
)

// The kernel would process what a device sends, since it arrives on an interface of this
// namespace: it would answer ARP, or return an OSPF multicast to the router that sent it.
// Packet sockets receive frames before tc does. So a tc program on the leg's ingress drops
// everything and keeps it from the kernel's stack (many kernels lack gact's drop).

const shieldPriority = 49000

// shield keeps what arrives on a leg from the kernel's stack.
func (k *kernelWorker) shield(index int) error {
	if k.guard == 0 {
		fd, err := datapath.Drop.Load()
		if err != nil {
			return err
		}
		k.guard = fd
	}
	return datapath.OnIngress(k.h, index, shieldPriority, k.guard, "c9s-shield")
}

// unshield removes the filters.
func (k *kernelWorker) unshield(index int) {
	if err := k.h.QdiscDel(datapath.Clsact(index)); err != nil && !datapath.LinkGone(err) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		k.f.opt.Log.Debug("clsact stays on a leg", "error", err)
	}
}
