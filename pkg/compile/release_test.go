package compile

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/topology"
)

// TestRelease compiles topologies for each release of containerlab.
func TestRelease(t *testing.T) {
	for _, c := range []struct {
		name, topo string
		says       map[string][]string
	}{
		{"a file of any release", `name: t
topology:
  nodes:
    a: {kind: linux, image: i}
`, map[string][]string{}},
		{"keys of kinds", `name: t
topology:
  kinds: {frr: {daemons: [bgpd]}}
  nodes:
    a: {kind: frr, image: i}
    b: {kind: nokia_srlinux, image: i, custom-prompt: false}
    c: {kind: ceos, image: i, copy-to-flash: ["__clabNodeName__"]}
`, map[string][]string{
			"0.79": {
				"3:17 error: containerlab 0.79 does not have the key daemons (since 0.81) [containerlab-release]",
				"5:15 error: containerlab 0.79 does not have the kind frr (since 0.80) [containerlab-release]",
				"6:40 error: containerlab 0.79 does not have the key custom-prompt (since 0.80) [containerlab-release]",
				"7:31 error: containerlab 0.79 does not have the key copy-to-flash (since 0.81) [containerlab-release]",
			},
			"0.80": {
				"3:17 error: containerlab 0.80 does not have the key daemons (since 0.81) [containerlab-release]",
				"7:31 error: containerlab 0.80 does not have the key copy-to-flash (since 0.81) [containerlab-release]",
				"7:47 error: containerlab 0.80 replaces no magic variables in copy-to-flash (since 0.81) [containerlab-release]",
			},
		}},
		{"extras", `name: t
topology:
  nodes:
    a: {kind: ceos, image: i, extras: {ceos-copy-to-flash: [f], srl-agents: [f]}}
    b: {kind: frr, image: i, extras: {frr: {daemons: [bgpd]}}}
    c: {kind: linux, image: i, extras: {mysocket-proxy: p}}
`, map[string][]string{
			"": {
				"4:60 warning: extras.ceos-copy-to-flash is the old form of copy-to-flash, which containerlab 0.81 rejects [field-deprecated]",
				"5:54 warning: extras.frr.daemons is the old form of daemons, which containerlab 0.81 rejects [field-deprecated]",
			},
			"0.79": {
				"5:15 error: containerlab 0.79 does not have the kind frr (since 0.80) [containerlab-release]",
				"5:39 error: containerlab 0.79 does not have the key frr (since 0.80) [containerlab-release]",
				"5:45 error: containerlab 0.79 does not have the key daemons (since 0.80) [containerlab-release]",
			},
			"0.81": {
				"4:60 error: extras.ceos-copy-to-flash is the old form of copy-to-flash, which containerlab 0.81 rejects [containerlab-release]",
				"4:77 error: containerlab 0.81 rejects extras, here extras.srl-agents [containerlab-release]",
				"5:54 error: extras.frr.daemons is the old form of daemons, which containerlab 0.81 rejects [containerlab-release]",
				"6:57 error: containerlab 0.81 rejects extras, here extras.mysocket-proxy [containerlab-release]",
			},
		}},
		{"variables and cards", `name: t
topology:
  nodes:
    a: {kind: nokia_srsim, image: i, license: l, env: {CLAB_SROS_CONFIG_MODE: classic}, components: [{slot: A, sfm: s}]}
    b: {kind: linux, image: i, components: [{slot: A}]}
    c: {kind: nokia_srlinux, image: i, type: ixr-18e, components: [{type: imm3-18-800g-qsfpdd}]}
`, map[string][]string{
			"": {
				"4:56 warning: the environment variable CLAB_SROS_CONFIG_MODE is the old form of config-mode, and containerlab ignores it from 0.80 on [field-deprecated]",
				"4:117 warning: sfm of a component is the old form of the node's sfm, and containerlab rejects it from 0.80 on [field-deprecated]",
			},
			"0.81": {
				"4:56 error: the environment variable CLAB_SROS_CONFIG_MODE is the old form of config-mode, and containerlab ignores it from 0.80 on [containerlab-release]",
				"4:117 error: sfm of a component is the old form of the node's sfm, and containerlab rejects it from 0.80 on [containerlab-release]",
				"5:45 error: containerlab 0.81 rejects components of kind linux [containerlab-release]",
			},
			"0.79": {
				"6:46 error: containerlab 0.79 does not have the type ixr-18e of kind nokia_srlinux (since 0.80) [containerlab-release]",
				"6:68 error: containerlab 0.79 ignores components of kind nokia_srlinux [containerlab-release]",
			},
			"0.80": {
				"4:56 error: the environment variable CLAB_SROS_CONFIG_MODE is the old form of config-mode, and containerlab ignores it from 0.80 on [containerlab-release]",
				"4:117 error: sfm of a component is the old form of the node's sfm, and containerlab rejects it from 0.80 on [containerlab-release]",
				"5:45 error: containerlab 0.80 rejects components of kind linux [containerlab-release]",
			},
		}},
		{"management, ports and names", `name: t
mgmt:
  - {network: n}
topology:
  kinds: {Cisco_IOL: {image: i}}
  nodes:
    a: {kind: cisco_iol, image: cisco_iol-l2}
    b: {kind: dell_ftosv, image: i, ports: ["22:22/ts"], mgmt-net: n}
  links:
    - endpoints: ["a:e0/1", "b:1/1/1"]
`, map[string][]string{
			"0.79": {
				"3:5 error: containerlab 0.79 reads no list under mgmt (since 0.80) [containerlab-release]",
				"5:11 error: containerlab 0.79 does not apply topology.kinds.Cisco_IOL to nodes of kind cisco_iol, since the case differs [containerlab-release]",
				"7:5 error: containerlab 0.79 does not take the type of node \"a\" from its image [containerlab-release]",
				"8:45 error: containerlab 0.79 has no ports of a Tailscale proxy (since 0.80) [containerlab-release]",
				"8:58 error: containerlab 0.79 does not have the key mgmt-net (since 0.80) [containerlab-release]",
				"10:29 error: containerlab 0.79 does not have the interface name 1/1/1 of kind dell_ftosv (since 0.80) [containerlab-release]",
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, release := range append([]string{""}, Releases...) {
				f, diags := topology.Load(context.Background(), &topology.Source{Name: "t", Data: []byte(c.topo)}, topology.Options{})
				if len(diags) > 0 {
					t.Fatal(diags)
				}
				_, diags = Compile(context.Background(), f, Options{For: release, AllowMissing: true})
				got := slices.DeleteFunc(said(diags), func(s string) bool {
					return !strings.HasSuffix(s, "[containerlab-release]") && !strings.HasSuffix(s, "[field-deprecated]")
				})
				if want := c.says[release]; !slices.Equal(got, want) {
					t.Errorf("for %q:\n\t%s\nwant\n\t%s", release, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
				}
			}
		})
	}
}
