package convert

import (
	"net/netip"
	"strings"
	"testing"
)

func TestCopyLab(t *testing.T) {
	p := netip.MustParsePrefix
	both := Copy{
		Name: "class-07",
		IPv4: Move{p("172.20.20.0/24"), p("172.20.27.0/24")},
		IPv6: Move{p("3fff:172:20:20::/64"), p("3fff:172:20:27::/64")},
	}
	for name, c := range map[string]struct{ in, want, err string }{
		"no management network": {
			"# a lab\nname: demo # its name\ntopology:\n  nodes:\n    R1: {kind: linux}\n",
			"# a lab\nname: class-07 # its name\nmgmt: {ipv4-subnet: \"172.20.27.0/24\", ipv6-subnet: \"3fff:172:20:27::/64\"}\ntopology:\n  nodes:\n    R1: {kind: linux}\n", "",
		},
		"addresses move with their subnets": {
			"name: \"demo\"\nmgmt:\n  network: lab\n  ipv4-subnet: 172.20.20.0/24 # v4\n  ipv4-gw: 172.20.20.254\n  ipv4-range: 172.20.20.128/25\n  ipv6-subnet: '3fff:172:20:20::/64'\ntopology:\n  nodes:\n    R1:\n      mgmt-ipv4: 172.20.20.11\n      mgmt-ipv6: 3fff:172:20:20::11\n    R2: {mgmt-ipv4: 172.20.20.12}\n",
			"name: class-07\nmgmt:\n  network: lab\n  ipv4-subnet: \"172.20.27.0/24\" # v4\n  ipv4-gw: \"172.20.27.254\"\n  ipv4-range: \"172.20.27.128/25\"\n  ipv6-subnet: \"3fff:172:20:27::/64\"\ntopology:\n  nodes:\n    R1:\n      mgmt-ipv4: \"172.20.27.11\"\n      mgmt-ipv6: \"3fff:172:20:27::11\"\n    R2: {mgmt-ipv4: \"172.20.27.12\"}\n", "",
		},
		"keys are added to the block": {
			"name: a\nmgmt: {network: lab}\ntopology: {}\n",
			"name: class-07\nmgmt: {ipv4-subnet: \"172.20.27.0/24\", ipv6-subnet: \"3fff:172:20:27::/64\", network: lab}\ntopology: {}\n", "",
		},
		"lines of Windows": {
			"name: a\r\ntopology: {}\r\n",
			"name: class-07\r\nmgmt: {ipv4-subnet: \"172.20.27.0/24\", ipv6-subnet: \"3fff:172:20:27::/64\"}\r\ntopology: {}\r\n", "",
		},
		"JSON": {
			`{"name": "a", "topology": {"nodes": {"R1": {"mgmt-ipv4": "172.20.20.9"}}}}`,
			`{"name": class-07, "mgmt": {ipv4-subnet: "172.20.27.0/24", ipv6-subnet: "3fff:172:20:27::/64"}, "topology": {"nodes": {"R1": {"mgmt-ipv4": "172.20.27.9"}}}}`, "",
		},
		"an address elsewhere": {"name: a\ntopology:\n  nodes:\n    R1: {mgmt-ipv4: 10.0.0.1}\n", "", `line 4: mgmt-ipv4: "10.0.0.1" is not an address in 172.20.20.0/24`},
		"a variable":           {"name: a\ntopology:\n  nodes:\n    R1: {mgmt-ipv4: \"${ADDR}\"}\n", "", `line 4: mgmt-ipv4: "${ADDR}" is not an address in 172.20.20.0/24`},
		"an anchor":            {"name: &n demo\ntopology: {prefix: *n}\n", "", "line 1: name: its value cannot be replaced: write it on one line, without an anchor"},
		"an empty block":       {"name: a\nmgmt:\ntopology: {}\n", "", "line 2: mgmt has no keys: remove it"},
		"no YAML":              {"name: [\n", "", "yaml: "},
		"no topology":          {"- a\n", "", "it is not a topology"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := CopyLab(c.in, both)
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%v\ngot  %q\nwant %q", err, got, c.want)
			}
		})
	}
	if got, err := CopyLab("name: a\ntopology: {}\n", Copy{Name: "no"}); err != nil || got != "name: \"no\"\ntopology: {}\n" {
		t.Errorf("only the name: %q, %v", got, err)
	}
}
