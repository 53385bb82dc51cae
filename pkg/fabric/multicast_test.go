package fabric

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// multicastPools are the pools with those of groups and rendezvous points.
var multicastPools = strings.Replace(pools, "  asns:", "  groups: {addresses: [239.1.0.0/24]}\n  rendezvous: {addresses: [10.0.8.0/30]}\n  asns:", 1)

const bumMulticast = "bum: {replication: multicast, groups: groups, rendezvous: {match: {groups: [spine]}, addresses: rendezvous}}\n"

// TestMulticast holds the configurations of a leaf and a spine of each kind that replicates by
// multicast.
func TestMulticast(t *testing.T) {
	for name, k := range kinds {
		if !k.has(FeatureMulticast) {
			continue
		}
		var out strings.Builder
		for _, v := range []struct {
			underlay, overlay Feature
			protocols         string
		}{{FeatureOSPF, FeatureIBGP, overOSPF}, {FeatureISIS, FeatureIBGP, overISIS}, {FeatureEBGP, FeatureEVPN, overEBGP}} {
			if !k.has(v.underlay) || !k.has(v.overlay) {
				continue
			}
			text := services
			if !k.has(FeatureGateway) {
				text = strings.Replace(text, ", gateway: 10.10.10.1/24, routes: [10.10.0.0/16]", "", 1)
			}
			l, plan := planned(t, clos(name, 2, 2, portsOf(name)), multicastPools+v.protocols+vteps+bumMulticast+text, nil)
			for _, n := range plan.Nodes {
				if n.Name == "leaf2" || n.Name == "spine2" {
					continue
				}
				fmt.Fprintf(&out, "==> %s: %s\n%s", v.underlay, n.Name, n.Config)
				for _, e := range l.Node(n.Name).Exec {
					fmt.Fprintf(&out, "==> %s: %s, script\n%s", v.underlay, n.Name, e.Argv[2])
				}
				if name == "linux" {
					for _, m := range l.Node(n.Name).Mounts {
						if m.Target == "/etc/frr/daemons" {
							fmt.Fprintf(&out, "==> %s: %s, daemons\n%s", v.underlay, n.Name, l.Files[m.File.Digest])
						}
					}
				}
			}
		}
		golden(t, filepath.Join("testdata", "multicast-"+name+".txt"), out.String())
	}
}

// TestMulticastPlan: each service has a group and the rendezvous points share an address, which
// stay when the fabric grows. A service that comes first by its name takes no other one's group.
func TestMulticastPlan(t *testing.T) {
	groupsOf := func(plan *Plan) string {
		var out []string
		for _, s := range plan.Nodes[0].Services {
			out = append(out, fmt.Sprintf("%s=%s", s.Name, s.Group))
		}
		return plan.Rendezvous.String() + " " + strings.Join(out, " ")
	}
	file := multicastPools + overOSPF + vteps + bumMulticast + services
	small, plan := planned(t, clos("frr", 2, 2, eth), file, nil)
	if got, want := groupsOf(plan), "10.0.8.1 red=239.1.0.1 blue=239.1.0.2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, n := range plan.Nodes {
		if spine := strings.HasPrefix(n.Name, "spine"); n.Rendezvous != spine {
			t.Errorf("%s is a rendezvous point: %t", n.Name, n.Rendezvous)
		}
	}
	larger := strings.Replace(file, "services:\n", "services:\n  - {name: amber, vlan: 5, vni: 10005}\n", 1)
	_, grown := planned(t, clos("frr", 3, 4, eth), larger, &small.Allocations)
	if got, want := groupsOf(grown), "10.0.8.1 amber=239.1.0.3 red=239.1.0.1 blue=239.1.0.2"; got != want {
		t.Errorf("after growth: got %s, want %s", got, want)
	}
	_, ingress := planned(t, clos("frr", 2, 2, eth), file[:strings.Index(file, "bum:")]+"bum: {replication: ingress}\n"+services, nil)
	_, without := planned(t, clos("frr", 2, 2, eth), pools+overOSPF+vteps+services, nil)
	for i, n := range ingress.Nodes {
		if n.Config != without.Nodes[i].Config || strings.Contains(n.Config, "pim") {
			t.Errorf("%s: ingress replication, written or not:\n%s\n%s", n.Name, n.Config, without.Nodes[i].Config)
		}
	}
}

// TestMulticastGrowth: with ports in advance, a new leaf changes no other member.
func TestMulticastGrowth(t *testing.T) {
	file := strings.Replace(multicastPools+overOSPF+vteps+bumMulticast+services, "links: links", "links: links, ports: 8", 1)
	var before *lab.Lab
	configs := map[string]string{}
	for _, leaves := range []int{4, 5} {
		var previous *lab.Allocations
		if before != nil {
			previous = &before.Allocations
		}
		l, plan := planned(t, clos("frr", 2, leaves, eth), file, previous)
		for _, n := range plan.Nodes {
			if old, had := configs[n.Name]; had && old != n.Config {
				t.Errorf("%s has another configuration", n.Name)
			}
			configs[n.Name] = n.Config
		}
		before = l
	}
}

// TestManyGroups: the kernel's limits of memberships and of interfaces.
func TestManyGroups(t *testing.T) {
	many := "services:\n"
	for i := range 21 {
		many += fmt.Sprintf("  - {name: v%d, vlan: %d, vni: %d}\n", i, i+10, i+10010)
	}
	l, _ := planned(t, clos("frr", 1, 2, eth), multicastPools+overOSPF+vteps+bumMulticast+many, nil)
	if script := l.Node("leaf1").Exec[0].Argv[2]; !strings.Contains(script, "\necho 21 >/proc/sys/net/ipv4/igmp_max_memberships\n") {
		t.Error(script)
	}
	_, plan := planned(t, clos("frr", 1, 30, eth), multicastPools+overOSPF+vteps+bumMulticast+services, nil)
	if n := len(plan.Nodes[30].MulticastLinks()); n != 30 {
		t.Errorf("%d links", n)
	}
	_, _, diags := compiled(t, clos("frr", 1, 31, eth), multicastPools+overOSPF+vteps+bumMulticast+services, nil)
	if want := `fabric.yaml:14:20: error: node "spine1" has 31 links, and kind frr routes multicast over 30 at most [fabric-unsupported]`; len(diags) != 1 || diags[0].String() != want {
		t.Errorf("got %v, want %s", diags, want)
	}
}

// TestMixedRendezvous: rendezvous points of two kinds, which do not understand each other.
func TestMixedRendezvous(t *testing.T) {
	topo := strings.Replace(clos("cisco_n9kv", 2, 2, portsOf("cisco_n9kv")), "spine2: {kind: cisco_n9kv", "spine2: {kind: frr", 1)
	_, _, diags := compiled(t, topo, multicastPools+overOSPF+vteps+bumMulticast, nil)
	const want = `error: rendezvous points tell each other the sources by PIM (RFC 4610) on node "spine1" of kind cisco_n9kv, and by MSDP on node "spine2" of kind frr`
	if len(diags) != 1 || !strings.Contains(diags[0].String(), want) {
		t.Errorf("got %v, want %s", diags, want)
	}
}

// TestBadMulticast: what is wrong with bum.
func TestBadMulticast(t *testing.T) {
	topo := clos("frr", 1, 2, eth)
	all := multicastPools + overOSPF + vteps
	for name, c := range map[string]struct{ topo, file, want string }{
		"no VTEPs":      {topo, multicastPools + overOSPF + "bum: {replication: ingress}\n", "13:6 fabric-invalid replication of broadcast frames needs VTEPs"},
		"empty":         {topo, all + "bum: {}\n", "14:6 fabric-invalid replication is missing"},
		"a word":        {topo, all + "bum: ingress\n", "14:6 fabric-invalid bum must be a mapping, not the text \"ingress\""},
		"word":          {topo, all + "bum: {replication: pim}\n", "14:20 fabric-invalid replication is \"pim\""},
		"ingress":       {topo, all + strings.Replace(bumMulticast, "multicast", "ingress", 1), "14:37 fabric-invalid replication by ingress has no multicast groups|14:57 fabric-invalid replication by ingress has no rendezvous points"},
		"nothing":       {topo, all + "bum: {replication: multicast}\n", "14:6 fabric-invalid groups is missing|14:6 fabric-invalid replication by multicast needs rendezvous points"},
		"no match":      {topo, all + "bum: {replication: multicast, groups: groups, rendezvous: {}}\n", "14:59 fabric-invalid addresses is missing|14:59 fabric-invalid rendezvous has no match"},
		"kind of pool":  {topo, all + strings.Replace(bumMulticast, "groups: groups", "groups: links", 1), "14:39 fabric-invalid groups needs addresses, and pool \"links\" has none"},
		"unicast":       {topo, all + strings.Replace(bumMulticast, "groups: groups", "groups: tunnels", 1), "5:25 fabric-invalid 10.0.4.0/22 is not a range of multicast groups, which are in 224.0.0.0/4"},
		"of a link":     {topo, strings.Replace(all, "239.1.0.0/24", "224.0.0.0/16, 232.1.0.0/16, 224.0.0.0/3", 1) + bumMulticast, "7:24 fabric-invalid 224.0.0.0/16 overlaps 224.0.0.0/24, which routers do not forward|7:38 fabric-invalid 232.1.0.0/16 overlaps 232.0.0.0/8, which is for source-specific multicast and has no rendezvous points|7:52 fabric-invalid 224.0.0.0/3 is not a range of multicast groups, which are in 224.0.0.0/4|7:52 fabric-invalid 224.0.0.0/3 overlaps 224.0.0.0/16 at fabric.yaml:7:24"},
		"same pool":     {topo, all + strings.Replace(bumMulticast, "addresses: rendezvous", "addresses: loopbacks", 1), "14:97 fabric-invalid rendezvous and members use the same pool \"loopbacks\""},
		"tunnels' pool": {topo, all + strings.Replace(bumMulticast, "addresses: rendezvous", "addresses: tunnels", 1), "14:97 fabric-invalid rendezvous and vteps use the same pool \"tunnels\""},
		"groups' pool":  {topo, all + strings.Replace(bumMulticast, "addresses: rendezvous", "addresses: groups", 1), "14:97 fabric-invalid rendezvous and groups use the same pool \"groups\""},
		"unnumbered":    {topo, multicastPools + unnumbered + vteps + bumMulticast, "14:20 fabric-invalid PIM needs links with IPv4 addresses, and those of the underlay are unnumbered"},
		"nobody":        {topo, all + strings.Replace(bumMulticast, "[spine]", "[x]", 1), "14:67 fabric-no-match rendezvous matches no member of the fabric"},
		"a host":        {topo, all + strings.Replace(bumMulticast, "[spine]", "[red]", 1), "14:67 fabric-no-match rendezvous matches no member of the fabric"},
		"exhausted":     {topo, strings.Replace(all, "239.1.0.0/24", "239.1.0.0/32", 1) + bumMulticast + services, "14:39 pool-exhausted the pool of values of pool \"groups\" has room for 1, and the lab needs more"},
		"a customer": {topo, all + strings.Replace(bumMulticast, "groups: [spine]", "names: [spine1, leaf1]", 1) + "customers: {match: {names: [spine1]}, asns: asns}\n",
			"14:67 fabric-invalid node \"spine1\" is a customer and a rendezvous point|15:20 fabric-invalid node \"spine1\" is a customer and a reflector"},
		"kind": {clos("nokia_srlinux", 1, 1, portsOf("nokia_srlinux")), all + bumMulticast,
			"14:20 fabric-unsupported the fabric configuration of kind nokia_srlinux does not support multicast, and node \"leaf1\" needs it|14:20 fabric-unsupported the fabric configuration of kind nokia_srlinux does not support multicast, and node \"spine1\" needs it"},
		"ingress for all": {topo, pools + overOSPF + vteps + "bum: {replication: ingress}\n", ""},
		"nothing to do":   {topo, all + bumMulticast + services, ""},
	} {
		_, _, diags := compiled(t, c.topo, c.file, nil)
		if got := places(diags); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}
