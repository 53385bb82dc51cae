package contract

import (
	"net/netip"
	"testing"
)

// TestOutside: the resolver of a device asks outside the lab only if the device reaches
// something there.
func TestOutside(t *testing.T) {
	rule := func(prefix string, allow bool) ExternalRule {
		return ExternalRule{Prefix: netip.MustParsePrefix(prefix), Allow: allow}
	}
	four, six := netip.MustParsePrefix("172.20.20.2/24"), netip.MustParsePrefix("3fff::2/64")
	for name, tt := range map[string]struct {
		mgmt Mgmt
		want bool
	}{
		"open":                        {Mgmt{IPv4: four, ExternalAccess: true}, true},
		"closed":                      {Mgmt{IPv4: four, IPv6: six}, false},
		"a prefix closed":             {Mgmt{IPv4: four, ExternalAccess: true, External: []ExternalRule{rule("10.0.0.0/8", false)}}, true},
		"a prefix open":               {Mgmt{IPv4: four, External: []ExternalRule{rule("10.0.0.0/8", true)}}, true},
		"open in a family without it": {Mgmt{IPv4: four, External: []ExternalRule{rule("2001:db8::/32", true)}}, false},
		"all of IPv4 closed":          {Mgmt{IPv4: four, IPv6: six, ExternalAccess: true, External: []ExternalRule{rule("0.0.0.0/0", false)}}, true},
		"all closed":                  {Mgmt{IPv4: four, IPv6: six, ExternalAccess: true, External: []ExternalRule{rule("0.0.0.0/0", false), rule("::/0", false)}}, false},
		"all but one closed":          {Mgmt{IPv4: four, ExternalAccess: true, External: []ExternalRule{rule("192.0.2.1/32", true), rule("0.0.0.0/0", false)}}, true},
		"no network":                  {Mgmt{ExternalAccess: true}, false},
	} {
		if got := tt.mgmt.Outside(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
