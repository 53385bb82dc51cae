package mgmt

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/pkg/wire/vxlan"
)

const (
	// fdbAge is how long a forwarding entry outlives its last use.
	fdbAge = 5 * time.Minute
	// adoptAge is how long the entries of an earlier process are believed without a
	// session.
	adoptAge = 5 * time.Second
)

// GuardName is the nftables table that keeps strangers from the mesh.
const GuardName = "c9s-mesh"

// Sessions provide the proven addresses of the lab's Pods.
type Sessions interface {
	SetLab(pods map[string]bool)
	Keep(pods map[string]bool)
	Peers() []wire.Peer
}

// Peers maintains the entries of the mesh: neighbours, and one forwarding entry for each peer
// in use. The kernel's neighbour requests, which would be broadcast and are dropped, show
// which peers are in use. The session with a peer provides its address and proves that it is
// alive; without a session it has no entries. Nothing is learned from the frames of the mesh,
// and Pods without a session cannot send by it.
type Peers struct {
	nl  *netlink.Handle
	pod string
	vni uint32
	v4  bool
	log *slog.Logger

	mu       sync.Mutex
	guard    vxlan.Guard
	sessions Sessions
	mesh     int
	since    time.Time
	pods     map[netip.Addr]string
	macs     map[string]string
	active   map[string]*peer
	stop     func()
}

// peer is a peer in use.
type peer struct {
	// remote is the address in its forwarding entry, not valid without one.
	remote netip.Addr
	// addrs are the management addresses that the kernel asked for.
	addrs map[netip.Addr]bool
	asked time.Time
	// adopted: its entries are those of an earlier process.
	adopted bool
}

// NewPeers returns the peers of a Pod in a lab. The address decides the family of the
// underlay.
func NewPeers(nl *netlink.Handle, lab, pod string, ip netip.Addr, log *slog.Logger) *Peers {
	return &Peers{
		nl: nl, pod: pod, vni: uint32(VNI(lab)), v4: ip.Is4(), log: log, guard: vxlan.Guard{Table: GuardName, Port: contract.MgmtPort},
		pods: map[netip.Addr]string{}, macs: map[string]string{}, active: map[string]*peer{},
	}
}

// Guard writes the table that rejects strangers. Call it before the mesh is created.
func (p *Peers) Guard() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.guard.Close()
}

// SetDirectory sets the Pod of each management address of the lab.
func (p *Peers) SetDirectory(pods map[netip.Addr]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods, p.macs = pods, make(map[string]string, len(pods))
	for _, pod := range pods {
		p.macs[MAC(pod).String()] = pod
	}
	p.setLab()
}

// setLab passes the lab's Pods to the sessions.
func (p *Peers) setLab() {
	if p.sessions == nil {
		return
	}
	lab := map[string]bool{}
	for _, pod := range p.macs {
		lab[pod] = true
	}
	p.sessions.SetLab(lab)
}

// SetSessions sets the sessions, nil if there are none at the moment.
func (p *Peers) SetSessions(s Sessions) {
	p.mu.Lock()
	same := p.sessions == s
	p.sessions = s
	if !same && s != nil {
		p.setLab()
		p.keep()
	}
	p.mu.Unlock()
}

// keep keeps sessions with the peers in use.
func (p *Peers) keep() {
	if p.sessions == nil {
		return
	}
	kept := make(map[string]bool, len(p.active))
	for pod := range p.active {
		kept[pod] = true
	}
	p.sessions.Keep(kept)
}

// Watch watches the mesh interface. It does nothing if the interface is unchanged.
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
	p.mesh, p.stop, p.since = index, stop, time.Now()
	time.AfterFunc(adoptAge+time.Second, p.Apply)
	return p.adopt()
}

// adopt uses the entries of an earlier process until there are sessions.
func (p *Peers) adopt() error {
	p.active = map[string]*peer{}
	entries, err := p.entries()
	if err != nil {
		return err
	}
	for pod, remote := range entries {
		p.active[pod] = &peer{remote: remote, addrs: map[netip.Addr]bool{}, asked: time.Now(), adopted: true}
	}
	list, err := p.nl.NeighList(p.mesh, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("neighbours of %s: %w", MeshName, err)
	}
	for _, n := range list {
		if peer := p.active[p.macs[n.HardwareAddr.String()]]; peer != nil && n.State&netlink.NUD_PERMANENT != 0 {
			peer.addrs[addr(n.IP)] = true
		}
	}
	p.keep()
	return nil
}

// Close ends the watch. Entries stay, for use while the sidecar restarts.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		p.stop()
		p.stop, p.mesh = nil, 0
	}
}

// ask handles the kernel's request for a neighbour.
func (p *Peers) ask(a netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod, ok := p.pods[a]
	if !ok || pod == p.pod {
		return
	}
	p.want(pod).addrs[a] = true
	p.keep()
	p.apply()
}

// missed handles a frame whose forwarding entry has expired.
func (p *Peers) missed(mac net.HardwareAddr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod, ok := p.macs[mac.String()]
	if !ok || pod == p.pod {
		return
	}
	p.want(pod).remote = netip.Addr{}
	p.keep()
	p.apply()
}

func (p *Peers) want(pod string) *peer {
	if p.active[pod] == nil {
		p.active[pod] = &peer{addrs: map[netip.Addr]bool{}}
	}
	p.active[pod].asked = time.Now()
	return p.active[pod]
}

// Apply updates the entries from the sessions.
func (p *Peers) Apply() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apply()
}

func (p *Peers) apply() {
	if p.sessions == nil || p.mesh == 0 {
		return
	}
	where, allowed := map[string]netip.Addr{}, map[vxlan.Source]bool{}
	for _, s := range p.sessions.Peers() {
		if s.Addr.IsValid() && s.Addr.Is4() == p.v4 {
			where[s.Pod] = s.Addr
			allowed[vxlan.Source{From: s.Addr, VNI: p.vni}] = true
		}
	}
	for pod, peer := range p.active {
		if peer.adopted = peer.adopted && !where[pod].IsValid() && time.Since(p.since) < adoptAge; peer.adopted {
			where[pod] = peer.remote
			allowed[vxlan.Source{From: peer.remote, VNI: p.vni}] = true
		}
	}
	// The guard must admit a peer before it can be answered.
	err := p.guard.Allow(allowed)
	for pod, peer := range p.active {
		err = errors.Join(err, p.point(pod, peer, where[pod]))
	}
	if err != nil {
		p.log.Warn("management mesh", "error", err)
	}
}

// point sets the address in a peer's entries. An address that is not valid deletes them,
// and the device sees that the neighbour is unreachable.
func (p *Peers) point(pod string, peer *peer, remote netip.Addr) error {
	if peer.remote != remote && peer.remote.IsValid() {
		// The entry is recreated rather than changed, which also drops the route that the
		// kernel cached for it.
		if err := p.nl.NeighDel(p.forwarding(pod, peer.remote)); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("forwarding entry of %s: %w", pod, err)
		}
		// It was in use until now: report it as lost, even if nothing asks for it again.
		peer.remote, peer.asked = netip.Addr{}, time.Now()
	}
	if !remote.IsValid() {
		return p.forgetNeighbours(peer)
	}
	if peer.remote != remote {
		if err := p.nl.NeighSet(p.forwarding(pod, remote)); err != nil {
			return fmt.Errorf("forwarding entry of %s: %w", pod, err)
		}
		peer.remote = remote
	}
	for a := range peer.addrs {
		err := p.nl.NeighSet(&netlink.Neigh{LinkIndex: p.mesh, Family: familyOf(a), State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: MAC(pod)})
		if err != nil {
			return fmt.Errorf("neighbour %s: %w", a, err)
		}
	}
	return nil
}

// forwarding returns a peer's entry, which expires when it is not used.
func (p *Peers) forwarding(pod string, remote netip.Addr) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: p.mesh, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, State: netlink.NUD_REACHABLE,
		IP: remote.AsSlice(), HardwareAddr: MAC(pod),
	}
}

func (p *Peers) forgetNeighbours(peer *peer) error {
	for a := range peer.addrs {
		err := p.nl.NeighDel(&netlink.Neigh{LinkIndex: p.mesh, Family: familyOf(a), IP: a.AsSlice()})
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("neighbour %s: %w", a, err)
		}
	}
	return nil
}

// Entry is a peer in use.
type Entry struct {
	Pod string
	// Remote is its address, not valid while it is lost.
	Remote netip.Addr
	RTT    time.Duration
}

// Entries returns the peers in use.
func (p *Peers) Entries() []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	rtt := map[string]time.Duration{}
	if p.sessions != nil {
		for _, s := range p.sessions.Peers() {
			rtt[s.Pod] = s.RTT
		}
	}
	entries := make([]Entry, 0, len(p.active))
	for pod, peer := range p.active {
		entries = append(entries, Entry{Pod: pod, Remote: peer.remote, RTT: rtt[pod]})
	}
	return entries
}

// entries returns the kernel's forwarding entries.
func (p *Peers) entries() (map[string]netip.Addr, error) {
	list, err := p.nl.NeighList(p.mesh, unix.AF_BRIDGE)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("forwarding entries of %s: %w", MeshName, err)
	}
	entries := map[string]netip.Addr{}
	for _, n := range list {
		if pod, ok := p.macs[n.HardwareAddr.String()]; ok && n.IP != nil {
			entries[pod] = addr(n.IP)
		}
	}
	return entries, nil
}

// Expire removes peers that are no longer in use: their forwarding entry has expired, or
// requests for them failed and were not repeated.
func (p *Peers) Expire() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mesh == 0 {
		return nil
	}
	entries, err := p.entries()
	if err != nil {
		return err
	}
	before := len(p.active)
	var errs []error
	maps.DeleteFunc(p.active, func(pod string, peer *peer) bool {
		_, used := entries[pod]
		if used || time.Since(peer.asked) < fdbAge {
			return false
		}
		errs = append(errs, p.forgetNeighbours(peer))
		return true
	})
	if len(p.active) != before {
		p.keep()
	}
	return errors.Join(errs...)
}
