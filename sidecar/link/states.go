package link

import (
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// MgmtLeg returns the name of the leg of an interface on the management network.
func MgmtLeg(i *contract.Interface) string { return helper('g', KeyOf(i)) }

// states reads the state of the interfaces.
func (r *round) states(want []contract.Interface) ([]State, error) {
	for _, p := range []*place{r.own, r.dev} {
		if !p.touched {
			continue
		}
		snap, err := Read(p.nl)
		if err != nil {
			return nil, err
		}
		p.Snapshot = snap
	}
	states := make([]State, len(want))
	for n := range want {
		states[n] = r.state(&want[n])
	}
	return states, nil
}

func (r *round) state(i *contract.Interface) State {
	k := KeyOf(i)
	s := State{Key: k, Kind: kindOf(i), MTU: i.MTU, MAC: i.MAC, Err: r.errs[k]}
	var dev netlink.Link
	if leg := r.own.legs[k.String()]; leg != nil {
		s.Leg, s.LegIndex = leg.Attrs().Name, leg.Attrs().Index
		dev = r.device(leg)
	} else {
		dev = r.home(i).device(k, LinuxName(i.Node, i.Name))
	}
	if dev == nil {
		s.Elsewhere = s.Err == nil
		return s
	}
	a := dev.Attrs()
	s.Name, s.Index, s.MTU, s.MAC = a.Name, a.Index, a.MTU, a.HardwareAddr.String()
	s.Up = a.Flags&net.FlagUp != 0
	s.Carrier = a.RawFlags&unix.IFF_LOWER_UP != 0
	return s
}
