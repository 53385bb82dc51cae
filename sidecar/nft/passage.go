package nft

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/wire"
)

// passageComment marks the accept rules in a device's chains.
const passageComment = "c9s transports"

// Passage are the packets that must pass a device's firewall.
type Passage struct {
	Underlay, Leg, Mesh string
	// Mark is on what the sidecar sends, DNS for one.
	Mark uint32
	// UDP are the tunnels' ports, TCP the status port.
	UDP []uint16
	TCP uint16
}

// Assert puts the accept rules at the top of every filtering base chain that the
// device has and that holds something back. Chains that have them there already
// are not touched; doubles are removed. It tells how many chains it changed.
func (p Passage) Assert() (int, error) {
	conn, err := nftables.New()
	if err != nil {
		return 0, fmt.Errorf("nftables: %w", err)
	}
	chains, err := conn.ListChains()
	if err != nil {
		return 0, fmt.Errorf("list nftables chains: %w", err)
	}
	changed := 0
	var errs []error
	for _, ch := range chains {
		want := p.rulesFor(ch)
		if len(want) == 0 {
			continue
		}
		did, err := assertChain(conn, ch, want)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if did {
			changed++
		}
	}
	return changed, errors.Join(errs...)
}

// rulesFor is what a chain must let pass, nothing where it is no concern: the
// sidecar's own, one that does not filter, or of another layer.
func (p Passage) rulesFor(ch *nftables.Chain) []rule {
	switch ch.Table.Family {
	case nftables.TableFamilyIPv4, nftables.TableFamilyIPv6, nftables.TableFamilyINet:
	default:
		return nil
	}
	if ch.Hooknum == nil || ch.Type != nftables.ChainTypeFilter || ch.Table.Name == TableName || ch.Table.Name == wire.TableName {
		return nil
	}
	in, out := p.in(), p.out()
	switch *ch.Hooknum {
	case *nftables.ChainHookPrerouting:
		return append(in, p.legs(iif)...)
	case *nftables.ChainHookInput:
		return append(in, p.legs(iif)...)
	case *nftables.ChainHookForward:
		return append(p.legs(iif), p.legs(oif)...)
	case *nftables.ChainHookOutput, *nftables.ChainHookPostrouting:
		return append(out, p.legs(oif)...)
	}
	return nil
}

func (p Passage) in() []rule {
	var rules []rule
	for _, n := range p.UDP {
		rules = append(rules, exprs(iif(p.Underlay), dport(unix.IPPROTO_UDP, n), accept()))
	}
	return append(rules,
		exprs(iif(p.Underlay), dport(unix.IPPROTO_TCP, p.TCP), accept()),
		// Answers to what the sidecar asks: DNS, and other Pods' stages.
		exprs(iif(p.Underlay), ctBit(expr.CtKeySTATE, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), accept()),
		exprs(iif(p.Underlay), l4proto(unix.IPPROTO_ICMPV6), accept()))
}

func (p Passage) out() []rule {
	var rules []rule
	for _, n := range p.UDP {
		rules = append(rules, exprs(oif(p.Underlay), sport(unix.IPPROTO_UDP, n), accept()),
			// A VXLAN's source port is a hash of the flow (RFC 7348, 5).
			exprs(oif(p.Underlay), dport(unix.IPPROTO_UDP, n), accept()))
	}
	return append(rules,
		exprs(oif(p.Underlay), sport(unix.IPPROTO_TCP, p.TCP), accept()),
		exprs(oif(p.Underlay), mark(p.Mark), accept()),
		exprs(oif(p.Underlay), l4proto(unix.IPPROTO_ICMPV6), accept()))
}

func (p Passage) legs(way func(string) rule) []rule {
	if p.Leg == "" {
		return nil
	}
	return []rule{exprs(way(p.Leg), accept()), exprs(way(p.Mesh), accept())}
}

func assertChain(conn *nftables.Conn, ch *nftables.Chain, want []rule) (bool, error) {
	have, err := conn.GetRules(ch.Table, ch)
	if err != nil {
		return false, fmt.Errorf("read the device's chain %s %s: %w", ch.Table.Name, ch.Name, err)
	}
	if len(have) == 0 && (ch.Policy == nil || *ch.Policy == nftables.ChainPolicyAccept) {
		return false, nil
	}
	ours := 0
	right := true
	for n, r := range have {
		if !isOurs(r) {
			continue
		}
		right = right && n == ours && ours < len(want)
		ours++
	}
	if right && ours == len(want) {
		return false, nil
	}
	for _, r := range have {
		if isOurs(r) {
			if err := conn.DelRule(r); err != nil {
				return false, fmt.Errorf("remove a double accept rule from %s %s: %w", ch.Table.Name, ch.Name, err)
			}
		}
	}
	for n := len(want) - 1; n >= 0; n-- {
		conn.InsertRule(&nftables.Rule{Table: ch.Table, Chain: ch, Exprs: want[n], UserData: userdata.AppendString(nil, userdata.TypeComment, passageComment)})
	}
	if err := conn.Flush(); err != nil {
		return false, fmt.Errorf("write accept rules into the device's chain %s %s: %w", ch.Table.Name, ch.Name, err)
	}
	return true, nil
}

func isOurs(r *nftables.Rule) bool {
	return bytes.Contains(r.UserData, []byte(passageComment))
}
