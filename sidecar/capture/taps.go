package capture

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/capture"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// look finds the interfaces of the request, and taps those that are new.
func (s *Session) look(ctx context.Context) {
	st, err := s.Status(ctx)
	if err == nil {
		s.last = st
	}
	by := map[capture.Interface]*api.Interface{}
	for i := range s.last.Interfaces {
		in := &s.last.Interfaces[i]
		by[capture.Interface{Node: in.Node, Name: in.Name}] = in
	}
	for i, want := range s.request.Interfaces {
		l, in := s.links[i], by[want]
		var failed error
		switch {
		case in == nil && err != nil:
			failed = err
		case in == nil:
			failed = errors.New("the Pod has no such interface yet")
		default:
			failed = s.tap(l, in)
		}
		l.state.Error = ""
		if failed != nil {
			l.close()
			l.key, l.state.Error = "", failed.Error()
		}
	}
}

// tap taps an interface where its frames arrive: those that the device sends at the sidecar's
// leg, and those that it receives at the device's end. A packet socket sees what arrives
// whatever way it was sent.
func (s *Session) tap(l *tapped, in *api.Interface) error {
	if in.PeerNode != "" {
		l.state.Peer = in.PeerNode + ":" + in.PeerInterface
	}
	type place struct {
		space     *nspace.Namespace
		name      string
		direction capture.Direction
	}
	var places []place
	if in.Leg != "" {
		places = append(places, place{s.Own, in.Leg, capture.Out})
	}
	if in.Linux != "" && in.State == api.StateMade {
		places = append(places, place{s.Device, in.Linux, capture.In})
	}
	if in.Leg == "" { // two devices of the Pod: what one sends the other receives
		if peer := s.interfaceOf(in.PeerNode, in.PeerInterface); peer != nil && peer.Linux != "" && peer.State == api.StateMade {
			places = append(places, place{s.Device, peer.Linux, capture.Out})
		}
	}
	if len(places) == 0 {
		return fmt.Errorf("the interface is %s", in.State)
	}
	indexes, key := make([]int, len(places)), ""
	for i, p := range places {
		index, err := indexOf(p.space, p.name)
		if err != nil {
			return err
		}
		indexes[i] = index
		key += fmt.Sprintf("%s %d ", p.name, index)
	}
	if key == l.key {
		return nil
	}
	l.close()
	l.key = key
	for i, p := range places {
		var tap *datapath.Tap
		err := p.space.Do(func() (err error) {
			tap, err = datapath.OpenTap(indexes[i], s.filter, max(leastRoom, room/len(s.request.Interfaces)))
			return err
		})
		if err != nil {
			return err
		}
		l.taps = append(l.taps, way{tap, p.direction})
	}
	return nil
}

func (s *Session) interfaceOf(node, name string) *api.Interface {
	for i := range s.last.Interfaces {
		if in := &s.last.Interfaces[i]; node != "" && in.Node == node && in.Name == name {
			return in
		}
	}
	return nil
}

// indexOf returns the number of an interface.
func indexOf(space *nspace.Namespace, name string) (int, error) {
	h, err := netlink.NewHandleAt(netns.NsHandle(space.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer h.Close()
	l, err := h.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("interface %s: %w", name, err)
	}
	return l.Attrs().Index, nil
}
