package fabric

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Fabric is a checked fabric file.
type Fabric struct {
	file File
	// addresses, prefixes and numbers are the pools of each kind, by name.
	addresses map[string]alloc.Pool[netip.Addr]
	prefixes  map[string]alloc.Pool[netip.Prefix]
	numbers   map[string]alloc.Pool[uint32]
	// gateways are those of the services, invalid for a service without one.
	gateways []netip.Prefix
	mac      string
	// prefer are the addresses that prefer has, by node.
	preferLoopback, preferVTEP map[string]netip.Addr

	plan *Plan
}

// Load reads and checks a fabric file. Every problem is reported with its position; with an
// error among them the Fabric is nil.
func Load(name string, data []byte) (*Fabric, []diag.Diagnostic) {
	l := &loader{
		Decoder: strictyaml.Decoder{File: name, Diags: &diag.List{}, Top: "in the fabric file", AllKeys: "docs/reference/fabric.md lists the keys", Codes: strictyaml.OneCode(CodeInvalid)},
		Fabric: &Fabric{
			addresses: map[string]alloc.Pool[netip.Addr]{}, prefixes: map[string]alloc.Pool[netip.Prefix]{}, numbers: map[string]alloc.Pool[uint32]{},
			preferLoopback: map[string]netip.Addr{}, preferVTEP: map[string]netip.Addr{},
		},
	}
	l.load(data)
	if l.Diags.HasErrors() {
		return nil, l.Diags.All()
	}
	return l.Fabric, l.Diags.All()
}

type loader struct {
	strictyaml.Decoder
	*Fabric
	// ranges are the address ranges of all pools, which must not overlap.
	ranges []writtenRange
}

type writtenRange struct {
	netip.Prefix
	pos diag.Pos
}

func (l *loader) wrong(pos diag.Pos, hint, format string, args ...any) {
	l.Diags.Errorf(CodeInvalid, pos, hint, format, args...)
}

func (l *loader) load(data []byte) {
	root := l.Root(data, CodeInvalid, "the fabric file", APIVersion)
	if root == nil {
		return
	}
	f := &l.file
	l.Decode(root, f, "")
	l.CheckHeader(root, strictyaml.Header{APIVersion: f.APIVersion, Kind: f.Kind}, strictyaml.Header{APIVersion: APIVersion, Kind: Kind})
	top := l.Pos(root)
	for _, name := range slices.Sorted(maps.Keys(f.Pools)) {
		l.pool(name, f.Pools[name])
	}
	l.members(top)
	l.underlay(top)
	if f.Overlay != nil {
		l.overlay()
	}
	if f.Customers != nil {
		l.customers()
	}
	if f.Access != nil {
		l.access()
	}
	if f.VTEPs != nil {
		l.vteps()
	}
	if f.BUM != nil {
		l.bum()
	}
	l.services()
	if f.Multihoming != nil {
		l.multihoming()
	}
	l.prefer()
}

// pool checks a pool and makes it.
func (l *loader) pool(name string, p Pool) {
	written := 0
	for _, n := range []int{len(p.Addresses), len(p.Prefixes), len(p.Numbers)} {
		if n > 0 {
			written++
		}
	}
	if written != 1 {
		l.wrong(p.Pos, "write one of addresses, prefixes and numbers", "pool %q has %d kinds of values, not one", name, written)
		return
	}
	order, reclaim := alloc.Lowest, alloc.Retain
	switch p.Order.Value {
	case "", "lowest":
	case "hash":
		order = alloc.ByHash
	default:
		l.wrong(p.Order.Pos, "use lowest or hash", "order is %q", p.Order.Value)
	}
	switch p.Reclaim.Value {
	case "", "retain":
	case "recycle":
		reclaim = alloc.Recycle
	default:
		l.wrong(p.Reclaim.Pos, "use retain or recycle", "reclaim is %q", p.Reclaim.Value)
	}
	title := fmt.Sprintf("values of pool %q", name)
	larger := fmt.Sprintf("add a range to pool %q in the fabric file", name)
	if p.Length.Set && len(p.Prefixes) == 0 {
		l.wrong(p.Length.Pos, "remove it, or write prefixes", "pool %q has a length, but no prefixes", name)
	}
	switch {
	case len(p.Addresses) > 0:
		var parts []alloc.Pool[netip.Addr]
		for _, s := range p.Addresses {
			if base, ok := l.prefix(s, true); ok {
				parts = append(parts, alloc.Addresses(title, base, netip.Prefix{}, netip.Addr{}))
			}
		}
		if len(parts) > 0 {
			l.addresses[name] = finish(alloc.Join(title, parts...), order, reclaim, larger)
		}
	case len(p.Prefixes) > 0:
		var parts []alloc.Pool[netip.Prefix]
		for _, s := range p.Prefixes {
			base, ok := l.prefix(s, true)
			switch {
			case !ok:
			case p.Length.Value < base.Bits() || p.Length.Value > base.Addr().BitLen():
				pos := p.Length.Pos
				if !p.Length.Set {
					pos = s.Pos
				}
				l.wrong(pos, fmt.Sprintf("write length: 31, or another number from %d to 32", base.Bits()), "pool %q cannot divide %s into prefixes of %d bits", name, base, p.Length.Value)
			default:
				parts = append(parts, alloc.Prefixes(title, base, p.Length.Value))
			}
		}
		if len(parts) > 0 {
			l.prefixes[name] = finish(alloc.Join(title, parts...), order, reclaim, larger)
		}
	default:
		var parts []alloc.Pool[uint32]
		for _, s := range p.Numbers {
			if first, last, ok := numberRange(s.Value); ok {
				parts = append(parts, alloc.Numbers(title, first, last))
			} else {
				l.wrong(s.Pos, "write it like 65001-65534, the lower number first", "%q is not a range of numbers from 1 to 4294967294", s.Value)
			}
		}
		if len(parts) > 0 {
			l.numbers[name] = finish(alloc.Join(title, parts...), order, reclaim, larger)
		}
	}
}

func finish[V comparable](p alloc.Pool[V], order alloc.Order, reclaim alloc.Reclaim, larger string) alloc.Pool[V] {
	p.Order, p.Reclaim, p.Larger = order, reclaim, larger
	return p
}

func numberRange(text string) (first, last uint32, ok bool) {
	a, b, isRange := strings.Cut(text, "-")
	if !isRange {
		b = a
	}
	x, errX := strconv.ParseUint(strings.TrimSpace(a), 10, 32)
	y, errY := strconv.ParseUint(strings.TrimSpace(b), 10, 32)
	return uint32(x), uint32(y), errX == nil && errY == nil && x > 0 && x <= y && y < 1<<32-1
}

// prefix reads an IPv4 prefix. One of a pool must not overlap another one.
func (l *loader) prefix(s topology.Str, ofPool bool) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s.Value)
	if err != nil || !p.Addr().Is4() {
		l.wrong(s.Pos, "write it like 10.0.0.0/24", "%q is not an IPv4 prefix", s.Value)
		return p, false
	}
	if !ofPool {
		return p, true
	}
	if p != p.Masked() {
		l.wrong(s.Pos, "write "+p.Masked().String(), "%s has bits of the host part", p)
		return p, false
	}
	for _, other := range l.ranges {
		if other.Overlaps(p) {
			l.wrong(s.Pos, "give each pool ranges of its own", "%s overlaps %s at %s", p, other.Prefix, other.pos)
			return p, false
		}
	}
	l.ranges = append(l.ranges, writtenRange{p, s.Pos})
	return p, true
}

// uses checks that a field names a pool of a kind of values.
func uses[V comparable](l *loader, s topology.Str, where diag.Pos, field, what string, pools map[string]alloc.Pool[V]) {
	if s.Value == "" {
		l.wrong(where, fmt.Sprintf("add \"%s: POOL\"", field), "%s is missing", field)
		return
	}
	if _, ok := pools[s.Value]; ok {
		return
	}
	if _, written := l.file.Pools[s.Value]; written {
		if p := l.file.Pools[s.Value]; map[string]int{"addresses": len(p.Addresses), "prefixes": len(p.Prefixes), "numbers": len(p.Numbers)}[what] == 0 {
			l.wrong(s.Pos, fmt.Sprintf("use a pool of %s", what), "%s needs %s, and pool %q has none", field, what, s.Value)
		}
		return // what is wrong with it has been reported
	}
	hint := "add it under pools"
	if near := strictyaml.Nearest(s.Value, slices.Sorted(maps.Keys(l.file.Pools))); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	l.wrong(s.Pos, hint, "%s names pool %q, which does not exist", field, s.Value)
}

func (l *loader) members(top diag.Pos) {
	m := &l.file.Members
	if m.Pos.Line == 0 {
		l.wrong(top, "add members: {match: {groups: [spine, leaf]}, loopbacks: POOL}", "the fabric has no members")
		return
	}
	if !m.Match.Set() {
		l.wrong(m.Pos, "add match: {groups: [spine, leaf]}", "members has no match")
	}
	uses(l, m.Loopbacks, m.Pos, "loopbacks", "addresses", l.addresses)
}

func (l *loader) underlay(top diag.Pos) {
	u := &l.file.Underlay
	if u.Pos.Line == 0 {
		l.wrong(top, "add underlay: {protocol: ospf, links: POOL}", "the fabric has no underlay")
		return
	}
	l.oneOf(u.Protocol, u.Pos, "protocol", OSPF, ISIS, EBGP)
	if u.Links.Value != Unnumbered {
		l.linkPool(u.Links, u.Pos)
	}
	if u.Ports.Set && (u.Ports.Value < 1 || u.Ports.Value > MaxPorts) {
		l.wrong(u.Ports.Pos, "write the number of ports of the largest router", "ports is %d, not a number from 1 to %d", u.Ports.Value, MaxPorts)
	}
	switch {
	case u.Protocol.Value == EBGP:
		uses(l, u.ASNs, u.Pos, "asns", "numbers", l.numbers)
	case u.ASNs.Value != "":
		l.wrong(u.ASNs.Pos, "remove it, or use protocol: ebgp", "an underlay of %s has no AS numbers", u.Protocol.Value)
	case len(u.SharedASN) > 0:
		l.wrong(u.SharedASN[0].Pos, "remove it, or use protocol: ebgp", "an underlay of %s has no AS numbers", u.Protocol.Value)
	}
}

// linkPool checks the pool of prefixes of links.
func (l *loader) linkPool(links topology.Str, where diag.Pos) {
	uses(l, links, where, "links", "prefixes", l.prefixes)
	p := l.file.Pools[links.Value]
	if _, made := l.prefixes[links.Value]; made && p.Length.Value != 31 && p.Length.Value != 30 {
		l.wrong(links.Pos, "set length: 31 in the pool", "links have two ends, and pool %q has prefixes of %d bits", links.Value, p.Length.Value)
	}
}

func (l *loader) customers() {
	c := l.file.Customers
	if o := l.file.Overlay; o == nil || o.Protocol.Value != IBGP {
		l.wrong(c.Pos, "add overlay: {protocol: ibgp, asn: 65000}; with an underlay of ebgp, all members have AS numbers of their own", "customers need an overlay of ibgp")
	}
	if !c.Match.Set() {
		l.wrong(c.Pos, "add match: {groups: [ce]}", "customers has no match")
	}
	uses(l, c.ASNs, c.Pos, "asns", "numbers", l.numbers)
}

func (l *loader) access() {
	a := l.file.Access
	if !a.Hosts.Set() {
		l.wrong(a.Pos, "add hosts: {groups: [host]}", "access has no hosts")
	}
	l.linkPool(a.Links, a.Pos)
	if a.Links.Value != "" && a.Links.Value == l.file.Underlay.Links.Value {
		l.wrong(a.Links.Pos, "use a pool of its own", "access and the underlay use the same pool %q", a.Links.Value)
	}
	for _, route := range a.Routes {
		l.prefix(route, false)
	}
}

// oneOf checks a word.
func (l *loader) oneOf(s topology.Str, where diag.Pos, field string, words ...string) {
	switch {
	case s.Value == "":
		l.wrong(where, "use "+strings.Join(words, ", "), "%s is missing", field)
	case !slices.Contains(words, s.Value):
		l.wrong(s.Pos, "use "+strings.Join(words, ", "), "%s is %q", field, s.Value)
	}
}

func (l *loader) overlay() {
	o, under := l.file.Overlay, l.file.Underlay.Protocol.Value
	l.oneOf(o.Protocol, o.Pos, "protocol", IBGP, EBGP)
	switch o.Protocol.Value {
	case IBGP:
		if under == EBGP {
			l.wrong(o.Protocol.Pos, "use protocol: ebgp, or an underlay of ospf or isis", "an overlay of ibgp needs one AS, and an underlay of ebgp has several")
		}
		if n := o.ASN.Value; n < 1 || n >= 1<<32-1 {
			pos := o.ASN.Pos
			if !o.ASN.Set {
				pos = o.Pos
			}
			l.wrong(pos, "add asn: 65000", "an overlay of ibgp needs an AS number from 1 to 4294967294")
		}
	case EBGP:
		if under != EBGP && under != "" {
			l.wrong(o.Protocol.Pos, "use protocol: ibgp, or an underlay of ebgp", "an overlay of ebgp uses the sessions of the underlay, which is %s", under)
		}
		if o.ASN.Set {
			l.wrong(o.ASN.Pos, "remove it: nodes have the AS numbers of the underlay", "an overlay of ebgp has no AS number of its own")
		}
		if o.Reflectors.Set() {
			l.wrong(o.Reflectors.Pos, "remove them, or use protocol: ibgp", "an overlay of ebgp has no route reflectors")
		}
	}
}

func (l *loader) vteps() {
	v := l.file.VTEPs
	if l.file.Overlay == nil {
		l.wrong(v.Pos, "add overlay: {protocol: ibgp, asn: 65000}", "VTEPs need an overlay")
	}
	if !v.Match.Set() {
		l.wrong(v.Pos, "add match: {groups: [leaf]}", "vteps has no match")
	}
	if v.Addresses.Value != "" {
		uses(l, v.Addresses, v.Pos, "addresses", "addresses", l.addresses)
	}
	if v.GatewayMAC.Value == "" {
		return
	}
	mac, err := net.ParseMAC(v.GatewayMAC.Value)
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 {
		l.wrong(v.GatewayMAC.Pos, "write it like \"02:00:5e:00:00:01\", with an even first byte", "gatewayMAC %q is not the MAC address of a host", v.GatewayMAC.Value)
		return
	}
	l.mac = mac.String()
}

func (l *loader) services() {
	seen := map[string]diag.Pos{}
	once := func(what string, value any, pos diag.Pos) {
		key := fmt.Sprint(what, value)
		if first, dup := seen[key]; dup {
			l.wrong(pos, "give each service its own", "two services have %s %v (the other one is at %s)", what, value, first)
		}
		seen[key] = pos
	}
	for i := range l.file.Services {
		s := &l.file.Services[i]
		if l.file.VTEPs == nil {
			l.wrong(s.Pos, "add vteps: {match: {groups: [leaf]}}", "services need VTEPs")
		}
		if s.Name.Value == "" {
			l.wrong(s.Pos, "add \"name: ...\"", "a service has no name")
		} else {
			once("name", s.Name.Value, s.Name.Pos)
		}
		l.within(s.VLAN, s.Pos, "vlan", 1, 4094)
		l.within(s.VNI, s.Pos, "vni", 1, 1<<24-1)
		if s.VLAN.Set {
			once("vlan", s.VLAN.Value, s.VLAN.Pos)
		}
		if s.VNI.Set {
			once("vni", s.VNI.Value, s.VNI.Pos)
		}
		l.gateways = append(l.gateways, l.gateway(s))
	}
}

func (l *loader) within(v topology.Int, where diag.Pos, field string, first, last int) {
	if v.Set {
		where = v.Pos
	}
	if v.Value < first || v.Value > last {
		l.wrong(where, fmt.Sprintf("write %s: NUMBER, from %d to %d", field, first, last), "a service needs a %s from %d to %d", field, first, last)
	}
}

// gateway checks the gateway of a service and its routes.
func (l *loader) gateway(s *Service) netip.Prefix {
	if s.Gateway.Value == "" {
		if len(s.Routes) > 0 {
			l.wrong(s.Routes[0].Pos, "add gateway: 10.10.10.1/24", "routes need a gateway")
		}
		return netip.Prefix{}
	}
	p, ok := l.prefix(s.Gateway, false)
	switch {
	case !ok:
	case p.Bits() > 30 || p == p.Masked() || p.Addr() == alloc.Broadcast(p):
		l.wrong(s.Gateway.Pos, "write it like 10.10.10.1/24", "%s is not the address of a host in a subnet", p)
	case l.mac == "" && l.file.VTEPs != nil && l.file.VTEPs.GatewayMAC.Value == "":
		l.wrong(s.Gateway.Pos, "add gatewayMAC: \"02:00:5e:00:00:01\" to vteps", "a gateway needs the MAC address that all VTEPs share")
	}
	for _, other := range l.ranges {
		if ok && other.Overlaps(p) {
			l.wrong(s.Gateway.Pos, "use another subnet", "the subnet of %s overlaps %s of a pool at %s", p, other.Prefix, other.pos)
		}
	}
	for i, other := range l.gateways {
		if ok && other.IsValid() && other.Overlaps(p) {
			l.wrong(s.Gateway.Pos, "use another subnet", "the subnet of %s overlaps that of service %q", p, l.file.Services[i].Name.Value)
		}
	}
	for _, route := range s.Routes {
		l.prefix(route, false)
	}
	return p
}

func (l *loader) prefer() {
	for _, node := range slices.Sorted(maps.Keys(l.file.Prefer)) {
		p := l.file.Prefer[node]
		for _, v := range []struct {
			s  topology.Str
			to map[string]netip.Addr
		}{{p.Loopback, l.preferLoopback}, {p.VTEP, l.preferVTEP}} {
			if v.s.Value == "" {
				continue
			}
			a, err := netip.ParseAddr(v.s.Value)
			if err != nil || !a.Is4() {
				l.wrong(v.s.Pos, "write it like 10.0.0.1", "%q is not an IPv4 address", v.s.Value)
				continue
			}
			v.to[node] = a
		}
		if p.ASN.Set && l.file.Underlay.Protocol.Value != EBGP && l.file.Customers == nil {
			l.wrong(p.ASN.Pos, "remove it, or use an underlay of ebgp", "only customers and an underlay of ebgp have AS numbers of nodes")
		}
		if p.ASN.Set && (p.ASN.Value < 1 || p.ASN.Value >= 1<<32-1) {
			l.wrong(p.ASN.Pos, "write a number from 1 to 4294967294", "%d is not an AS number", p.ASN.Value)
		}
		if p.VTEP.Value != "" && (l.file.VTEPs == nil || l.file.VTEPs.Addresses.Value == "") {
			l.wrong(p.VTEP.Pos, "add addresses: POOL to vteps", "VTEPs use their router ids")
		}
	}
}
