package link

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
)

// Snapshot holds the interfaces of a namespace from one dump.
type Snapshot struct {
	links   []netlink.Link
	byIndex map[int]netlink.Link
	byName  map[string]netlink.Link
	// byAlt has all alternative names.
	byAlt map[string]netlink.Link
	// legs are helpers by the key in their ifalias.
	legs map[string]netlink.Link
}

// Read dumps the interfaces of the handle's namespace.
func Read(h *netlink.Handle) (*Snapshot, error) {
	list, err := h.LinkList()
	// A dump that a change interrupted is good enough: each change causes a
	// notification, and the next round reads again.
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	s := &Snapshot{
		byIndex: make(map[int]netlink.Link, len(list)),
		byName:  make(map[string]netlink.Link, len(list)),
		byAlt:   map[string]netlink.Link{},
		legs:    map[string]netlink.Link{},
	}
	for _, l := range list {
		s.add(l)
	}
	return s, nil
}

func (s *Snapshot) add(l netlink.Link) {
	a := l.Attrs()
	s.links = append(s.links, l)
	s.byIndex[a.Index] = l
	s.byName[a.Name] = l
	for _, alt := range a.AltNames {
		s.byAlt[alt] = l
	}
	if strings.HasPrefix(a.Name, Prefix) && strings.HasPrefix(a.Alias, aliasPrefix) {
		s.legs[a.Alias] = l
	}
}

func (s *Snapshot) remove(l netlink.Link) {
	a := l.Attrs()
	delete(s.byIndex, a.Index)
	delete(s.byName, a.Name)
	for _, alt := range a.AltNames {
		delete(s.byAlt, alt)
	}
	if s.legs[a.Alias] == l {
		delete(s.legs, a.Alias)
	}
}

// ByName is the interface with that name, or nil.
func (s *Snapshot) ByName(name string) netlink.Link { return s.byName[name] }

// Peer returns the other end of a veth, or nil if it is in another namespace.
func (s *Snapshot) Peer(l netlink.Link) netlink.Link {
	a := l.Attrs()
	if a.NetNsID >= 0 || a.ParentIndex == 0 {
		return nil
	}
	peer := s.byIndex[a.ParentIndex]
	if peer == nil || peer.Attrs().ParentIndex != a.Index {
		return nil
	}
	return peer
}

// device returns an interface of a device that has no leg: by its mark, or by its name if a
// kill prevented the mark.
func (s *Snapshot) device(k Key, name string) netlink.Link {
	if l := s.byAlt[ownerAlt(k)]; l != nil {
		return l
	}
	l := s.byName[name]
	if l == nil {
		return nil
	}
	for _, alt := range l.Attrs().AltNames {
		if strings.HasPrefix(alt, ownerAltPrefix) {
			return nil
		}
	}
	return l
}
