package podnet

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/dns"
	"github.com/c9s-lab/c9s/sidecar/hosts"
	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
	"github.com/c9s-lab/c9s/sidecar/nft"
)

// pass compares everything with the kernel once and applies the difference. What
// fails does not keep the rest from being done.
func (s *sidecar) pass(ctx context.Context) error {
	var errs []error
	try := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	}
	ch, err := s.want.read(&s.cfg)
	try(err)
	if s.want.doc == nil {
		return errors.Join(append(errs, errors.New("links.json is not there yet"))...)
	}
	live := *s.want.doc
	live.Interfaces, s.nextFault = s.faults.resolve(live.Interfaces, time.Now())
	doc := &live
	s.takeManifest(ctx)
	if ch.addresses && s.resolver.SetKnown(s.want.addresses) && s.fabric != nil {
		s.fabric.PeersChanged()
	}
	try(s.host.apply(doc, s.cfg.Device, s.cfg.state("host.json")))

	made := try(s.network(doc, ch))
	v := view{doc: doc, digest: s.want.digest, held: s.linksHeld(), mgmtMade: made, applied: true}
	// Held back, nothing is made; and nothing is removed either, in case it is
	// only the manifest that cannot be read.
	if !v.held {
		var ok bool
		v.states, ok = s.interfaces(ctx, doc, try)
		v.complete = ok && made
	}
	if s.want.hosts != nil {
		try(hosts.Update(s.cfg.HostsFile, s.want.hosts))
	}
	joined := errors.Join(errs...)
	if joined != nil {
		v.complaint = joined.Error()
	}
	s.mu.Lock()
	s.now = v
	s.mu.Unlock()
	s.news.tell()
	return joined
}

// interfaces ensures the data interfaces, and passes their legs to the fabric.
func (s *sidecar) interfaces(ctx context.Context, doc *contract.Links, try func(error) bool) ([]link.State, bool) {
	states, err := s.set.Apply(ctx, doc.Interfaces, doc.Bridges)
	ok := try(err)
	for _, st := range states {
		ok = try(st.Err) && ok
	}
	if s.fabric != nil {
		ok = try(s.fabric.Set(wires(doc.Interfaces, states))) && ok
	}
	return states, ok
}

// takeManifest starts the gate, once.
func (s *sidecar) takeManifest(ctx context.Context) {
	if s.want.manifest == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		return
	}
	s.man = s.want.manifest
	s.gate = newGate(s.man, s.asker, s.ownStage, s.boot.First, s.cfg.state("gate"))
	go s.gate.run(ctx, s.wake.poke)
}

func (s *sidecar) linksHeld() bool {
	s.mu.Lock()
	g := s.gate
	s.mu.Unlock()
	if g == nil {
		return true
	}
	_, open, _ := g.state()
	return !open
}

// network has everything but the data interfaces: cluster interface, firewall, rules,
// mesh, eth0. Nothing listens before the firewall exists.
func (s *sidecar) network(doc *contract.Links, ch change) error {
	underlay, err := s.underlay.Ensure()
	if err != nil {
		return err
	}
	s.router.Set(doc.Mgmt, s.mgmtLegs(doc), s.want.pods)
	if doc.Mgmt != nil {
		s.setMesh(doc)
	}
	if err := s.firewall(doc, underlay); err != nil {
		return err
	}
	if s.peers != nil {
		if err := s.peers.Guard(); err != nil {
			return err
		}
	}
	s.guarded = true
	snap, err := link.Read(s.nl)
	if err != nil {
		return err
	}
	errs := []error{s.router.Rules()}
	var mesh netlink.Link
	if doc.Mgmt != nil {
		if mesh, err = s.mesh.Ensure(snap, underlay); err != nil {
			mesh = nil
		}
		errs = append(errs, err)
	}
	routed := s.router.Ensure(snap, mesh)
	errs = append(errs, routed)
	if routed == nil {
		errs = append(errs, s.resolve(doc.Mgmt))
	}
	if mesh != nil {
		errs = append(errs, s.ensurePeers(doc, mesh, ch.directory))
	}
	return errors.Join(errs...)
}

// resolve has the device's resolver, at the gateway.
func (s *sidecar) resolve(mgmt *contract.Mgmt) error {
	if mgmt == nil {
		return s.dns.Listen()
	}
	s.dns.Set(s.want.hosts, mgmt.Outside())
	var at []netip.AddrPort
	for _, gateway := range []netip.Addr{mgmt.GatewayV4, mgmt.GatewayV6} {
		if gateway.IsValid() {
			at = append(at, netip.AddrPortFrom(gateway, dns.Port))
		}
	}
	if err := s.dns.Listen(at...); err != nil || len(at) == 0 {
		return err
	}
	return s.conf.Give(at[0].Addr())
}

// mgmtLegs are the legs of interfaces on the management network.
func (s *sidecar) mgmtLegs(doc *contract.Links) []string {
	var legs []string
	for i := range doc.Interfaces {
		if doc.Interfaces[i].MgmtNet != nil {
			legs = append(legs, link.MgmtLeg(&doc.Interfaces[i]))
		}
	}
	return legs
}

func (s *sidecar) setMesh(doc *contract.Links) {
	if s.mesh != nil {
		return
	}
	lab := s.cfg.Namespace + "/" + doc.Lab
	s.mesh = mgmt.NewMesh(s.nl, lab, doc.Pod, s.cfg.PodIPs[0])
	peers := mgmt.NewPeers(s.nl, lab, doc.Pod, s.cfg.PodIPs[0], s.cfg.Log)
	peers.SetDirectory(s.want.pods)
	s.mu.Lock()
	s.peers = peers
	s.mu.Unlock()
}

// Proxied addresses are compared with the kernel's when the directory or an
// interface is new, and every proxyLook; idle peers are removed every
// expireLook.
const (
	proxyLook  = time.Minute
	expireLook = time.Minute
)

func (s *sidecar) ensurePeers(doc *contract.Links, mesh netlink.Link, newDirectory bool) error {
	if newDirectory {
		s.peers.SetDirectory(s.want.pods)
	}
	if err := s.peers.Watch(mesh); err != nil {
		return err
	}
	if s.fabric != nil {
		s.peers.SetSessions(s.fabric)
		s.peers.Apply()
	}
	if now := time.Now(); now.After(s.nextExpire) {
		s.nextExpire = now.Add(expireLook)
		if err := s.peers.Expire(); err != nil {
			return err
		}
	}
	return s.ensureProxies(doc, mesh, newDirectory)
}

// The ports on the Pod address that are the sidecar's.
var (
	udpPorts = []uint16{contract.WirePort, contract.MgmtPort, contract.VXLANPort}
	tcpPorts = []uint16{contract.StatusPort}
)

func (s *sidecar) firewall(doc *contract.Links, underlay netlink.Link) error {
	c := nft.Config{
		Underlay: mgmt.UnderlayName, PodAddrs: s.cfg.PodIPs, UnderlayMTU: underlay.Attrs().MTU, UDP: udpPorts, TCP: tcpPorts, Resolver: dns.Port,
	}
	for i := range doc.Interfaces {
		if v := doc.Interfaces[i].VXLAN; v != nil && !slices.Contains(c.Tunnels, uint16(v.DstPort)) {
			c.Tunnels = append(c.Tunnels, uint16(v.DstPort))
		}
	}
	if s.mesh != nil {
		c.MeshMTU = s.mesh.MTU(c.UnderlayMTU)
	}
	s.router.Firewall(&c)
	_, err := nft.Table{}.Apply(c)
	return err
}
