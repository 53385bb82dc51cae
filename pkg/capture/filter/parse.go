package filter

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/bpf"
)

// tokens splits a filter into words and signs.
func tokens(text string) []string {
	for _, sign := range []string{"(", ")", "&&", "||"} {
		text = strings.ReplaceAll(text, sign, " "+sign+" ")
	}
	var out []string
	for _, word := range strings.Fields(text) {
		for len(word) > 1 && word[0] == '!' && word[1] != '=' {
			out, word = append(out, "!"), word[1:]
		}
		out = append(out, word)
	}
	return out
}

type parser struct {
	words []string
	last  qualifiers // of the primitive before: "port 80 or 443"
	depth int
}

// maxDepth bounds parentheses and negations.
const maxDepth = 200

func parse(text string) (expr, error) {
	p := &parser{words: tokens(text)}
	if len(p.words) == 0 {
		return always{}, nil
	}
	e, err := p.alternatives()
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("unexpected %q", p.words[0])
	}
	return e, err
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *parser) next() string {
	word := p.peek()
	if word != "" {
		p.words = p.words[1:]
	}
	return word
}

// take consumes one of some words.
func (p *parser) take(words ...string) bool {
	if p.peek() == "" || !slices.Contains(words, p.peek()) {
		return false
	}
	p.next()
	return true
}

// alternatives reads conditions joined by and and or, which bind alike and from the left, as
// tcpdump's do.
func (p *parser) alternatives() (expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errors.New("it is nested too deeply")
	}
	defer func() { p.depth-- }()
	e, err := p.term()
	for err == nil {
		var b expr
		switch {
		case p.take("and", "&&"):
			if b, err = p.term(); err == nil {
				e = both{e, b}
			}
		case p.take("or", "||"):
			if b, err = p.term(); err == nil {
				e = either{e, b}
			}
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *parser) term() (expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errors.New("it is nested too deeply")
	}
	defer func() { p.depth-- }()
	switch {
	case p.take("not", "!"):
		e, err := p.term()
		return no{e}, err
	case p.take("("):
		e, err := p.alternatives()
		if err == nil && !p.take(")") {
			err = errors.New("a parenthesis is not closed")
		}
		return e, err
	}
	return p.primitive()
}

// qualifiers are the words before an id.
type qualifiers struct {
	protocol  string // ether, ip, ip6, arp, rarp, tcp, udp, sctp, or ""
	direction string // src, dst, "src or dst", "src and dst", or ""
	kind      string // host, net, port, portrange, proto, or ""
}

var (
	layers = []string{"ether", "ip", "ip6", "arp", "rarp", "tcp", "udp", "sctp"}
	types  = []string{"host", "net", "port", "portrange", "proto"}
)

// protocols are the names of IP protocols, with their numbers: in IPv4, and in IPv6 for those
// that have one there.
var protocols = map[string]struct{ v4, v6 int }{
	"icmp": {1, -1}, "igmp": {2, -1}, "tcp": {6, 6}, "udp": {17, 17}, "icmp6": {-1, 58}, "esp": {50, 50}, "ah": {51, 51},
	"ospf": {89, 89}, "igrp": {9, -1}, "pim": {103, 103}, "vrrp": {112, -1}, "carp": {112, -1}, "sctp": {132, 132},
}

// numbers are names that may stand for a number behind "proto", as /etc/protocols has them.
var numbers = map[string]int{"icmp": 1, "igmp": 2, "tcp": 6, "egp": 8, "igp": 9, "udp": 17, "rsvp": 46, "gre": 47, "esp": 50, "ah": 51, "icmp6": 58, "ospf": 89, "ipip": 4, "pim": 103, "vrrp": 112, "l2tp": 115, "sctp": 132}

// services are names of ports.
var services = map[string]uint16{
	"ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "domain": 53, "tftp": 69, "http": 80, "ntp": 123, "snmp": 161, "snmp-trap": 162, "bgp": 179, "https": 443, "syslog": 514, "ldp": 646, "netconf": 830, "bfd-control": 3784, "vxlan": 4789,
}

func (p *parser) primitive() (expr, error) {
	word := p.peek()
	switch word {
	case "":
		return nil, errors.New("a condition is missing at the end")
	case "vlan", "mpls":
		return p.label(p.next())
	case "less", "greater":
		p.next()
		n, err := number(p.next(), 1<<18)
		cond := bpf.JumpLessOrEqual
		if word == "greater" {
			cond = bpf.JumpGreaterOrEqual
		}
		return test{length(), cond, n}, err
	case "broadcast", "multicast":
		p.next()
		return casts("ether", word)
	}
	q, named := p.qualifiers()
	if len(named) > 0 && q == (qualifiers{}) { // a bare protocol, as icmp
		return named[0], nil
	}
	if p.peek() == "broadcast" || p.peek() == "multicast" {
		return casts(q.protocol, p.next())
	}
	if q.direction == "" && q.kind == "" && q.protocol != "" && !isID(p.peek()) { // a bare layer, as tcp
		return layer(q.protocol)
	}
	if q == (qualifiers{}) {
		q = p.last
		if q.kind == "" && q.protocol == "" && q.direction == "" {
			q.kind = "host"
		}
	}
	id := p.next()
	if !isID(id) {
		return nil, fmt.Errorf("%q lacks an address, a port or a protocol, or is not supported", strings.TrimSpace(word+" "+id))
	}
	p.last = q
	return q.condition(id)
}

// isID reports whether a word may be an id: not a word of the language.
func isID(word string) bool {
	return word != "" && !slices.Contains([]string{"and", "or", "not", "(", ")", "&&", "||", "!"}, word)
}

// qualifiers reads the words before an id. named is the condition of a bare protocol.
func (p *parser) qualifiers() (q qualifiers, named []expr) {
	if slices.Contains(layers, p.peek()) {
		q.protocol = p.next()
	} else if n, ok := protocols[p.peek()]; ok {
		p.next()
		return q, []expr{protocol(n.v4, n.v6)}
	}
	if p.take("src") {
		q.direction = "src"
		if len(p.words) > 1 && p.words[1] == "dst" && (p.words[0] == "or" || p.words[0] == "and") {
			q.direction = "src " + p.words[0] + " dst"
			p.words = p.words[2:]
		}
	} else if p.take("dst") {
		q.direction = "dst"
		if len(p.words) > 1 && p.words[1] == "src" && (p.words[0] == "or" || p.words[0] == "and") {
			q.direction = "src " + p.words[0] + " dst"
			p.words = p.words[2:]
		}
	}
	if slices.Contains(types, p.peek()) {
		q.kind = p.next()
	}
	return q, nil
}

// protocol is an IP packet of a protocol, -1 for none.
func protocol(v4, v6 int) expr {
	switch {
	case v6 < 0:
		return protocol4(uint32(v4))
	case v4 < 0:
		return protocol6(uint32(v6))
	}
	return any(protocol4(uint32(v4)), protocol6(uint32(v6)))
}

func layer(name string) (expr, error) {
	switch name {
	case "ip":
		return isIPv4(), nil
	case "ip6":
		return isIPv6(), nil
	case "arp":
		return etherType(etherARP), nil
	case "rarp":
		return etherType(etherRARP), nil
	case "ether":
		return nil, errors.New("ether needs a host or a protocol")
	}
	n := protocols[name]
	return protocol(n.v4, n.v6), nil
}

// label reads what may follow vlan and mpls.
func (p *parser) label(word string) (expr, error) {
	most := uint32(4095)
	if word == "mpls" {
		most = 1<<20 - 1
	}
	id := -1
	if word := p.peek(); word != "" && word[0] >= '0' && word[0] <= '9' {
		n, err := number(p.next(), most)
		if err != nil {
			return nil, err
		}
		id = int(n)
	}
	if word == "vlan" {
		return vlan(id), nil
	}
	e := any(etherType(0x8847), etherType(0x8848))
	if id >= 0 {
		e = all(e, equal(masked(at(atNetwork, 4), 0xfffff000), uint32(id)<<12))
	}
	return e, nil
}

// casts are broadcasts and multicasts of a layer.
func casts(protocol, word string) (expr, error) {
	ether := func() expr { return hardware(0, net.HardwareAddr{255, 255, 255, 255, 255, 255}) }
	group := equal([]bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 1}}, 1)
	switch {
	case protocol == "ether" && word == "broadcast":
		return ether(), nil
	case protocol == "ether":
		return group, nil
	case protocol == "ip" && word == "multicast":
		return all(isIPv4(), test{at(atNetwork+16, 1), bpf.JumpGreaterOrEqual, 224}), nil
	case protocol == "ip6" && word == "multicast":
		return all(isIPv6(), equal(at(atNetwork+24, 1), 255)), nil
	}
	return nil, fmt.Errorf("%s %s is not supported", protocol, word)
}

// condition is what qualifiers say of an id.
func (q qualifiers) condition(id string) (expr, error) {
	switch {
	case q.kind == "proto":
		return q.proto(id)
	case q.kind == "port" || q.kind == "portrange":
		return q.port(id)
	case q.protocol == "ether":
		a, err := net.ParseMAC(id)
		if err != nil || len(a) != 6 {
			return nil, fmt.Errorf("%q is not a MAC address", id)
		}
		return q.ends(hardware(6, a), hardware(0, a)), nil
	case q.protocol == "tcp" || q.protocol == "udp" || q.protocol == "sctp":
		return nil, fmt.Errorf("%s has ports, and no %s", q.protocol, id)
	}
	return q.host(id)
}

// ends joins the conditions on source and destination.
func (q qualifiers) ends(source, destination expr) expr {
	switch q.direction {
	case "src":
		return source
	case "dst":
		return destination
	case "src and dst":
		return both{source, destination}
	}
	return either{source, destination}
}

func (q qualifiers) host(id string) (expr, error) {
	p, err := netip.ParsePrefix(id)
	if err != nil || q.kind != "net" {
		a, err := netip.ParseAddr(id)
		if err != nil || a.Zone() != "" {
			return nil, fmt.Errorf("%q is not an IP address, or a network as 10.0.0.0/8 behind net; names are not resolved", id)
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	v4 := p.Addr().Is4()
	if p.Masked() != p {
		return nil, fmt.Errorf("%s is not a network: its address has bits behind the prefix; write %s", p, p.Masked())
	}
	if (q.protocol == "ip6") == v4 && q.protocol != "" {
		return nil, fmt.Errorf("%s is no address of %s", id, q.protocol)
	}
	if !v4 {
		return all(isIPv6(), q.ends(address6(atNetwork+8, p), address6(atNetwork+24, p))), nil
	}
	ip := all(isIPv4(), q.ends(address4(atNetwork+12, p), address4(atNetwork+16, p)))
	arp := func(kind uint32) expr {
		return all(etherType(kind), q.ends(address4(atNetwork+14, p), address4(atNetwork+24, p)))
	}
	switch q.protocol {
	case "ip":
		return ip, nil
	case "arp":
		return arp(etherARP), nil
	case "rarp":
		return arp(etherRARP), nil
	}
	return any(ip, arp(etherARP), arp(etherRARP)), nil
}

func (q qualifiers) port(id string) (expr, error) {
	low, high, isRange := strings.Cut(id, "-")
	if !isRange || q.kind == "port" {
		low, high = id, id
	}
	from, err := port(low)
	if err != nil {
		return nil, err
	}
	to, err := port(high)
	if err != nil {
		return nil, err
	}
	var transports []uint32
	switch q.protocol {
	case "tcp":
		transports = []uint32{protoTCP}
	case "udp":
		transports = []uint32{protoUDP}
	case "sctp":
		transports = []uint32{protoSCTP}
	case "", "ip", "ip6":
		transports = []uint32{protoTCP, protoUDP, protoSCTP}
	default:
		return nil, fmt.Errorf("%s has no ports", q.protocol)
	}
	var v4, v6 []expr
	for _, t := range transports {
		v4, v6 = append(v4, protocol4(t)), append(v6, protocol6(t))
	}
	ip := all(any(v4...), firstFragment(), q.ends(between(port4(0), min(from, to), max(from, to)), between(port4(2), min(from, to), max(from, to))))
	ip6 := all(any(v6...), q.ends(between(port6(0), min(from, to), max(from, to)), between(port6(2), min(from, to), max(from, to))))
	switch q.protocol {
	case "ip":
		return ip, nil
	case "ip6":
		return ip6, nil
	}
	return any(ip, ip6), nil
}

func port(text string) (uint32, error) {
	if n, ok := services[text]; ok {
		return uint32(n), nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is not a port", text)
	}
	return uint32(n), nil
}

func (q qualifiers) proto(id string) (expr, error) {
	id = strings.TrimPrefix(id, `\`)
	if q.direction != "" {
		return nil, fmt.Errorf("%s proto is not supported", q.direction)
	}
	if q.protocol == "ether" {
		switch id {
		case "ip", "ip6", "arp", "rarp":
			return layer(id)
		}
		n, err := number(id, 0xffff)
		return etherType(n), err
	}
	n, ok := numbers[id]
	if !ok {
		v, err := number(id, 255)
		if err != nil {
			return nil, fmt.Errorf("%q is not a protocol", id)
		}
		n = int(v)
	}
	switch q.protocol {
	case "ip":
		return protocol4(uint32(n)), nil
	case "ip6":
		return protocol6(uint32(n)), nil
	case "":
		return protocol(n, n), nil
	}
	return nil, fmt.Errorf("%s proto is not supported", q.protocol)
}

// number reads a decimal or hexadecimal number.
func number(text string, most uint32) (uint32, error) {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil || n > uint64(most) {
		return 0, fmt.Errorf("%q is not a number up to %d", text, most)
	}
	return uint32(n), nil
}
