package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// hostNS is the worker's network namespace.
type hostNS struct {
	ns netns.NsHandle
	nl *netlink.Handle
}

// worker opens the worker's namespace for this round.
func (r *round) worker() (*hostNS, error) {
	if r.host != nil {
		return r.host, nil
	}
	ns, err := netns.GetFromPath(r.opts.HostNetNS)
	if err != nil {
		return nil, fmt.Errorf("open the worker's network namespace %s: %w", r.opts.HostNetNS, err)
	}
	nl, err := netlink.NewHandleAt(ns)
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("netlink in the worker's network namespace: %w", err)
	}
	r.host = &hostNS{ns: ns, nl: nl}
	return r.host, nil
}

func (h *hostNS) close() {
	h.nl.Close()
	h.ns.Close()
}
