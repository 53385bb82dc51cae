package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// said are the diagnostics with their lines and columns, without hints.
func said(diags []diag.Diagnostic) []string {
	var out []string
	for _, d := range diags {
		out = append(out, fmt.Sprintf("%d:%d %s: %s [%s]", d.Line, d.Column, d.Severity, d.Message, d.Code))
	}
	return out
}

func findNode(t *testing.T, l *lab.Lab, name string) *lab.Node {
	t.Helper()
	i := slices.IndexFunc(l.Nodes, func(n *lab.Node) bool { return n.Name == name })
	if i < 0 {
		t.Fatalf("there is no node %s", name)
	}
	return l.Nodes[i]
}

// TestKeyPrecedence takes a key away from one level after the other.
func TestKeyPrecedence(t *testing.T) {
	const topo = `name: t
topology:
  defaults: {kind: nokia_srsim, image: i, license: l, DEFAULTS}
  kinds:
    Nokia_SRSIM: {KINDS}
  groups:
    g: {GROUP}
  nodes:
    r: {group: g, NODE}
`
	levels := []string{"NODE", "GROUP", "KINDS", "DEFAULTS"}
	values := []string{"classic", "mixed", "model-driven", "classic"}
	for i := range len(levels) + 1 {
		text := topo
		for j, level := range levels {
			with := "position: x"
			if j >= i {
				with = "config-mode: " + values[j]
			}
			text = strings.Replace(text, level, with, 1)
		}
		want := ""
		if i < len(values) {
			want = values[i]
		}
		n := findNode(t, compileClean(t, text, map[string]string{"l": "x"}, Options{}), "r")
		if got := n.Env["CLAB_SROS_CONFIG_MODE"]; got != want || len(n.Keys) > 0 {
			t.Errorf("without %v: config-mode %q, keys %v, want %q", levels[:i], got, n.Keys, want)
		}
	}
}

func TestKeyDiagnostics(t *testing.T) {
	tests := []struct {
		name, topo string
		says       []string
	}{
		{"a key that a node inherits and its kind does not have", `name: t
topology:
  defaults: {image: i, config-mode: classic}
  nodes:
    r: {kind: nokia_sros, license: l}
    h: {kind: linux}
    h2: {kind: linux}
`, []string{`3:24 error: kind "linux" of node "h" does not have the key "config-mode" [kind-key]`}},
		{"blocks that no node uses", `name: t
topology:
  groups:
    a: {nonsense: 1}
    b: {kind: nokia_srsim, custom-prompt: false}
    c: {kind: nokia_srsim, config-mode: none}
    d: {custom-prompt: 12}
  kinds:
    nokia_srlinux: {config-mode: classic}
    linux: {binda: [a]}
  nodes:
    h: {kind: linux, image: i}
`, []string{
			`9:21 error: kind "nokia_srlinux" of topology.kinds.nokia_srlinux does not have the key "config-mode" [kind-key]`,
			`10:13 error: unknown key "binda" in topology.kinds.linux [unknown-field]`,
			`4:9 error: unknown key "nonsense" in topology.groups.a [unknown-field]`,
			`5:28 error: kind "nokia_srsim" of topology.groups.b does not have the key "custom-prompt" [kind-key]`,
			`6:41 error: config-mode must be one of model-driven, classic, mixed, not the text "none" [bad-value]`,
		}},
		{"values", `name: t
topology:
  defaults: {kind: nokia_srlinux, image: i}
  nodes:
    a: {custom-prompt: maybe}
    b: {custom-prompt: "true"}
    c: {custom-prompt: [true]}
    d: {custom-prompt: no}
    e: {custom-prompt: ~}
    f: {kind: ceos, copy-to-flash: a}
    g: {kind: ceos, copy-to-flash: [{a: b}]}
`, []string{
			`5:24 error: custom-prompt must be true or false, not the text "maybe" [bad-value]`,
			`6:24 error: custom-prompt must be true or false, not the text "true" [bad-value]`,
			`7:24 error: custom-prompt must be true or false, not a list [bad-value]`,
			`10:36 error: copy-to-flash must be a list of paths, not the text "a" [bad-value]`,
			`11:37 error: copy-to-flash must be a list of texts, not a mapping [bad-value]`,
		}},
		{"the management network of a node", `name: t
mgmt: {network: lab}
topology:
  defaults: {kind: linux, image: i}
  nodes:
    a: {mgmt-net: lab}
    b: {mgmt-net: other}
`, []string{
			`2:8 warning: network is ignored: a cluster has no such network; the management network belongs to the lab [field-ignored]`,
			`7:19 error: mgmt-net "other" of node "b" is not the lab's management network, which is "lab" [mgmt-network]`,
		}},
		{"a card without a slot beside one in slot 1", `name: t
topology: {nodes: {a: {kind: srl, image: i, components: [{slot: 1, type: x}, {type: y}]}}}
`, []string{`2:78 error: slot "" of node "a" is used twice (also at t.clab.yml:2:58) [components]`}},
		{"two management networks", `name: t
mgmt:
  - {network: a}
  - {network: b}
topology:
  defaults: {kind: linux, image: i}
  groups:
    g: {mgmt-net: b}
  nodes:
    a: {group: g}
    b: {mgmt-net: a}
`, []string{
			`3:6 warning: network is ignored (and in 1 more place): a cluster has no such network; the management network belongs to the lab [field-ignored]`,
			`4:5 error: the lab has 2 management networks, and a Pod has one management interface [mgmt-network]`,
		}},
		{"a management network without a name", `name: t
mgmt: [{ipv4-subnet: 10.0.0.0/24}]
topology: {nodes: {a: {kind: linux, image: i}}}
`, []string{`2:8 error: mgmt[0] has no network [missing-field]`}},
		{"what only a container engine has", `name: t
mgmt:
  - {network: m, driver: macvlan, macvlan-parent: ens5, ipam: {provider: runtime}, tailscale: {auth-mode: sso}}
topology: {nodes: {a: {kind: linux, image: i, mgmt-net: m, ports: [8022:22/ts, "1.2.3.4:1:2/ts"]}}}
`, []string{
			`3:6 warning: network is ignored: a cluster has no such network; the management network belongs to the lab [field-ignored]`,
			`3:18 warning: driver is ignored: a cluster has no such driver; the lab has a management network of its own [field-ignored]`,
			`3:35 warning: macvlan-parent is ignored: the management network is not connected to an interface of the worker [field-ignored]`,
			`3:57 warning: ipam is ignored: c9s allocates them: the same topology always has the same addresses [field-ignored]`,
			`3:64 warning: provider is ignored: c9s allocates the addresses [field-ignored]`,
			`3:84 warning: tailscale is ignored: c9s starts no proxies; use ` + "`c9s exec`" + `, Services, or Tailscale's operator for Kubernetes [field-ignored]`,
			`3:96 warning: auth-mode is ignored: c9s starts no proxies [field-ignored]`,
			`4:68 warning: port 8022:22/ts is ignored: c9s starts no Tailscale proxy [field-ignored]`,
			`4:80 error: port "1.2.3.4:1:2/ts" of the Tailscale proxy is not LISTEN:PORT/ts [bad-port]`,
		}},
		{"former variables", `name: t
topology:
  defaults: {kind: nokia_srsim, image: i, license: l}
  nodes:
    a: {env: {CLAB_SROS_CONFIG_MODE: classic}}
    b: {env: {CLAB_SROS_CONFIG_MODE: classic}, config-mode: mixed}
    c: {env: {CLAB_SROS_DISABLE_COMPONENT_CONFIG: "1"}}
    d: {env: {NOKIA_SROS_SFM: x}}
`, []string{
			`5:15 warning: the environment variable CLAB_SROS_CONFIG_MODE is the old form of config-mode, and containerlab ignores it from 0.80 on [field-deprecated]`,
			`6:15 warning: the environment variable CLAB_SROS_CONFIG_MODE has no effect, since config-mode is set, which replaces it [field-deprecated]`,
			`7:15 warning: the environment variable CLAB_SROS_DISABLE_COMPONENT_CONFIG is the old form of gen-component-config, and containerlab ignores it from 0.80 on [field-deprecated]`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, diags := compileText(t, tt.topo, map[string]string{"l": "x", "a": "x"}, Options{})
			got := said(diags)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(tt.says))
			if !slices.Equal(got, want) {
				t.Errorf("it says\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
		})
	}
}

// TestFormerKeys holds that a file of 0.79 and its form in 0.81 mean the same.
func TestFormerKeys(t *testing.T) {
	const sros = `name: t
topology:
  nodes:
    r:
      kind: KIND
      image: i
      license: l
NODE
      components:
        - {slot: A, type: cpm, A}
        - {slot: 1, type: iom, C}
`
	text := func(kind, node, a, one string) string {
		return strings.NewReplacer("KIND", kind, "NODE", node, ", A}", a+"}", ", C}", one+"}").Replace(sros)
	}
	tests := []struct{ name, old, now, both string }{
		{"sfm", text("nokia_srsim", "", ", sfm: s", ", sfm: s"), text("nokia_srsim", "      sfm: s", "", ""), text("nokia_srsim", "      sfm: s", ", sfm: other", "")},
		{"cards of a virtual machine", text("nokia_sros", "", "", ", env: {cpu: 2, ram: 4, max_nics: 6}"), text("nokia_sros", "", "", ", cpu: 2, ram: 4, max-nics: 6"),
			text("nokia_sros", "", "", ", cpu: 2, ram: 4, max-nics: 6, env: {cpu: 9, ram: 9, max_nics: 9}")},
		{"the flash of cEOS", "name: t\ntopology: {nodes: {r: {kind: ceos, image: i, extras: {ceos-copy-to-flash: [__clabNodeName__.txt]}}}}\n",
			"name: t\ntopology: {nodes: {r: {kind: ceos, image: i, copy-to-flash: [__clabNodeName__.txt]}}}\n",
			"name: t\ntopology: {nodes: {r: {kind: ceos, image: i, copy-to-flash: [__clabNodeName__.txt], extras: {ceos-copy-to-flash: [l]}}}}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			show := func(topo string, warned bool) string {
				l, diags := compileText(t, topo, map[string]string{"l": "x", "r.txt": "flash"}, Options{})
				told := false
				for _, d := range diags {
					if d.Severity == diag.Error {
						t.Errorf("unexpected: %s", d)
					}
					told = told || d.Code == CodeDeprecated
				}
				if told != warned {
					t.Errorf("warned of an old form: %t, want %t\n%s", told, warned, topo)
				}
				n := findNode(t, l, "r")
				var cards []string
				for _, c := range n.Components {
					cards = append(cards, c.Slot+c.SFM+c.Env["cpu"]+c.Env["ram"]+c.Env["max_nics"])
				}
				return fmt.Sprint(cards, n.Extras)
			}
			now := show(tt.now, false)
			if old := show(tt.old, true); old != now {
				t.Errorf("the old form means %s, the new one %s", old, now)
			}
			if both := show(tt.both, true); both != now {
				t.Errorf("both forms mean %s, the new one %s", both, now)
			}
		})
	}
}
