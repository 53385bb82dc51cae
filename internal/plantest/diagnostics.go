package plantest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// One fault is reported once, in the same words whoever plans.
var diagnosticLabs = []lab{
	{
		name: "a startup-config that is no template",
		topo: `name: tpl
topology:
  defaults: {image: "img:1"}
  nodes:
    c1: {kind: ceos, startup-config: conf.txt}
    r1: {kind: cisco_iol, startup-config: conf.txt}
    v1: {kind: juniper_vmx, startup-config: sub/two.txt}
    s1: {kind: nokia_srlinux, startup-config: conf.txt}
    g1: {kind: vyosnetworks_vyos, startup-config: conf.txt}
`,
		files: map[string]string{"conf.txt": "banner {{ not a template }}\n", "sub/two.txt": "one\ntwo {{ .ShortName\n"},
		says: []string{
			`error: node "c1": startup-config conf.txt:1: function "a" not defined [startup-config-template]`,
			`error: node "r1": startup-config conf.txt:1: function "a" not defined [startup-config-template]`,
			`error: node "v1": startup-config sub/two.txt:2: unclosed action [startup-config-template]`,
			`error: node "s1": startup-config conf.txt:1: function "a" not defined [startup-config-template]`,
			`error: node "g1": startup-config conf.txt:1: function "a" not defined [startup-config-template]`,
		},
		look: func(t *testing.T, r *result) {
			if got := strings.Count(r.errs, `write {{"{{"}} for two plain braces`); got != 5 {
				t.Errorf("%d of five hints say how to write braces:\n%s", got, r.errs)
			}
		},
	},
	{
		name: "a startup-config with a field that does not exist",
		topo: `name: tpl
topology:
  defaults: {image: "img:1", startup-config: conf.txt}
  nodes:
    c1: {kind: ceos}
    v1: {kind: juniper_vmx}
    s1: {kind: nokia_srlinux}
`,
		files: map[string]string{"conf.txt": "hostname {{ .ShortName }}\nlocation {{ .NoSuchField }}\n"},
		says: []string{
			`error: node "c1": startup-config conf.txt:2: the node has no field .NoSuchField [startup-config-template]`,
			`error: node "v1": startup-config conf.txt:2: the node has no field .NoSuchField [startup-config-template]`,
			`error: node "s1": startup-config conf.txt:2: the node has no field .NoSuchField [startup-config-template]`,
		},
	},
	{
		name: "interfaces that the kinds do not have are reported once",
		topo: `name: ends
topology:
  defaults: {image: "img:1"}
  nodes:
    a: {kind: dell_ftosv}
    v: {kind: juniper_vjunosrouter}
    c: {kind: cvx}
    s: {kind: sonic-vs}
    n: {kind: nokia_srlinux}
    x: {kind: cisco_xrd}
    i: {kind: cisco_iol}
    h: {kind: linux}
  links:
    - endpoints: ["a:swp1", "h:eth1"]
    - endpoints: ["v:xe-1", "h:eth2"]
    - endpoints: ["c:eth9", "h:eth3"]
    - endpoints: ["s:Ethernet0", "h:eth4"]
    - endpoints: ["n:eth1", "h:eth5"]
    - endpoints: ["x:eth1", "h:eth7"]
    - endpoints: ["i:e0/0", "h:eth0"]
`,
		says: []string{
			`error: node "a": dell_ftosv has no interface "swp1"; allowed are ethernet1/1/X, 1/1/X or ethX, X from 1 on [interface-name]`,
			`error: node "v": juniper_vjunosrouter has no interface "xe-1"; allowed are et-0/0/X, xe-0/0/X or ge-0/0/X, X from 0 on, or ethX, X from 1 on [interface-name]`,
			`error: interface "eth9" of node "c" (cumulus_cvx): not a name that this kind has [interface-name]`,
			`error: interface "eth1" of node "n" (nokia_srlinux): not a name that this kind has [interface-name]`,
			`error: interface "eth1" of node "x" (cisco_xrd): not a name that this kind has [interface-name]`,
			`error: node "i": cisco_iol has no interface "e0/0": it is the management interface; allowed are Ethernet<slot>/<port> or e<slot>/<port>, slot 0 to 9, port 0 to 3 but the management port (0/0, or mgmt-intf), or ethX [interface-name]`,
			`error: interface "eth0" of node "h" (linux): the name belongs to the management interface unless network-mode is none [interface-name]`,
		},
	},
	{
		name: "types and licences that are missing, and formats that a kind does not read, are reported once",
		topo: `name: types
topology:
  defaults: {image: "img:1"}
  nodes:
    b: {kind: cisco_sdwan, type: nothing}
    c: {kind: nokia_srlinux, type: nothing}
    d: {kind: nokia_srsim}
    e: {kind: ciena_saos}
    f: {kind: cisco_c8000v, type: x}
    i: {kind: cisco_sdwan, type: controller, startup-config: conf.cfg}
`,
		files: map[string]string{"conf.cfg": "x\n"},
		says: []string{
			`error: node "b": kind cisco_sdwan has no type "nothing" [node-type]`,
			`error: node "c": kind nokia_srlinux has no type "nothing" [node-type]`,
			srsimIncomplete(""),
			`error: node "d": kind nokia_srsim does not start without a licence [license-required]`,
			`error: node "e": kind ciena_saos needs a type [node-type]`,
			`error: node "f": kind cisco_c8000v has no type "x" [node-type]`,
			`error: node "i": kind cisco_sdwan cannot read startup-config conf.cfg [startup-config-format]`,
		},
	},
	{
		name: "twenty leaves warn of nothing",
		topo: "name: w\ntopology:\n  defaults: {kind: nokia_srlinux, image: 'srl:25.3.1'}\n  nodes:\n" + strings.Join(leaves(20), ""),
	},
	{
		name: "a partial startup-config of nokia_sros",
		topo: `name: part
topology:
  nodes:
    r1: {kind: nokia_sros, image: "vr-sros:24.10", startup-config: r1.partial.cfg, license: lic}
    r2: {kind: nokia_sros, image: "vr-sros:24.10", startup-config: full.cfg, license: lic}
`,
		files: map[string]string{"r1.partial.cfg": "/configure system name MARKER-R1\n", "full.cfg": "configure {\n}\n", "lic": "lic\n"},
		says: []string{
			`error: node "r1": startup-config r1.partial.cfg is partial, which kind nokia_sros gets over SSH from outside after its start; c9s cannot do that [startup-config-partial]`,
		},
		look: func(t *testing.T, r *result) {
			if !strings.Contains(r.errs, "hint: save the whole configuration of a running node and give that") {
				t.Errorf("no remedy is named:\n%s", r.errs)
			}
		},
	},
	{
		name: "partial startup-configs of other kinds",
		topo: `name: part
topology:
  defaults: {image: "img:1", startup-config: n.partial.cfg}
  nodes:
    iol: {kind: cisco_iol}
    vios: {kind: cisco_vios, type: router}
    sim: {kind: nokia_srsim, license: lic}
    srl: {kind: nokia_srlinux}
    vmx: {kind: juniper_vmx}
    saos: {kind: ciena_saos, type: "5162"}
    saos2: {kind: ciena_saos, type: "5162", startup-config: full.cfg}
`,
		files: map[string]string{"n.partial.cfg": "MARKER of the partial configuration\n", "full.cfg": "x\n", "lic": "lic\n"},
		says: []string{
			srsimIncomplete(""),
			`error: node "saos2": kind ciena_saos takes partial startup-configs only [startup-config-partial]`,
		},
		look: func(t *testing.T, r *result) {
			for _, node := range []string{"iol", "vios", "sim", "srl", "vmx", "saos"} {
				marked := strings.Contains(text(r.plan(t, node)), "MARKER of the partial configuration\n")
				for _, f := range r.plan(t, node).Files {
					marked = marked || f.Ref != nil && f.Ref.Origin == "n.partial.cfg"
				}
				if !marked {
					t.Errorf("%s: the partial configuration is nowhere in the plan", node)
				}
			}
		},
	},
	{
		name: "what a kind does not read",
		topo: `name: unread
topology:
  defaults: {image: "img:1", startup-config: cfg, license: lic}
  nodes:
    host: {kind: linux}
    host2: {kind: linux}
    vm: {kind: generic_vm}
    big: {kind: f5_bigip-ve}
`,
		files: map[string]string{"cfg": "a configuration of some length\n", "lic": "lic\n"},
		says: []string{
			`warning: kind linux does not read license (and at 1 more place) [license-ignored]`,
			`warning: kind linux does not read startup-config (and at 1 more place) [startup-config-ignored]`,
			`warning: kind generic_vm does not read license [license-ignored]`,
			`warning: kind generic_vm does not read startup-config [startup-config-ignored]`,
			`warning: kind f5_bigip-ve does not read license [license-ignored]`,
			`warning: kind f5_bigip-ve does not read startup-config [startup-config-ignored]`,
		},
	},
	{
		name: "names of interfaces that a kind does not have",
		topo: `name: b27
topology:
  defaults: {kind: linux}
  groups: {mx: {image: "vjunos-router:25", kind: juniper_vjunosrouter}}
  nodes:
    a: {kind: dell_ftosv, image: "a:1"}
    b: {kind: juniper_vjunosrouter, image: "a:1"}
    h: {image: "host:1"}
    g: {group: mx}
    q: {kind: nokia_srlinux, image: "srl:25.7.1"}
  links:
    - endpoints: ["b:ge-0/0/10", "h:eth2"]
    - endpoints: ["a:nonsense7", "h:eth3"]
    - endpoints: ["g:ge-0/0/0", "h:eth5"]
    - endpoints: ["q:ethernet-x/1", "h:eth6"]
`,
		says: []string{
			`error: node "a": dell_ftosv has no interface "nonsense7"; allowed are ethernet1/1/X, 1/1/X or ethX, X from 1 on [interface-name]`,
			`error: interface "ethernet-x/1" of node "q" (nokia_srlinux): not a name that this kind has [interface-name]`,
		},
	},
	{
		name: "types and licences that are missing",
		topo: `name: once
topology:
  defaults: {image: "img:1"}
  nodes:
    saos: {kind: ciena_saos}
    saos2: {kind: ciena_saos, type: "9999"}
    srl: {kind: nokia_srlinux, type: ixr-77}
    sim: {kind: nokia_srsim}
    iol: {kind: cisco_iol, type: L3}
    host: {kind: linux, cmd: 2}
`,
		says: []string{
			`error: node "saos": kind ciena_saos needs a type [node-type]`,
			`error: node "saos2": kind ciena_saos has no type "9999" [node-type]`,
			`error: node "srl": kind nokia_srlinux has no type "ixr-77" [node-type]`,
			srsimIncomplete(""),
			`error: node "sim": kind nokia_srsim does not start without a licence [license-required]`,
			`error: node "iol": kind cisco_iol has no type "L3" [node-type]`,
		},
	},
	{
		name: "options that exclude each other",
		topo: `name: both
topology:
  defaults: {image: "img:1", startup-config: cfg, enforce-startup-config: true, suppress-startup-config: true}
  nodes:
    c: {kind: ceos}
    v: {kind: juniper_vmx}
    s: {kind: nokia_srlinux}
`,
		files: map[string]string{"cfg": "hostname x\n"},
		says:  []string{`error: node "c" both enforces and suppresses its startup-config (and for 2 more nodes: s, v) [startup-config-conflict]`},
	},
}

// everyKind is a lab with one node of each kind that has a container, and what it warns of.
func everyKind() lab {
	out := lab{
		name:  "nodes of every kind warn only of what is not carried",
		topo:  "name: every\ntopology:\n  defaults: {image: 'img:1'}\n  nodes:\n",
		files: map[string]string{"lic": "a licence\n"},
	}
	for i, k := range kinds.Builtin().All() {
		if k.Refused != "" || k.RootNamespace {
			continue
		}
		out.topo += fmt.Sprintf("    n%d: {kind: %s", i, k.Name)
		if k.Types.Required {
			out.topo += ", type: '" + slices.Min(slices.Collect(maps.Keys(k.Types.Values))) + "'"
		}
		if k.License.Policy != "" {
			out.topo += ", license: lic"
		}
		out.topo += "}\n"
		if len(k.Missing) > 0 {
			out.says = append(out.says, fmt.Sprintf("warning: kind %s is not carried in full: %s [kind-incomplete]", k.Name, strings.Join(k.Missing, "; ")))
		}
	}
	return out
}

func leaves(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "    leaf" + strings.Repeat("i", i+1) + ":\n"
	}
	return out
}
