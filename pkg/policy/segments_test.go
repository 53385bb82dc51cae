package policy

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

const segmentLab = `name: t
topology:
  defaults: {kind: linux, image: a, startup-config: __clabNodeName__.cfg}
  nodes:
    h1: {labels: {lan: "yes"}, startup-config: ""}
    h2: {labels: {lan: "yes"}}
    h3:
    r1: {kind: nokia_srlinux, group: router}
    sw: {kind: bridge}
  links:
    - endpoints: ["h1:eth9", "h2:eth9"]
`

const policyHead = "apiVersion: c9s.dev/v1\nkind: Policy\n"

// compileWith compiles a topology under a policy file.
func compileWith(t *testing.T, topo, policy string, o compile.Options) (*lab.Lab, []diag.Diagnostic) {
	t.Helper()
	p, diags := Load("c9s.yaml", []byte(policyHead+policy))
	if p == nil {
		t.Fatalf("the policy is rejected: %v", diags)
	}
	f, _ := topology.Load(t.Context(), &topology.Source{Name: "t.clab.yml", Data: []byte(topo)}, topology.Options{})
	o.Policy, o.AllowMissing = p, true
	l, more := compile.Compile(t.Context(), f, o)
	return l, append(diags, more...)
}

// errorsOf are the diagnostics that have the word of a severity, as text.
func errorsOf(diags []diag.Diagnostic, codes ...diag.Code) []string {
	var out []string
	for _, d := range diags {
		if d.Severity == diag.Error || slices.Contains(codes, d.Code) {
			out = append(out, d.String())
		}
	}
	return out
}

// shape describes a lab's links, each end with its addresses.
func shape(l *lab.Lab) []string {
	var out []string
	for _, link := range l.Links {
		var ends []string
		for _, e := range link.Endpoints {
			text := e.Node + ":" + e.Interface
			for _, p := range []fmt.Stringer{e.IPv4, e.IPv6} {
				if p.String() != "invalid Prefix" {
					text += "=" + p.String()
				}
			}
			if e.Isolated {
				text += "!"
			}
			ends = append(ends, text)
		}
		out = append(out, strings.Join(ends, " "))
	}
	return out
}

func TestSegment(t *testing.T) {
	l, diags := compileWith(t, segmentLab, `
segments:
- name: lan
  subnet: 10.20.0.0/29
  gateway: r1:ethernet-1/3
  members: {match: {labels: {lan: "yes"}}, interface: eth1}
  forward: [lacp, lldp]
  isolate: true
- name: six
  subnet: 2001:db8::/64
  gateway: {node: h3, address: "2001:db8::ff"}
  members:
  - {match: {names: [h1]}, interface: eth2}
  - {match: {expression: '"eth9" in node.interfaces && node.name != "h1"'}, interface: eth3}
- name: plain
  members: {match: {names: [h3]}, interface: eth5}
  forward: []
`, compile.Options{})
	if got := errorsOf(diags, CodeUnused); len(got) > 0 {
		t.Error(got)
	}
	want := []string{
		"h1:eth9 h2:eth9",
		"r1:e1-3=10.20.0.1/29 lan:r1-e1-3",
		"h1:eth1=10.20.0.5/29 lan:h1-eth1!",
		"h2:eth1=10.20.0.2/29 lan:h2-eth1!",
		"h3:eth2=2001:db8::ff/64 six:h3-eth2",
		"h1:eth2=2001:db8::4c:c020/64 six:h1-eth2",
		"h2:eth3=2001:db8::78:49ad/64 six:h2-eth3",
		"h3:eth5 plain:h3-eth5",
	}
	if diff := cmp.Diff(want, shape(l)); diff != "" {
		t.Error(diff)
	}
	for name, mask := range map[string]uint16{"lan": 1<<14 | 1<<2, "six": 1 << 14, "plain": 0} {
		n := l.Node(name)
		if n.Kind != "bridge" || !n.RootNamespace || n.GroupForwardMask == nil || *n.GroupForwardMask != mask {
			t.Errorf("%s is %+v", name, n)
		}
	}
	if l.Node("sw").GroupForwardMask != nil {
		t.Error("a bridge of the topology has a mask of its own")
	}
	if got := l.Node("lan").Source(); got != "c9s.yaml:5" {
		t.Errorf("the bridge comes from %s", got)
	}
	if got := len(l.Pods); got != 8 {
		t.Errorf("%d Pods", got)
	}
}

// TestSegmentIsStable: one more member changes no value of the others, with and without the
// allocations of the render before, and comes by its label alone.
func TestSegmentIsStable(t *testing.T) {
	const text = "segments:\n- {name: lan, subnet: 10.20.0.0/16, gateway: r1, members: {match: {groups: [lan]}, interface: eth1}}\n"
	topo := func(nodes ...string) string {
		out := "name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n"
		for _, n := range nodes {
			out += "    " + n + ": {group: lan}\n"
		}
		return out
	}
	before, _ := compileWith(t, topo("r1", "h1", "h2", "h3", "h4"), text, compile.Options{})
	for name, o := range map[string]compile.Options{"from scratch": {}, "again": {Previous: &before.Allocations}} {
		after, diags := compileWith(t, topo("h0", "r1", "h1", "h2", "h3", "h4", "h5"), text, o)
		if got := errorsOf(diags); len(got) > 0 {
			t.Error(got)
		}
		if len(after.Links) != 7 {
			t.Errorf("%s: %d links", name, len(after.Links))
		}
		for pool, values := range before.Allocations.Pools {
			have := maps.Clone(after.Allocations.Pools[pool])
			maps.DeleteFunc(have, func(owner, _ string) bool { _, old := values[owner]; return !old })
			if diff := cmp.Diff(values, have); diff != "" {
				t.Errorf("%s: pool %s: %s", name, pool, diff)
			}
		}
	}
	if got := before.PoolSizes["segment/lan"]; got != 1<<16-3 {
		t.Errorf("the pool has %d addresses", got)
	}
	again, _ := compileWith(t, topo("r1", "h1", "h2", "h3", "h4"), text, compile.Options{})
	if diff := cmp.Diff(shape(before), shape(again)); diff != "" {
		t.Error(diff)
	}
}

// TestSegmentWithLinks: a link of the topology may lead to the bridge; its address is nobody
// else's, and it is isolated as the members are.
func TestSegmentWithLinks(t *testing.T) {
	const topo = `name: t
topology:
  defaults: {kind: linux, image: a}
  nodes: {r1: , h1: , x: }
  links:
    - {type: veth, endpoints: [{node: x, interface: eth1, ipv4: 10.0.0.2/30}, {node: lan, interface: p1}]}
`
	l, diags := compileWith(t, topo, "segments:\n- {name: lan, subnet: 10.0.0.0/30, gateway: r1, isolate: true, members: {match: {names: [r1]}, interface: eth1}}\n", compile.Options{})
	if got := errorsOf(diags); len(got) > 0 {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"x:eth1=10.0.0.2/30 lan:p1!", "r1:eth1=10.0.0.1/30 lan:r1-eth1"}, shape(l)); diff != "" {
		t.Error(diff)
	}
	_, diags = compileWith(t, topo, "segments:\n- {name: lan, subnet: 10.0.0.0/30, members: {match: {names: [h1]}, interface: eth1}}\n", compile.Options{})
	want := []string{"c9s.yaml:4:79: error: the pool of addresses of segment \"lan\" has room for 0, and the lab needs more [pool-exhausted]"}
	if diff := cmp.Diff(want, errorsOf(diags)); diff != "" {
		t.Error(diff)
	}
}

// TestSegmentGatewayTwice: no link of the topology may give another node the gateway's address.
// Without a gateway node, that node is the gateway.
func TestSegmentGatewayTwice(t *testing.T) {
	const topo = `name: t
topology:
  defaults: {kind: linux, image: a}
  nodes: {r1: , x: }
  links:
    - {type: veth, endpoints: [{node: x, interface: eth1, ipv4: 10.0.0.1/24}, {node: lan, interface: p1}]}
`
	for gateway, want := range map[string][]string{
		"gateway: r1":                            {"c9s.yaml:4:45: error: the gateway of segment \"lan\" gets 10.0.0.1, and x:eth1 has it already (at t.clab.yml:6:32) [segment-gateway]"},
		"gateway: {node: r1, address: 10.0.0.2}": nil,
		"gateway: 10.0.0.1":                      nil,
		"isolate: false":                         nil,
	} {
		_, diags := compileWith(t, topo, "segments:\n- {name: lan, subnet: 10.0.0.0/24, "+gateway+", members: {match: {names: [r1]}, interface: eth1}}\n", compile.Options{})
		if diff := cmp.Diff(want, errorsOf(diags)); diff != "" {
			t.Errorf("%s: %s", gateway, diff)
		}
	}
}

// TestSegmentFaults: segments that do not fit the topology.
func TestSegmentFaults(t *testing.T) {
	for text, want := range map[string]string{
		"- {name: h1, members: {interface: eth1}}":                                                          "c9s.yaml:4:10: error: segment \"h1\" has the name of a node (at t.clab.yml:5:5) [segment-name]",
		"- {name: H1, members: {match: {names: [h2]}, interface: eth1}}":                                    "c9s.yaml:4:10: error: nodes \"h1\" and \"H1\" (t.clab.yml:5:5) would both be called \"h1\" in Kubernetes [name-collision]",
		"- {name: lan, members: {match: {names: [h1]}, interface: eth9}}":                                   "c9s.yaml:4:58: error: interface eth9 of node \"h1\" is used by two links (also at t.clab.yml:11:19) [endpoint-duplicate]",
		"- {name: a, members: &m {match: {names: [h1]}, interface: eth1}}\n- {name: b, members: *m}":        "c9s.yaml:4:59: error: interface eth1 of node \"h1\" is used by two links (also at c9s.yaml:4:59) [endpoint-duplicate]",
		"- {name: lan, members: {match: {names: [x]}, interface: eth1}}":                                    "c9s.yaml:4:10: warning: segment \"lan\" matches no node [policy-unused]",
		"- {name: lan, gateway: r9, members: {match: {names: [h1]}, interface: eth1}}":                      "c9s.yaml:4:24: error: the gateway of segment \"lan\" is \"r9\", which is neither a node of the topology nor an address [node-unknown]",
		"- {name: lan, gateway: \"host:eth1\", members: {match: {names: [h1]}, interface: eth1}}":           "c9s.yaml:4:24: error: the gateway of segment \"lan\" is \"host\", which is neither a node of the topology nor an address [node-unknown]",
		"- {name: lan, gateway: mgmt-net, members: {match: {names: [h1]}, interface: eth1}}":                "c9s.yaml:4:24: error: the gateway of segment \"lan\" is \"mgmt-net\", which is neither a node of the topology nor an address [node-unknown]",
		"- {name: lan, gateway: sw, members: {match: {names: [h1]}, interface: eth1}}":                      "c9s.yaml:4:24: error: the gateway of segment \"lan\" is node \"sw\" of kind bridge, which has no interfaces of its own [segment-gateway]",
		"- {name: lan, members: {match: {names: [r1]}, interface: Ethernet 1}}":                             "c9s.yaml:4:58: error: interface \"Ethernet 1\" of node \"r1\" (nokia_srlinux): not a name that this kind has [interface-name]",
		"- {name: lan, subnet: 172.20.0.0/16, members: {match: {names: [h1]}, interface: eth1}}":            "c9s.yaml:4:23: error: subnet 172.20.0.0/16 of segment \"lan\" overlaps 172.20.20.0/24, the management network [segment-subnet]",
		"- {name: lan, subnet: 10.0.0.0/30, members: {match: {names: ['h*']}, interface: eth1}}":            "c9s.yaml:4:81: error: the pool of addresses of segment \"lan\" has room for 1, and the lab needs more [pool-exhausted]",
		"- {name: lan, members: {match: {expression: 'node.labels[\"lan\"] == \"yes\"'}, interface: eth1}}": "c9s.yaml:4:45: error: the expression fails for node \"h3\": no such key: lan [policy-expression]\nc9s.yaml:4:45: error: the expression fails for node \"r1\": no such key: lan [policy-expression]",
		"- {name: lan, members: {match: {names: [h1]}, interface: lo}}":                                     "c9s.yaml:4:58: error: node \"h1\" cannot have an interface \"lo\": it is the loopback interface [interface-name]",
	} {
		_, diags := compileWith(t, segmentLab, "segments:\n"+text+"\n", compile.Options{})
		got := strings.Join(errorsOf(diags, CodeUnused), "\n")
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestInvalidSegments: what is wrong with a segment whatever the topology is.
func TestInvalidSegments(t *testing.T) {
	const m = ", members: {interface: eth1}"
	for text, want := range map[string]string{
		"segments: lan": "3:11: error: segments must be a list, not the text \"lan\"",
		"segments:\n- {members: {interface: eth1}}":                                                        "4:3: error: a segment has no name",
		"segments:\n- {name: a" + m + "}\n- {name: a" + m + "}":                                            "5:10: error: segment \"a\" is defined twice (first at line 4)",
		"segments:\n- {name: host" + m + "}":                                                               "4:10: error: a segment cannot be called \"host\", which is a type of links",
		"segments:\n- {name: a, vlan: 1" + m + "}":                                                         "4:13: error: unknown key \"vlan\" in segments[]",
		"segments:\n- {name: a}":                                                                           "4:10: error: segment \"a\" has no members",
		"segments:\n- {name: a, members: []}":                                                              "4:10: error: segment \"a\" has no members",
		"segments:\n- {name: a, members: {match: {}}}":                                                     "4:22: error: members of segment \"a\" have no interface",
		"segments:\n- {name: a, members: [{interface: eth1, match: {label: {a: b}}}]}":                     "4:49: error: unknown key \"label\" in match",
		"segments:\n- {name: a, subnet: 10.0.0.0" + m + "}":                                                "4:21: error: subnet \"10.0.0.0\" is not a prefix",
		"segments:\n- {name: a, subnet: 10.0.0.1/24" + m + "}":                                             "4:21: error: subnet 10.0.0.1/24 has bits of the host part",
		"segments:\n- {name: a, subnet: 10.0.0.0/31" + m + "}":                                             "4:21: error: subnet 10.0.0.0/31 has no room for a gateway and members",
		"segments:\n- {name: a, subnet: 224.0.0.0/24" + m + "}":                                            "4:21: error: subnet 224.0.0.0/24 has no addresses for hosts",
		"segments:\n- {name: a, subnet: 10.0.0.0/24" + m + "}\n- {name: b, subnet: 10.0.0.64/26" + m + "}": "5:21: error: subnet 10.0.0.64/26 overlaps 10.0.0.0/24 of segment \"a\" at line 4",
		"segments:\n- {name: a, subnet: 10.0.0.0/24, gateway: 10.0.1.1" + m + "}":                          "4:43: error: address 10.0.1.1 of the gateway is not in subnet 10.0.0.0/24",
		"segments: [null]":                        "3:12: error: a segment has no name [policy-invalid]\nc9s.yaml:3:12: error: segment \"\" has no members",
		"segments:\n- {name: a, members: [null]}": "4:23: error: members of segment \"a\" have no interface",
		"segments:\n- {name: a, subnet: 10.0.0.0/24, gateway: {node: r1, address: 10.0.0.255}" + m + "}": "4:63: error: address 10.0.0.255 of the gateway stands for the subnet 10.0.0.0/24 itself, not for a host",
		"segments:\n- {name: a, subnet: \"2001:db8::/64\", gateway: \"2001:db8::\"" + m + "}":            "4:47: error: address 2001:db8:: of the gateway stands for the subnet 2001:db8::/64 itself, not for a host",
		"segments:\n- {name: a, subnet: 10.0.0.0/24, gateway: 10.0.0.1/24" + m + "}":                     "4:43: error: the gateway \"10.0.0.1/24\" is a prefix, not an address",
		"segments:\n- {name: a, gateway: 10.0.1.1" + m + "}":                                             "4:22: error: the gateway has an address, but the segment has no subnet",
		"segments:\n- {name: a, subnet: 10.0.0.0/24, gateway: {address: r1}" + m + "}":                   "4:53: error: address \"r1\" of the gateway is not an address",
		"segments:\n- {name: a, gateway: {interface: eth1}" + m + "}":                                    "4:34: error: the gateway has an interface, but no node",
		"segments:\n- {name: a, gateway: {nodes: r1}" + m + "}":                                          "4:23: error: unknown key \"nodes\" in segments[].gateway",
		"segments:\n- {name: a, gateway: [r1]" + m + "}":                                                 "4:22: error: gateway must be a mapping, not a list",
		"segments:\n- {name: a, isolate: true" + m + "}":                                                 "4:10: error: segment \"a\" is isolated and no node is its gateway: its members would reach nobody",
		"segments:\n- {name: a, isolate: 1" + m + "}":                                                    "4:22: error: isolate must be true or false, not the number 1",
		"segments:\n- {name: a, forward: [lacp, lld]" + m + "}":                                          "4:29: error: forward has the unknown protocol \"lld\"",
		"segments:\n- {name: a, forward: [stp]" + m + "}":                                                "4:23: error: forward cannot have stp: the bridge runs no STP and always forwards its frames",
		"segments:\n- {name: a, forward: [pause]" + m + "}":                                              "4:23: error: forward cannot have pause: bridges never forward pause frames",
		"segments:\n- {name: a, forward: lldp" + m + "}":                                                 "4:22: error: forward must be a list, not the text \"lldp\"",
	} {
		p, diags := Load("c9s.yaml", []byte(policyHead+text+"\n"))
		if got, want := strings.Join(errorsOf(diags), "\n"), "c9s.yaml:"+want+" [policy-invalid]"; got != want || p != nil {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestPage: the reference has every key of the networks.
func TestPage(t *testing.T) {
	const page = "../../docs/reference/policy.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[File](), reflect.TypeFor[Segment](), reflect.TypeFor[Member](), reflect.TypeFor[MgmtRule](), reflect.TypeFor[ExternalRule]()} {
		for _, key := range strictyaml.Keys(of) {
			if key != "apiVersion" && key != "kind" && !strings.Contains(string(text), "`"+key+"`") && !strings.Contains(string(text), "\n## "+key+"\n") {
				t.Errorf("%s does not have `%s` of %s", page, key, of.Name())
			}
		}
	}
}
