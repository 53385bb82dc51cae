package plantest

import (
	"slices"
	"strings"
	"testing"
)

// Keys of kinds mean the same whoever plans, and so do the forms that they replace.
var keyLabs = []lab{
	{
		name: "SR-SIM: configuration mode and provisioning",
		topo: `name: modes
topology:
  defaults: {kind: nokia_srsim, image: "srsim:25", license: lic, config-mode: model-driven}
  groups:
    g: {config-mode: classic}
  nodes:
    d: {type: sr-1}
    g: {group: g}
    n: {group: g, config-mode: model-driven}
    e: {env: {CLAB_SROS_CONFIG_MODE: classic}}
    o: {type: sr-1, gen-component-config: false}
`,
		files: map[string]string{"lic": "a licence\n"},
		says: []string{
			`warning: the environment variable CLAB_SROS_CONFIG_MODE has no effect, since config-mode is set, which replaces it [field-deprecated]`,
			srsimIncomplete(" (and at 4 more places)"),
		},
		look: func(t *testing.T, r *result) {
			classic := func(node string) bool {
				return !strings.Contains(config(t, r, node), "/configure")
			}
			for node, want := range map[string]bool{"d": false, "g": true, "n": false, "e": false, "o": false} {
				if got := classic(node); got != want {
					t.Errorf("%s: classic configuration: %t, want %t\n%s", node, got, want, config(t, r, node))
				}
			}
			for node, want := range map[string]bool{"d": true, "o": false} {
				if got := strings.Contains(config(t, r, node), "card-type"); got != want {
					t.Errorf("%s: provisions cards: %t, want %t", node, got, want)
				}
			}
		},
	},
	{
		name: "SR-SIM: switch fabric of a chassis",
		topo: `name: sfm
topology:
  defaults: {kind: nokia_srsim, image: "srsim:25", license: lic, type: SR-7s}
  nodes:
    now: {sfm: sfm-s, components: [{slot: A, type: cpm2-s}, {slot: 1, type: xcm2-7s}]}
    old: {components: [{slot: A, type: cpm2-s, sfm: sfm-s}, {slot: 1, type: xcm2-7s, sfm: sfm-s}]}
`,
		files: map[string]string{"lic": "a licence\n"},
		says: []string{
			`warning: sfm of a component is the old form of the node's sfm, and containerlab rejects it from 0.80 on (and at 1 more place) [field-deprecated]`,
			srsimIncomplete(" (and at 1 more place)"),
		},
		look: func(t *testing.T, r *result) {
			for _, node := range []string{"now", "old"} {
				p := r.plan(t, node)
				for _, c := range p.Containers {
					if got := c.Env["NOKIA_SROS_SFM"]; got != "sfm-s" {
						t.Errorf("%s: card %s has the fabric %q", node, c.Name, got)
					}
				}
			}
		},
	},
	{
		name: "SR OS: cards of a virtual machine",
		topo: `name: sros
topology:
  defaults: {kind: nokia_sros, image: "sros:25", type: sr-1, license: lic}
  nodes:
    now: {sfm: m-sfm, inject-ssh-keys: false, config-mode: mixed, components: [{slot: A, type: cpm, cpu: 2, ram: 4, max-nics: 6}]}
    old: {env: {NOKIA_SROS_SFM: m-sfm}, components: [{slot: A, type: cpm, env: {cpu: 2, ram: 4, max_nics: 6}}]}
`,
		files: map[string]string{"lic": "a licence\n"},
		says: []string{
			`warning: the environment variable NOKIA_SROS_SFM is the old form of sfm, and containerlab ignores it from 0.80 on [field-deprecated]`,
			`warning: env cpu of a component is the old form of cpu, which containerlab rejects from 0.80 on [field-deprecated]`,
		},
		look: func(t *testing.T, r *result) {
			want := "cpu=2 ram=4 max_nics=6 chassis=sr-1 slot=A sfm=m-sfm card=cpm"
			for _, node := range []string{"now", "old"} {
				if cmd := r.plan(t, node).Containers[0].Cmd; !slices.Contains(cmd, want) {
					t.Errorf("%s: the variant is not %q: %q", node, want, cmd)
				}
				if strings.Contains(text(r.plan(t, node)), "ssh-rsa") {
					t.Errorf("%s: SSH keys are added", node)
				}
			}
		},
	},
	{
		name: "SR Linux: prompt and gRPC server",
		topo: `name: srl
topology:
  defaults: {kind: nokia_srlinux, image: "srl:25.7.1"}
  nodes:
    d: {}
    n: {custom-prompt: false, eda-default-grpc-server: true}
`,
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]bool{"d": true, "n": false} {
				said := text(r.plan(t, node))
				if got := strings.Contains(said, "cat /tmp/clab-default-config\n\tprompt\n"); got != want {
					t.Errorf("%s: sets the prompt: %t, want %t", node, got, want)
				}
				if got := strings.Contains(said, "grpc-server eda-mgmt"); got != want {
					t.Errorf("%s: has servers for EDA alone: %t, want %t", node, got, want)
				}
			}
		},
	},
	{
		name: "cEOS: files for the flash",
		topo: `name: flash
topology:
  defaults: {kind: ceos, image: "ceos:4"}
  nodes:
    r1: {copy-to-flash: [cfg/__clabNodeName__.txt]}
    r2: {extras: {ceos-copy-to-flash: [cfg/__clabNodeName__.txt]}}
`,
		files: map[string]string{"cfg/r1.txt": "one\n", "cfg/r2.txt": "two\n"},
		says:  []string{`warning: extras.ceos-copy-to-flash is the old form of copy-to-flash, which containerlab 0.81 rejects [field-deprecated]`},
		look: func(t *testing.T, r *result) {
			for _, node := range []string{"r1", "r2"} {
				r.file(t, node, "flash/"+node+".txt")
			}
		},
	},
}

// config is the startup-config of an SR-SIM.
func config(t *testing.T, r *result, node string) string {
	t.Helper()
	return string(r.file(t, node, "A/config/cf3/config.cfg").Content)
}
