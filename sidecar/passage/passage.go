// Package passage says which packets must pass whatever firewall a device makes in
// the Pod's network namespace, so that it cannot cut what the sidecar carries.
package passage

import "golang.org/x/sys/unix"

// Passage are the interfaces and ports that the sidecar uses.
type Passage struct {
	// Underlay is the cluster's interface; Leg and Mesh are those of the management
	// network, "" for none.
	Underlay, Leg, Mesh string
	// Mark is on what the sidecar sends, DNS for one.
	Mark uint32
	// UDP are the tunnels' ports, TCP the status port.
	UDP []uint16
	TCP uint16
}

// Hook is a place on a packet's way (enum nf_inet_hooks of linux/netfilter.h).
type Hook uint32

// The hooks of IP.
const (
	Prerouting Hook = iota
	Input
	Forward
	Output
	Postrouting
	Hooks // how many there are
)

// Rule accepts the packets that match all of it; zero fields match any.
type Rule struct {
	In, Out string
	// Protocol is an IP protocol's number; it is set where a port is.
	Protocol                    byte
	SourcePort, DestinationPort uint16
	// Answers matches established and related connections.
	Answers bool
	Mark    uint32
}

// Rules are those that belong at the top of a chain at the hook.
func (p Passage) Rules(hook Hook) []Rule {
	switch hook {
	case Prerouting, Input:
		return append(p.in(), p.legs(true, false)...)
	case Forward:
		return p.legs(true, true)
	case Output, Postrouting:
		return append(p.out(), p.legs(false, true)...)
	}
	return nil
}

func (p Passage) in() []Rule {
	var rules []Rule
	for _, n := range p.UDP {
		rules = append(rules, Rule{In: p.Underlay, Protocol: unix.IPPROTO_UDP, DestinationPort: n})
	}
	return append(rules,
		Rule{In: p.Underlay, Protocol: unix.IPPROTO_TCP, DestinationPort: p.TCP},
		// Answers to what the sidecar asks: DNS, and other Pods' stages.
		Rule{In: p.Underlay, Answers: true},
		Rule{In: p.Underlay, Protocol: unix.IPPROTO_ICMPV6})
}

func (p Passage) out() []Rule {
	var rules []Rule
	for _, n := range p.UDP {
		rules = append(rules, Rule{Out: p.Underlay, Protocol: unix.IPPROTO_UDP, SourcePort: n},
			// A VXLAN's source port is a hash of the flow (RFC 7348, 5).
			Rule{Out: p.Underlay, Protocol: unix.IPPROTO_UDP, DestinationPort: n})
	}
	return append(rules,
		Rule{Out: p.Underlay, Protocol: unix.IPPROTO_TCP, SourcePort: p.TCP},
		Rule{Out: p.Underlay, Mark: p.Mark},
		Rule{Out: p.Underlay, Protocol: unix.IPPROTO_ICMPV6})
}

func (p Passage) legs(in, out bool) []Rule {
	if p.Leg == "" {
		return nil
	}
	var rules []Rule
	if in {
		rules = append(rules, Rule{In: p.Leg}, Rule{In: p.Mesh})
	}
	if out {
		rules = append(rules, Rule{Out: p.Leg}, Rule{Out: p.Mesh})
	}
	return rules
}
