package fabric

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

var update = flag.Bool("update", false, "write the golden files, the schema and the tables of the documentation")

// compiled compiles a topology with a fabric file. The diagnostics are those of the fabric, and
// errors.
func compiled(t *testing.T, topo, file string, previous *lab.Allocations) (*lab.Lab, *Fabric, []diag.Diagnostic) {
	t.Helper()
	f, diags := Load("fabric.yaml", []byte(file))
	if f == nil {
		return nil, nil, diags
	}
	src := &topology.Source{Name: "t.clab.yml", Base: "t.clab.yml", Dir: t.TempDir(), Data: []byte(topo)}
	parsed, more := topology.Load(t.Context(), src, topology.Options{})
	if parsed == nil {
		t.Fatal(more)
	}
	l, all := compile.Compile(t.Context(), parsed, compile.Options{Fabric: f, Previous: previous})
	for _, d := range slices.Concat(more, all) {
		if d.Severity == diag.Error || strings.HasPrefix(string(d.Code), "fabric-") || strings.HasPrefix(string(d.Code), "value-") {
			diags = append(diags, d)
		}
	}
	return l, f, diags
}

// planned is compiled for a fabric that has nothing wrong.
func planned(t *testing.T, topo, file string, previous *lab.Allocations) (*lab.Lab, *Plan) {
	t.Helper()
	l, f, diags := compiled(t, topo, file, previous)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	return l, f.Plan()
}

// clos is a topology with spines, and leaves with a host each. ports returns the name of a
// port of a router, from 1.
func clos(kind string, spines, leaves int, ports func(int) string) string {
	var nodes, links strings.Builder
	image := "example.net/" + kind + ":1"
	if kind == "linux" {
		image = "example.net/frr:1"
	}
	for i := 1; i <= spines; i++ {
		fmt.Fprintf(&nodes, "    spine%d: {kind: %s, group: spine, image: %q}\n", i, kind, image)
	}
	for i := 1; i <= leaves; i++ {
		fmt.Fprintf(&nodes, "    leaf%d: {kind: %s, group: leaf, image: %q}\n", i, kind, image)
		fmt.Fprintf(&nodes, "    host%d: {kind: linux, group: %s, image: \"example.net/host:1\"}\n", i, []string{"blue", "red"}[i%2])
		for s := 1; s <= spines; s++ {
			fmt.Fprintf(&links, "    - endpoints: [\"leaf%d:%s\", \"spine%d:%s\"]\n", i, ports(s), s, ports(i))
		}
		fmt.Fprintf(&links, "    - endpoints: [\"leaf%d:%s\", \"host%d:eth1\"]\n", i, ports(spines+1), i)
	}
	return "name: dc\ntopology:\n  nodes:\n" + nodes.String() + "  links:\n" + links.String()
}

func eth(i int) string { return fmt.Sprintf("eth%d", i) }

const (
	pools = `apiVersion: c9s.dev/v1
kind: Fabric
pools:
  loopbacks: {addresses: [10.0.0.0/22]}
  tunnels: {addresses: [10.0.4.0/22]}
  links: {prefixes: [10.1.0.0/19], length: 31}
  asns: {numbers: [65001-65534]}
members: {match: {groups: [spine, leaf]}, loopbacks: loopbacks}
`
	vteps = `vteps: {match: {groups: [leaf]}, addresses: tunnels, gatewayMAC: "02:00:5e:00:00:01"}
`
	services = `services:
  - {name: red, vlan: 10, vni: 10010, hosts: {groups: [red]}, gateway: 10.10.10.1/24, routes: [10.10.0.0/16]}
  - {name: blue, vlan: 20, vni: 10020, hosts: {groups: [blue]}}
`
	overOSPF   = "underlay: {protocol: ospf, links: links}\noverlay: {protocol: ibgp, asn: 65000, reflectors: {groups: [spine]}}\n"
	overISIS   = "underlay: {protocol: isis, links: links}\noverlay: {protocol: ibgp, asn: 65000, reflectors: {groups: [spine]}}\n"
	overEBGP   = "underlay: {protocol: ebgp, links: links, asns: asns, sharedASN: [spine]}\noverlay: {protocol: ebgp}\n"
	unnumbered = "underlay: {protocol: ebgp, links: unnumbered, asns: asns, sharedASN: [spine]}\noverlay: {protocol: ebgp}\n"
)

// TestGolden holds the configurations of a leaf and a spine of each kind, for every protocol
// that the kind has.
func TestGolden(t *testing.T) {
	for name, k := range kinds {
		var out strings.Builder
		for _, variant := range []struct {
			title, protocols  string
			underlay, overlay Feature
		}{
			{"OSPF and iBGP", overOSPF, FeatureOSPF, FeatureIBGP}, {"IS-IS and iBGP", overISIS, FeatureISIS, FeatureIBGP},
			{"eBGP", overEBGP, FeatureEBGP, FeatureEVPN}, {"eBGP, unnumbered", unnumbered, FeatureUnnumbered, FeatureEVPN},
		} {
			if !k.has(variant.underlay) {
				continue
			}
			protocols, rest := variant.protocols, vteps
			if !k.has(variant.overlay) {
				protocols, rest = strings.SplitAfter(protocols, "\n")[0], ""
			}
			if k.has(FeatureServices) && rest != "" {
				text := services
				if !k.has(FeatureGateway) {
					text = strings.Replace(text, ", gateway: 10.10.10.1/24, routes: [10.10.0.0/16]", "", 1)
				}
				rest += text
			}
			_, plan := planned(t, clos(name, 1, 2, portsOf(name)), pools+protocols+rest, nil)
			for _, n := range plan.Nodes {
				if n.Name == "leaf2" {
					continue
				}
				fmt.Fprintf(&out, "==> %s: %s\n%s", variant.title, n.Name, n.Config)
				if n.kind.script != "" && len(n.Services) > 0 {
					script, err := n.render(n.kind.script)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&out, "==> %s: %s, script\n%s", variant.title, n.Name, script)
				}
			}
		}
		golden(t, filepath.Join("testdata", name+".txt"), out.String())
	}
}

// portsOf returns how a kind's ports are written in a topology.
func portsOf(kind string) func(int) string {
	switch kind {
	case "nokia_srlinux":
		return func(i int) string { return fmt.Sprintf("e1-%d", i) }
	case "cisco_xrd":
		return func(i int) string { return fmt.Sprintf("Gi0-0-0-%d", i-1) }
	}
	return eth
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; run with -update and read the change: -want +got\n%s", file, diff)
	}
}

// TestPlan holds the numbers of a small fabric.
func TestPlan(t *testing.T) {
	file := pools + overEBGP + vteps + services + "prefer:\n  spine2: {loopback: 10.0.3.9, asn: 65100}\n  leaf1: {vtep: 10.0.4.77}\n"
	l, plan := planned(t, clos("frr", 2, 2, eth), file, nil)
	var got []string
	for _, n := range plan.Nodes {
		line := fmt.Sprintf("%s %s %s AS%d", n.Name, n.Role, n.RouterID, n.ASN)
		if n.IsVTEP() {
			line += " " + n.VTEP.String()
		}
		for _, link := range n.Links {
			line += fmt.Sprintf(" %s=%s:%s/%s/AS%d", link.Address, link.Peer, link.PeerInterface, link.PeerAddress, link.PeerASN)
		}
		got = append(got, line)
	}
	want := []string{
		"leaf1 vtep 10.0.0.1 AS65001 10.0.4.77 10.1.0.0/31=spine1:eth1/10.1.0.1/AS65100 10.1.0.2/31=spine2:eth1/10.1.0.3/AS65100",
		"leaf2 vtep 10.0.0.2 AS65002 10.0.4.1 10.1.0.4/31=spine1:eth2/10.1.0.5/AS65100 10.1.0.6/31=spine2:eth2/10.1.0.7/AS65100",
		"spine1 router 10.0.0.3 AS65100 10.1.0.1/31=leaf1:eth1/10.1.0.0/AS65001 10.1.0.5/31=leaf2:eth1/10.1.0.4/AS65002",
		"spine2 router 10.0.3.9 AS65100 10.1.0.3/31=leaf1:eth2/10.1.0.2/AS65001 10.1.0.7/31=leaf2:eth2/10.1.0.6/AS65002",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	host := l.Node("host1")
	if e := host.Endpoints[0]; e.IPv4.String() != "10.10.10.2/24" || e.MTU != 9450 {
		t.Errorf("host1 has %s and an MTU of %d", e.IPv4, e.MTU)
	}
	if len(host.Exec) != 1 || host.Exec[0].Raw != "ip route replace 10.10.0.0/16 via 10.10.10.1 dev eth1" {
		t.Errorf("commands of host1: %v", host.Exec)
	}
	if e := l.Node("host2").Endpoints[0]; e.IPv4.IsValid() || e.MTU != 9450 {
		t.Errorf("host2, whose VLAN is not routed, has %s and an MTU of %d", e.IPv4, e.MTU)
	}
	if c := l.Node("leaf1").StartupConfig; c == nil || !c.Verbatim || c.File.Origin != "fabric" || string(l.Files[c.File.Digest]) != plan.Nodes[0].Config {
		t.Errorf("startup-config of leaf1: %+v", c)
	}
}

// TestGrowth: a fabric that grows keeps all values; the same input gives the same bytes.
func TestGrowth(t *testing.T) {
	file := pools + overEBGP + vteps + services
	small, _ := planned(t, clos("frr", 2, 9, eth), file, nil)
	large := strings.ReplaceAll(clos("frr", 3, 12, eth), "spine3", "aspine") // it is first by its name
	grown, plan := planned(t, large, file, &small.Allocations)
	for pool, values := range small.Allocations.Pools {
		for owner, v := range values {
			// A third spine takes the port that a host had.
			if got := grown.Allocations.Pools[pool][owner]; got != v && grown.Allocations.Released[pool][owner] != v {
				t.Errorf("%s: %s had %s and has %q", pool, owner, v, got)
			}
		}
	}
	again, planAgain := planned(t, large, file, &small.Allocations)
	if diff := cmp.Diff(grown.Allocations, again.Allocations); diff != "" {
		t.Error(diff)
	}
	for i, n := range plan.Nodes {
		if n.Config != planAgain.Nodes[i].Config {
			t.Errorf("node %s has another configuration the second time", n.Name)
		}
	}
}

// TestLinux: a container with FRR's image gets its files as mounts.
func TestLinux(t *testing.T) {
	l, plan := planned(t, clos("linux", 1, 2, eth), pools+overOSPF+vteps+services, nil)
	n := l.Node("leaf1")
	got := map[string]string{}
	for _, m := range n.Mounts {
		got[m.Target] = string(l.Files[m.File.Digest])
	}
	if targets := slices.Sorted(maps.Keys(got)); !slices.Equal(targets, []string{"/etc/frr/daemons", "/etc/frr/frr.conf", "/etc/frr/vtysh.conf"}) {
		t.Errorf("mounts: %v", targets)
	}
	if got["/etc/frr/frr.conf"] != plan.Nodes[0].Config || !strings.Contains(got["/etc/frr/daemons"], "\nospfd=yes\nisisd=no\n") {
		t.Errorf("files: %v", got)
	}
	if n.Sysctls["net.ipv4.ip_forward"] != "1" || l.Node("host1").Sysctls["net.ipv4.ip_forward"] != "" {
		t.Errorf("sysctls: %v", n.Sysctls)
	}
}

// TestDeviceNames: interfaces in the spelling of devices.
func TestDeviceNames(t *testing.T) {
	for kind, names := range map[string]map[string]string{
		"frr": {"eth3": "eth3"}, "nokia_srlinux": {"e1-2": "ethernet-1/2", "e1-2-3": "ethernet-1/2/3"},
		"arista_ceos": {"eth1": "Ethernet1", "et12": "Ethernet12", "eth1_2": "Ethernet1/2"}, "sonic-vs": {"eth1": "Ethernet0", "eth3": "Ethernet8"},
		"cisco_xrd": {"Gi0-0-0-1": "GigabitEthernet0/0/0/1"}, "cisco_n9kv": {"eth12": "Ethernet1/12"}, "juniper_crpd": {"eth1": "eth1"},
	} {
		for linux, want := range names {
			if got := kinds[kind].spelled(linux); got != want {
				t.Errorf("%s of %s is %s, want %s", linux, kind, got, want)
			}
		}
	}
}

// TestScriptedNode: SONiC's ports get their addresses from the script, not from the sidecar; the
// script is no part of the startup.
func TestScriptedNode(t *testing.T) {
	l, plan := planned(t, clos("sonic-vs", 1, 2, eth), pools+strings.SplitAfter(overEBGP, "\n")[0], nil)
	n := l.Node("leaf1")
	if a := n.Endpoints[0].IPv4; a.IsValid() || n.StartupConfig != nil {
		t.Errorf("eth1 has %s, startup-config %v", a, n.StartupConfig)
	}
	if len(n.Exec) != 1 || n.Exec[0].Argv[2] != plan.Nodes[0].Config || !strings.Contains(plan.Nodes[0].Config, "config interface ip add Ethernet0 10.1.0.0/31\n") {
		t.Errorf("commands %v", n.Exec)
	}
}

// TestUnsupported: a feature that a kind does not have is an error where the file asks for it.
func TestUnsupported(t *testing.T) {
	const unsupported = "fabric-unsupported the fabric configuration of kind "
	for kind, c := range map[string]struct{ protocols, want string }{
		"nokia_srlinux":     {unnumbered, "9:35 " + unsupported + "nokia_srlinux does not support unnumbered links, and node \"leaf1\" needs it"},
		"arista_ceos":       {unnumbered, "9:35 " + unsupported + "arista_ceos does not support unnumbered links, and node \"leaf1\" needs it"},
		"cisco_n9kv":        {overEBGP, "10:21 " + unsupported + "cisco_n9kv does not support overlay ebgp, and node \"leaf1\" needs it"},
		"juniper_crpd":      {overOSPF + services, "12:5 " + unsupported + "juniper_crpd does not support services, and node \"leaf1\" needs it"},
		"cisco_xrd":         {overOSPF + services, "12:5 " + unsupported + "cisco_xrd does not support services, and node \"leaf1\" needs it"},
		"vyosnetworks_vyos": {overISIS + services, "12:72 " + unsupported + "vyosnetworks_vyos does not support gateways, and node \"leaf1\" needs it"},
		"sonic-vs":          {unnumbered, "9:35 " + unsupported + "sonic-vs does not support unnumbered links, and node \"leaf1\" needs it"},
	} {
		_, _, diags := compiled(t, clos(kind, 1, 1, portsOf(kind)), pools+c.protocols+vteps, nil)
		if len(diags) == 0 {
			t.Errorf("%s has everything", kind)
			continue
		}
		d := diags[0]
		if got := fmt.Sprintf("%d:%d %s %s", d.Line, d.Column, d.Code, d.Message); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", kind, got, c.want)
		}
	}
}

// TestVLANs: devices take not all VLANs, nor all names.
func TestVLANs(t *testing.T) {
	const vlans = "services:\n  - {name: \"a b\", vlan: %d, vni: 10010}\n"
	for kind, c := range map[string]struct {
		vlan int
		want string
	}{
		"cisco_n9kv": {3968, `12:25: error: kind cisco_n9kv has no VLAN 3968 for services, and node "leaf1" has service "a b" (use a VLAN from 2 to 3967)`},
		"sonic-vs":   {1, `12:25: error: kind sonic-vs has no VLAN 1 for services, and node "leaf1" has service "a b" (use a VLAN from 2 to 4094)`},
	} {
		_, _, diags := compiled(t, clos(kind, 1, 1, eth), pools+overOSPF+fmt.Sprintf(vlans, c.vlan)+vteps, nil)
		if len(diags) != 1 || !strings.Contains(diags[0].String(), strings.SplitN(c.want, " (use", 2)[0]) || !strings.Contains(c.want, diags[0].Hint) {
			t.Errorf("%s: %v, hint %q, want %s", kind, diags, diags[0].Hint, c.want)
		}
	}
	_, plan := planned(t, clos("cisco_n9kv", 1, 1, eth), pools+overOSPF+fmt.Sprintf(vlans, 10)+vteps, nil)
	if config := plan.Nodes[0].Config; !strings.Contains(config, "\nvlan 10\n  name VLAN0010\n  vn-segment 10010\n") {
		t.Errorf("configuration of leaf1:\n%s", config)
	}
}

// TestLinkMTU: both ends of a link have the same MTU, whatever their kinds.
func TestLinkMTU(t *testing.T) {
	topo := strings.Replace(clos("frr", 1, 2, eth), "spine1: {kind: frr,", "spine1: {kind: vyosnetworks_vyos,", 1)
	l, plan := planned(t, topo, pools+overOSPF+vteps+strings.Replace(services, ", gateway: 10.10.10.1/24, routes: [10.10.0.0/16]", "", 1), nil)
	if a, b := l.Node("leaf1").Endpoints[0].MTU, l.Node("host1").Endpoints[0].MTU; a != 9000 || b != 8950 {
		t.Errorf("the port to the spine has an MTU of %d, the host %d", a, b)
	}
	if spine := plan.Nodes[2]; spine.Name != "spine1" || strings.Count(spine.Config, "\n        mtu \"9000\"\n") != 2 {
		t.Errorf("configuration of the spine:\n%s", spine.Config)
	}
	l, _ = planned(t, clos("frr", 1, 2, eth), pools+overOSPF, nil)
	if mtu := l.Node("leaf1").Endpoints[0].MTU; mtu != 0 {
		t.Errorf("a link between routers of FRR has an MTU of %d", mtu)
	}
}

// TestOwnConfig: a node keeps the startup-config that the topology gives it, or gets the
// fabric's after it.
func TestOwnConfig(t *testing.T) {
	topo := strings.Replace(clos("frr", 1, 2, eth), "leaf1: {kind: frr,", "leaf1: {kind: frr, startup-config: \"hostname own\\n!\\n\",", 1)
	file := pools + overOSPF + vteps + services
	l, f, diags := compiled(t, topo, file, nil)
	if len(diags) != 1 || diags[0].String() != `t.clab.yml:5:5: warning: node "leaf1" keeps its own startup-config; the fabric sets only the addresses of its links [fabric-own-config]` {
		t.Fatal(diags)
	}
	n := l.Node("leaf1")
	if text := string(l.Files[n.StartupConfig.File.Digest]); text != "hostname own\n!\n" || len(n.Exec) != 0 || !f.Plan().Nodes[0].OwnConfig {
		t.Errorf("configuration %q, commands %v", text, n.Exec)
	}
	if a := n.Endpoints[0].IPv4; a.String() != "10.1.0.0/31" {
		t.Errorf("the link has %s", a)
	}
	l, plan := planned(t, topo, file+"merge: true\n", nil)
	n = l.Node("leaf1")
	if text := string(l.Files[n.StartupConfig.File.Digest]); text != "hostname own\n!\n"+plan.Nodes[0].Config || len(n.Exec) != 1 || plan.Nodes[0].OwnConfig {
		t.Errorf("configuration %q, commands %v", text, n.Exec)
	}
}

// places are diagnostics with their places, those of the fabric file without its name.
func places(diags []diag.Diagnostic) string {
	var out []string
	for _, d := range diags {
		where := fmt.Sprintf("%d:%d", d.Line, d.Column)
		if d.File != "fabric.yaml" {
			where = d.File + " " + where
		}
		out = append(out, fmt.Sprintf("%s %s %s", where, d.Code, d.Message))
	}
	return strings.Join(out, "|")
}

// TestBad: what is wrong with a fabric file is reported at its place, all at once.
func TestBad(t *testing.T) {
	topo := clos("frr", 1, 2, eth)
	for name, c := range map[string]struct{ topo, file, want string }{
		"syntax":        {topo, "a: [", "1:1 fabric-invalid"},
		"empty":         {topo, "", "0:0 fabric-invalid the fabric file is empty"},
		"header":        {topo, "kind: Policy\n", "1:1 fabric-invalid apiVersion is \"\"|1:1 fabric-invalid kind is \"Policy\"|1:1 fabric-invalid the fabric has no members|1:1 fabric-invalid the fabric has no underlay"},
		"unknown key":   {topo, pools + overOSPF + "overlays: {}\n", "11:1 fabric-invalid unknown key \"overlays\" in the fabric file"},
		"several":       {topo, strings.NewReplacer("length: 31", "length: 16", "10.0.4.0/22", "10.0.3.0/24", "65001-", "x-").Replace(pools) + overOSPF, "5:25 fabric-invalid 10.0.3.0/24 overlaps 10.0.0.0/22 at fabric.yaml:4:27|6:44 fabric-invalid pool \"links\" cannot divide 10.1.0.0/19 into prefixes of 16 bits|7:20 fabric-invalid \"x-65534\" is not a range of numbers from 1 to 4294967294"},
		"pool":          {topo, pools + "underlay: {protocol: rip, links: link}\n", "9:22 fabric-invalid protocol is \"rip\"|9:34 fabric-invalid links names pool \"link\", which does not exist"},
		"kind of pool":  {topo, pools + "underlay: {protocol: ospf, links: asns}\n", "9:35 fabric-invalid links needs prefixes, and pool \"asns\" has none"},
		"no asns":       {topo, pools + "underlay: {protocol: ebgp, links: links}\n", "9:11 fabric-invalid asns is missing"},
		"mixed":         {topo, pools + "underlay: {protocol: ebgp, links: links, asns: asns}\noverlay: {protocol: ibgp, asn: 1}\n", "10:21 fabric-invalid an overlay of ibgp needs one AS, and an underlay of ebgp has several"},
		"no overlay":    {topo, pools + "underlay: {protocol: ospf, links: links}\n" + vteps, "10:8 fabric-invalid VTEPs need an overlay"},
		"MAC":           {topo, pools + overOSPF + strings.Replace(vteps, "02:", "03:", 1), "11:66 fabric-invalid gatewayMAC \"03:00:5e:00:00:01\" is not the MAC address of a host"},
		"VLANs":         {topo, pools + overOSPF + vteps + "services:\n  - {name: a, vlan: 10, vni: 7, gateway: 10.0.0.9/24}\n  - {name: a, vlan: 10, vni: 7777777777}\n", "13:42 fabric-invalid the subnet of 10.0.0.9/24 overlaps 10.0.0.0/22 of a pool at fabric.yaml:4:27|14:12 fabric-invalid two services have name a (the other one is at fabric.yaml:13:12)|14:21 fabric-invalid two services have vlan 10 (the other one is at fabric.yaml:13:21)|14:30 fabric-invalid a service needs a vni from 1 to 16777215"},
		"nobody":        {topo, strings.Replace(pools, "[spine, leaf]", "[x]", 1) + overOSPF, "8:18 fabric-no-match members matches no node of the topology"},
		"no VTEP":       {topo, pools + overOSPF + strings.Replace(vteps, "leaf", "red", 1), "11:16 fabric-no-match vteps matches no member of the fabric"},
		"kind":          {topo, strings.Replace(pools, "leaf]", "leaf, red]", 1) + overOSPF, "8:18 fabric-kind members matches node \"host1\", and c9s has no fabric configuration for kind linux with image example.net/host:1"},
		"one address":   {strings.Replace(topo, `["leaf1:eth1", "spine1:eth1"]`, "[\"leaf1:eth1\", \"spine1:eth1\"]\n      ipv4: [10.9.9.9/31]", 1), pools + overOSPF, "t.clab.yml 10:7 fabric-address one end of a link of the fabric has an IPv4 address, and the other end has none"},
		"preferred":     {topo, pools + overOSPF + "prefer:\n  leaf1: {loopback: 10.0.0.7}\n  leaf2: {loopback: 10.0.0.7}\n  spine1: {loopback: 10.9.0.1}\n  x: {}\n", "13:21 duplicate-value leaf1 and leaf2 both request 10.0.0.7 (the other one is at fabric.yaml:12:21)|14:22 value-outside-pool 10.9.0.1 is not one of the values of pool \"loopbacks\" (10.0.0.0 to 10.0.3.255)|15:6 fabric-node prefer names node \"x\", which is no member of the fabric"},
		"two services":  {topo, pools + overOSPF + vteps + services + "  - {name: all, vlan: 30, vni: 10030, hosts: {kinds: [linux]}}\n", "15:46 fabric-port service \"blue\" and service \"all\" both have port eth2 of node \"leaf2\"|15:46 fabric-port service \"red\" and service \"all\" both have port eth2 of node \"leaf1\""},
		"exhausted":     {topo, strings.Replace(pools, "10.0.0.0/22", "10.0.0.0/30", 1) + overOSPF, "8:18 pool-exhausted the pool of values of pool \"loopbacks\" has room for 2, and the lab needs more"},
		"two addresses": {strings.Replace(topo, `["leaf1:eth1", "spine1:eth1"]`, "[\"leaf1:eth1\", \"spine1:eth1\"]\n      ipv4: [10.9.9.0/31, 10.9.9.3/31]", 1), pools + overOSPF, "t.clab.yml 10:7 fabric-address the ends of a link of the fabric have the addresses 10.9.9.0/31 and 10.9.9.3/31"},
		"customers":     {topo, pools + overOSPF + vteps + "customers: {match: {groups: [leaf]}, asns: links}\n", "12:44 fabric-invalid asns needs numbers, and pool \"links\" has none"},
		"no iBGP":       {topo, pools + overEBGP + "customers: {}\n", "11:12 fabric-invalid asns is missing|11:12 fabric-invalid customers has no match|11:12 fabric-invalid customers need an overlay of ibgp"},
		"two roles":     {topo, pools + overOSPF + vteps + "customers: {match: {groups: [leaf]}, asns: asns}\nprefer: {spine1: {asn: 65001}}\n", "12:20 fabric-invalid node \"leaf1\" is a customer and a vtep|12:20 fabric-invalid node \"leaf2\" is a customer and a vtep|13:24 fabric-node node \"spine1\" is no customer, so it has no AS number of its own"},
		"access":        {topo, pools + overOSPF + "access: {links: links, routes: [x]}\n", "11:9 fabric-invalid access has no hosts|11:17 fabric-invalid access and the underlay use the same pool \"links\"|11:33 fabric-invalid \"x\" is not an IPv4 prefix"},
		"access pool":   {topo, strings.Replace(pools, "length: 31", "length: 24", 1) + unnumbered + "access: {hosts: {groups: [red]}, links: links}\n", "11:41 fabric-invalid links have two ends, and pool \"links\" has prefixes of 24 bits"},
		"access nobody": {topo, pools + unnumbered + "access: {hosts: {groups: [green]}, links: links}\n", "11:17 fabric-no-match hosts of access matches no node that is linked to a member of the fabric"},
		"both":          {topo, pools + unnumbered + vteps + services + "access: {hosts: {groups: [red]}, links: links}\n", "15:17 fabric-port service \"red\" and access both have port eth2 of node \"leaf1\""},
		"ports":         {topo, pools + strings.Replace(overOSPF, "links: links", "links: links, ports: 2000", 1), "9:49 fabric-invalid ports is 2000, not a number from 1 to 1024"},
		"unnumbered":    {topo, pools + "underlay: {protocol: ospf, links: unnumbered}\n", "9:35 fabric-unsupported unnumbered links need an underlay of ebgp"},
		"expression":    {topo, strings.Replace(pools, "groups: [spine, leaf]", "expression: node.x", 1) + overOSPF, "8:35 policy-expression expression: undefined field 'x'"},
		"nothing to do": {topo, pools + overOSPF + vteps + services, ""},
	} {
		_, _, diags := compiled(t, c.topo, c.file, nil)
		if all := places(diags); all != c.want && !(name == "syntax" && strings.HasPrefix(all, c.want)) {
			t.Errorf("%s:\n got %s\nwant %s", name, all, c.want)
		}
	}
}
