package podnet

import (
	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/sidecar/api"
)

// count adds the kernel's counters to interfaces. They are read from the sidecar's leg, which
// stays when the device moves its end to another namespace, or else from the device's end.
func (s *sidecar) count(interfaces []api.Interface) {
	if len(interfaces) == 0 || s.nl == nil || s.device == nil {
		return
	}
	legs, devices := statistics(s.nl), statistics(s.device)
	for i := range interfaces {
		in := &interfaces[i]
		if leg := legs[in.Leg]; in.Leg != "" && leg != nil { // what the device sends, the leg receives
			in.Counters = &api.Counters{RxFrames: leg.TxPackets, RxBytes: leg.TxBytes, TxFrames: leg.RxPackets, TxBytes: leg.RxBytes}
		} else if d := devices[in.Linux]; in.Linux != "" && d != nil {
			in.Counters = &api.Counters{RxFrames: d.RxPackets, RxBytes: d.RxBytes, TxFrames: d.TxPackets, TxBytes: d.TxBytes}
		}
	}
}

// statistics reads the counters of the links of a namespace, by their names. Without an answer
// there are none.
func statistics(nl *netlink.Handle) map[string]*netlink.LinkStatistics {
	links, err := nl.LinkList()
	if err != nil {
		return nil
	}
	out := make(map[string]*netlink.LinkStatistics, len(links))
	for _, l := range links {
		out[l.Attrs().Name] = l.Attrs().Statistics
	}
	return out
}
