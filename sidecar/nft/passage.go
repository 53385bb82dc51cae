package nft

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"

	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/passage"
)

// passageComment marks the accept rules in a device's chains.
const passageComment = "c9s transports"

// AssertPassage puts the accept rules at the top of every filtering base chain that
// the device has and that holds something back. Chains that have them there already
// are not touched; doubles are removed. It tells how many chains it changed.
func AssertPassage(p passage.Passage) (int, error) {
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
		if !filters(ch) {
			continue
		}
		var want []rule
		for _, r := range p.Rules(passage.Hook(*ch.Hooknum)) {
			want = append(want, accepting(r))
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

// filters tells whether a chain may hold back what must pass; the sidecar's own,
// one that does not filter, or one of another layer does not.
func filters(ch *nftables.Chain) bool {
	switch ch.Table.Family {
	case nftables.TableFamilyIPv4, nftables.TableFamilyIPv6, nftables.TableFamilyINet:
	default:
		return false
	}
	return ch.Hooknum != nil && passage.Hook(*ch.Hooknum) < passage.Hooks && ch.Type == nftables.ChainTypeFilter && ch.Table.Name != TableName && ch.Table.Name != wire.TableName
}

func accepting(r passage.Rule) rule {
	var parts []rule
	if r.In != "" {
		parts = append(parts, iif(r.In))
	}
	if r.Out != "" {
		parts = append(parts, oif(r.Out))
	}
	if r.Protocol != 0 {
		parts = append(parts, l4proto(r.Protocol))
	}
	if r.SourcePort != 0 {
		parts = append(parts, port(r.SourcePort, false))
	}
	if r.DestinationPort != 0 {
		parts = append(parts, port(r.DestinationPort, true))
	}
	if r.Answers {
		parts = append(parts, ctBit(expr.CtKeySTATE, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED))
	}
	if r.Mark != 0 {
		parts = append(parts, mark(r.Mark))
	}
	return exprs(append(parts, accept())...)
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
