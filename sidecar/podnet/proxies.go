package podnet

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
)

// proxies remembers the proxied addresses, so that ten thousand of them are compared with
// the kernel's only after a change.
type proxies struct {
	leg, mesh int
	at        time.Time
	// canaries are one address of each family and interface.
	onLeg, onMesh []netip.Addr
}

func (p *proxies) there(leg, mesh netlink.Link) bool {
	if p.leg != leg.Attrs().Index || p.mesh != mesh.Attrs().Index || time.Since(p.at) > proxyLook {
		return false
	}
	for _, a := range p.onLeg {
		if !mgmt.Proxied(leg, a) {
			return false
		}
	}
	for _, a := range p.onMesh {
		if !mgmt.Proxied(mesh, a) {
			return false
		}
	}
	return true
}

// ensureProxies answers for all other nodes towards the device, and for the
// device towards other nodes.
func (s *sidecar) ensureProxies(doc *contract.Links, mesh netlink.Link, newDirectory bool) error {
	leg, err := s.nl.LinkByName(mgmt.LegName)
	if err != nil {
		return fmt.Errorf("interface %s: %w", mgmt.LegName, err)
	}
	if !newDirectory && s.proxied.there(leg, mesh) {
		return nil
	}
	own, others := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, p := range []netip.Prefix{doc.Mgmt.IPv4, doc.Mgmt.IPv6} {
		if p.IsValid() {
			own[p.Addr()] = true
		}
	}
	for a := range s.want.pods {
		if !own[a] {
			others[a] = true
		}
	}
	// The IPv4 gateway is an address of the leg; the IPv6 one cannot be.
	if gw := doc.Mgmt.GatewayV6; gw.IsValid() {
		others[gw] = true
	}
	if err := errors.Join(mgmt.Proxy(s.nl, leg, others), mgmt.Proxy(s.nl, mesh, own)); err != nil {
		return err
	}
	s.proxied = proxies{leg: leg.Attrs().Index, mesh: mesh.Attrs().Index, at: time.Now(), onLeg: canaries(others), onMesh: canaries(own)}
	return nil
}

func canaries(all map[netip.Addr]bool) []netip.Addr {
	var out []netip.Addr
	for a := range all {
		if len(out) == 0 || len(out) == 1 && out[0].Is4() != a.Is4() {
			out = append(out, a)
		}
	}
	return out
}
