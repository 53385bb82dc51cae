package fabric

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const accessLinks = "access: {hosts: {groups: [red, blue]}, links: hosts, routes: [10.0.0.0/8]}\n"

// accessPools are the pools with one for links to hosts.
var accessPools = strings.Replace(pools, "  asns:", "  hosts: {prefixes: [10.128.0.0/16], length: 31}\n  asns:", 1)

// TestAccess holds the configuration of a leaf with a routed port of each kind, for every
// protocol that the kind has.
func TestAccess(t *testing.T) {
	for name, k := range kinds {
		var out strings.Builder
		for _, v := range []struct {
			feature   Feature
			protocols string
		}{{FeatureOSPF, overOSPF}, {FeatureISIS, overISIS}, {FeatureEBGP, overEBGP}} {
			if !k.has(v.feature) {
				continue
			}
			l, plan := planned(t, clos(name, 1, 2, portsOf(name)), accessPools+strings.SplitAfter(v.protocols, "\n")[0]+accessLinks, nil)
			fmt.Fprintf(&out, "==> %s: %s\n%s", v.feature, plan.Nodes[0].Name, plan.Nodes[0].Config)
			host := l.Node("host1")
			if a := host.Endpoints[0].IPv4; a.String() != "10.128.0.1/31" || len(host.Exec) != 1 || host.Exec[0].Raw != "ip route replace 10.0.0.0/8 via 10.128.0.0 dev eth1" {
				t.Errorf("%s: host1 has %s and the commands %v", name, a, host.Exec)
			}
			if set := l.Node("leaf1").Endpoints[1].IPv4.IsValid(); set == k.addresses {
				t.Errorf("%s: c9s sets the address of the port: %t", name, set)
			}
		}
		golden(t, filepath.Join("testdata", "access-"+name+".txt"), out.String())
	}
}

// TestWrittenAccess: addresses of the topology stay, and no other link gets their subnet.
func TestWrittenAccess(t *testing.T) {
	topo := strings.Replace(clos("frr", 1, 2, eth), `["leaf2:eth2", "host2:eth1"]`, "[\"leaf2:eth2\", \"host2:eth1\"]\n      ipv4: [10.128.0.0/31, 10.128.0.1/31]", 1)
	l, _ := planned(t, topo, accessPools+unnumbered+accessLinks, nil)
	if a, b := l.Node("host1").Endpoints[0].IPv4, l.Node("host2").Endpoints[0].IPv4; a.String() != "10.128.0.3/31" || b.String() != "10.128.0.1/31" {
		t.Errorf("host1 has %s, host2 %s", a, b)
	}
}

// TestCustomers holds the configurations of a provider's network: customers speak eBGP to their
// edge, and all routers of the provider know the customers' routes.
func TestCustomers(t *testing.T) {
	var topo strings.Builder
	topo.WriteString("name: isp\ntopology:\n  kinds: {frr: {image: frr}, linux: {image: host}}\n  nodes:\n")
	for _, name := range []string{"p1", "pe1", "pe2", "ce1", "ce2"} {
		fmt.Fprintf(&topo, "    %s: {kind: frr, group: %s}\n", name, strings.TrimRight(name, "12"))
	}
	topo.WriteString(`    host1: {kind: linux, group: red}
  links:
    - endpoints: ["pe1:eth1", "p1:eth1"]
    - endpoints: ["pe2:eth1", "p1:eth2"]
    - endpoints: ["pe1:eth2", "ce1:eth1"]
    - endpoints: ["pe2:eth2", "ce2:eth1"]
    - endpoints: ["ce1:eth2", "host1:eth1"]
`)
	file := strings.Replace(accessPools, "[spine, leaf]", "[p, pe, ce]", 1) +
		"underlay: {protocol: isis, links: links}\noverlay: {protocol: ibgp, asn: 64500, reflectors: {names: [p1]}}\ncustomers: {match: {groups: [ce]}, asns: asns}\n" +
		accessLinks + "prefer: {ce2: {asn: 65100}}\n"
	_, plan := planned(t, topo.String(), file, nil)
	var out strings.Builder
	for _, n := range plan.Nodes {
		fmt.Fprintf(&out, "==> %s: %s\n%s", n.Name, n.Role, n.Config)
	}
	golden(t, filepath.Join("testdata", "customers.txt"), out.String())
	_, _, diags := compiled(t, strings.Replace(topo.String(), "{kind: frr, group: p}", "{kind: vyosnetworks_vyos, image: v, group: p}", 1), file, nil)
	if len(diags) != 1 || !strings.Contains(diags[0].String(), `fabric.yaml:12:20: error: the fabric configuration of kind vyosnetworks_vyos does not support customers, and node "p1" needs it`) {
		t.Errorf("a kind without the feature: %v", diags)
	}
}
