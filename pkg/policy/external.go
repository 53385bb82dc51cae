package policy

import (
	"cmp"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// ExternalRule says whether nodes reach addresses outside the lab. Of several rules, that of
// the longest prefix counts.
type ExternalRule struct {
	// Prefixes are IPv4 and IPv6 prefixes; /32 or /128 for one address.
	Prefixes []topology.Str `json:"prefixes"`
	// Allow says whether nodes may open connections to them.
	Allow topology.Bool `json:"allow"`
}

// external reads and checks a list of rules. The result is sorted, the longest prefixes first.
// An empty list is not nil: it lifts the rules that nodes would have without it.
func (r *reader) external(n *yaml.Node) []lab.ExternalRule {
	var rules []ExternalRule
	if !r.decode(n, "external", &rules) || strictyaml.IsNull(n) {
		return nil
	}
	out := []lab.ExternalRule{}
	lines := map[netip.Prefix]int{}
	for i, rule := range rules {
		at := r.Deref(n.Content[i])
		if len(rule.Prefixes) == 0 {
			r.errorf(at, "add prefixes: [192.0.2.0/24]", "a rule of external has no prefixes")
		}
		if !rule.Allow.Set {
			r.errorf(at, "add allow: false", "a rule of external does not say whether it allows")
		}
		for _, text := range rule.Prefixes {
			p, ok := r.externalPrefix(text)
			if !ok {
				continue
			}
			if line := lines[p]; line > 0 {
				r.wrong(text.Pos, "remove one of the two", "external has prefix %s twice (first at line %d)", p, line)
				continue
			}
			lines[p] = text.Pos.Line
			out = append(out, lab.ExternalRule{Prefix: p, Allow: rule.Allow.Value})
		}
	}
	slices.SortFunc(out, func(a, b lab.ExternalRule) int {
		return cmp.Or(cmp.Compare(b.Prefix.Bits(), a.Prefix.Bits()), a.Prefix.Addr().Compare(b.Prefix.Addr()))
	})
	return out
}

func (r *reader) externalPrefix(text topology.Str) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text.Value)
	switch {
	case err != nil || p.Addr().Is4In6():
		r.wrong(text.Pos, "write it like 192.0.2.0/24, 192.0.2.1/32 or 2001:db8::/32", "%q is not a prefix", text.Value)
	case p != p.Masked():
		r.wrong(text.Pos, "write "+p.Masked().String(), "prefix %s has bits of the host part", p)
	default:
		return p, true
	}
	return p, false
}
