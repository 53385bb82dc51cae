package mgmt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// fdbAge is how long a forwarding entry outlives its last use.
const fdbAge = 5 * time.Minute

// askPatience is for one search of a peer; askAgain is the time between two of
// the same peer.
const (
	askPatience = 4 * time.Second
	askAgain    = 400 * time.Millisecond
)

// Resolver finds Pods.
type Resolver interface {
	Lookup(ctx context.Context, pod string) ([]netip.Addr, error)
	Forget(pod string)
}

// Peers gives the mesh its entries: one neighbour and one forwarding entry for
// each peer that is talked to, when it is. The kernel's own question for a
// neighbour, which would be broadcast and so goes nowhere, is what asks for one.
type Peers struct {
	nl       *netlink.Handle
	pod      string
	v4       bool
	resolver Resolver
	log      *slog.Logger

	mu     sync.Mutex
	mesh   int
	pods   map[netip.Addr]string
	macs   map[string]string
	active map[string]*peer
	asked  map[string]time.Time
	stop   func()
}

// peer is one that was talked to.
type peer struct {
	remote netip.Addr
	addrs  map[netip.Addr]bool
}

// NewPeers is for the Pod of that name, whose underlay is of the address's family.
func NewPeers(nl *netlink.Handle, pod string, ip netip.Addr, resolver Resolver, log *slog.Logger) *Peers {
	return &Peers{
		nl: nl, pod: pod, v4: ip.Is4(), resolver: resolver, log: log,
		pods: map[netip.Addr]string{}, macs: map[string]string{}, active: map[string]*peer{}, asked: map[string]time.Time{},
	}
}

// SetDirectory takes the lab's management addresses, each with its Pod.
func (p *Peers) SetDirectory(pods map[netip.Addr]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods, p.macs = pods, make(map[string]string, len(pods))
	for _, pod := range pods {
		p.macs[MAC(pod).String()] = pod
	}
	for pod := range p.active {
		if _, ok := p.macs[MAC(pod).String()]; !ok {
			delete(p.active, pod)
		}
	}
}

// Watch serves the mesh interface. It is called after every look at it, and does
// nothing where it is still the same.
func (p *Peers) Watch(mesh netlink.Link) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	index := mesh.Attrs().Index
	if p.mesh == index {
		return nil
	}
	if p.stop != nil {
		p.stop()
	}
	stop, err := watchQuestions(index, p.ask, p.missed)
	if err != nil {
		return err
	}
	p.mesh, p.stop, p.active = index, stop, map[string]*peer{}
	return nil
}

// Close ends the watch. Entries stay: they serve while the sidecar restarts.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		p.stop()
		p.stop, p.mesh = nil, 0
	}
}

// ask is the kernel's question for a neighbour.
func (p *Peers) ask(a netip.Addr) {
	p.mu.Lock()
	pod, ok := p.pods[a]
	again := ok && time.Since(p.asked[pod+a.String()]) < askAgain
	if ok && !again {
		p.asked[pod+a.String()] = time.Now()
	}
	p.mu.Unlock()
	if ok && !again && pod != p.pod {
		go p.connect(pod, a)
	}
}

// missed is a frame for a forwarding entry that has aged away.
func (p *Peers) missed(mac net.HardwareAddr) {
	p.mu.Lock()
	pod, ok := p.macs[mac.String()]
	p.mu.Unlock()
	if ok && pod != p.pod {
		p.ask0(pod)
	}
}

func (p *Peers) ask0(pod string) {
	p.mu.Lock()
	again := time.Since(p.asked[pod]) < askAgain
	if !again {
		p.asked[pod] = time.Now()
	}
	p.mu.Unlock()
	if !again {
		go p.connect(pod, netip.Addr{})
	}
}

// connect finds the peer and writes its entries. A peer that is asked for once
// more did not answer at the address that it had: another one is preferred.
func (p *Peers) connect(pod string, a netip.Addr) {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	p.mu.Lock()
	known := p.active[pod]
	failed := known != nil && a.IsValid() && known.addrs[a]
	mesh := p.mesh
	p.mu.Unlock()
	if failed {
		p.resolver.Forget(pod)
	}
	addrs, err := p.resolver.Lookup(ctx, pod)
	if err != nil {
		p.log.Debug("peer not found", "pod", pod, "error", err)
		return
	}
	remote := p.choose(addrs, known, failed)
	if !remote.IsValid() {
		return
	}
	if err := p.forward(mesh, pod, remote); err != nil {
		p.log.Warn("management peer", "pod", pod, "error", err)
		return
	}
	if a.IsValid() {
		err := p.nl.NeighSet(&netlink.Neigh{LinkIndex: mesh, State: netlink.NUD_REACHABLE, IP: a.AsSlice(), HardwareAddr: MAC(pod)})
		if err != nil {
			p.log.Warn("management peer", "pod", pod, "error", err)
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[pod] == nil {
		p.active[pod] = &peer{addrs: map[netip.Addr]bool{}}
	}
	p.active[pod].remote = remote
	if a.IsValid() {
		p.active[pod].addrs[a] = true
	}
}

// choose takes an address of the underlay's family.
func (p *Peers) choose(addrs []netip.Addr, known *peer, failed bool) netip.Addr {
	var choice netip.Addr
	for _, a := range addrs {
		if a.Is4() != p.v4 {
			continue
		}
		if !choice.IsValid() || failed && choice == known.remote {
			choice = a
		}
	}
	return choice
}

// forward writes the forwarding entry. It may age and may be learned over.
func (p *Peers) forward(mesh int, pod string, remote netip.Addr) error {
	err := p.nl.NeighSet(&netlink.Neigh{
		LinkIndex: mesh, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, State: netlink.NUD_REACHABLE,
		IP: remote.AsSlice(), HardwareAddr: MAC(pod),
	})
	if err != nil {
		return fmt.Errorf("forwarding entry to %s: %w", remote, err)
	}
	return nil
}

// AddressesChanged looks again for the peers that are talked to.
func (p *Peers) AddressesChanged() {
	p.mu.Lock()
	var pods []string
	for pod := range p.active {
		pods = append(pods, pod)
	}
	p.mu.Unlock()
	for _, pod := range pods {
		p.ask0(pod)
	}
}

// Entry is one peer that is or was talked to.
type Entry struct {
	Pod    string
	Remote netip.Addr
}

// Entries are the forwarding entries as the kernel has them now.
func (p *Peers) Entries() ([]Entry, error) {
	p.mu.Lock()
	mesh, macs := p.mesh, p.macs
	p.mu.Unlock()
	if mesh == 0 {
		return nil, nil
	}
	list, err := p.nl.NeighList(mesh, unix.AF_BRIDGE)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("forwarding entries of %s: %w", MeshName, err)
	}
	var entries []Entry
	for _, n := range list {
		if pod, ok := macs[n.HardwareAddr.String()]; ok && n.IP != nil {
			entries = append(entries, Entry{Pod: pod, Remote: addr(n.IP)})
		}
	}
	return entries, nil
}

// Expire removes neighbours that nobody uses: stale ones whose forwarding entry
// has aged away.
func (p *Peers) Expire() error {
	p.mu.Lock()
	mesh := p.mesh
	for key, at := range p.asked {
		if time.Since(at) > time.Minute {
			delete(p.asked, key)
		}
	}
	p.mu.Unlock()
	if mesh == 0 {
		return nil
	}
	entries, err := p.Entries()
	if err != nil {
		return err
	}
	live := map[string]bool{}
	for _, e := range entries {
		live[e.Pod] = true
	}
	list, err := p.nl.NeighList(mesh, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("neighbours of %s: %w", MeshName, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for pod := range p.active {
		if !live[pod] {
			delete(p.active, pod)
		}
	}
	for _, n := range list {
		if n.State&(netlink.NUD_STALE|netlink.NUD_FAILED) == 0 || live[p.macs[n.HardwareAddr.String()]] {
			continue
		}
		if err := p.nl.NeighDel(&n); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove an idle neighbour of %s: %w", MeshName, err)
		}
	}
	return nil
}
