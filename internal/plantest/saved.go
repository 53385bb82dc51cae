package plantest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a device saves wins over what the topology gives, at every start but the first.
var savedLabs = []lab{
	{
		name: "a saved configuration wins",
		topo: `name: keep
topology:
  defaults: {image: "img:1", startup-config: cfg}
  nodes:
    eos: {kind: arista_ceos}
    junos: {kind: juniper_crpd}
    vm: {kind: juniper_vmx}
    vyos: {kind: vyosnetworks_vyos}
    sonic: {kind: sonic-vm}
    csrx: {kind: juniper_csrx}
    veos: {kind: arista_veos, enforce-startup-config: true}
    crpd2: {kind: juniper_crpd, enforce-startup-config: true}
    iol: {kind: cisco_iol}
`,
		files: map[string]string{"cfg": "hostname from-the-topology\n", "c9s.yaml": persistence},
		look: func(t *testing.T, r *result) {
			for _, want := range []struct {
				node, file string
				seed       bool
				persist    string
			}{
				{"eos", "flash/startup-config", true, "flash"},
				{"junos", "config/juniper.conf", true, "config"},
				{"vm", "config/startup-config.cfg", true, "config"},
				{"vyos", "config/config.boot", true, "config"},
				{"sonic", "config/config_db.json", true, "config"},
				{"csrx", "config/juniper.conf", true, "config"},
				{"veos", "config/startup-config.cfg", false, "config"},
				{"crpd2", "config/juniper.conf", false, "config"},
				// IOL loads its NVRAM, and this file only where that is empty.
				{"iol", "boot_config.txt", false, "nvram_"},
			} {
				f, p := r.file(t, want.node, want.file), r.plan(t, want.node)
				if f.Seed != want.seed {
					t.Errorf("%s: %s is laid out once: %v, want %v", want.node, f.Path, f.Seed, want.seed)
				}
				if len(p.Persist) == 0 || !strings.HasPrefix(p.Persist[0], want.persist) {
					t.Errorf("%s keeps %v, want %s", want.node, p.Persist, want.persist)
				}
			}
			if nvram := r.file(t, "iol", r.plan(t, "iol").Persist[0]); !nvram.Seed {
				t.Error("iol: its NVRAM is emptied at every start")
			}
		},
	},
	{
		name: "every persistent Pod has a claim",
		topo: `name: claims
topology:
  defaults: {image: "img:1"}
  nodes:
    eos: {kind: arista_ceos}
    iol: {kind: cisco_iol}
    srl: {kind: nokia_srlinux}
    sim: {kind: nokia_srsim, license: lic}
    vyos: {kind: vyosnetworks_vyos}
    vm: {kind: cisco_csr1000v}
    host: {kind: linux}
`,
		files: map[string]string{"lic": "a licence\n", "c9s.yaml": persistence},
		says:  []string{srsimIncomplete("")},
		look: func(t *testing.T, r *result) {
			objects, errs := r.run("render")
			var claims []string
			for doc := range strings.SplitSeq(objects, "\n---\n") {
				if strings.Contains(doc, "kind: PersistentVolumeClaim\n") {
					_, rest, _ := strings.Cut(doc, "\n  name: ")
					name, _, _ := strings.Cut(rest, "\n")
					claims = append(claims, strings.TrimSpace(name))
				}
			}
			slices.Sort(claims)
			// A linux node saves nothing.
			if got, want := fmt.Sprint(claims), "[eos-data iol-data sim-data srl-data vm-data vyos-data]"; got != want {
				t.Errorf("claims %s, want %s\n%s", got, want, errs)
			}
		},
	},
	{
		name: "named volumes are on the claim of the policy",
		topo: `name: shared
topology:
  defaults: {kind: linux, image: "img:1"}
  nodes:
    a: {volumes: ["exchange:/x", "own:/o"]}
    b: {volumes: ["exchange:/y"]}
    c: {volumes: ["pod:/p"]}
    d: {volumes: ["pod:/p"], network-mode: "container:c"}
`,
		files: map[string]string{"c9s.yaml": "apiVersion: c9s.dev/v1\nkind: Policy\nshared-claim: team-files\n"},
		look: func(t *testing.T, r *result) {
			objects, errs := r.run("render")
			claims, folders := strings.Count(objects, "claimName: team-files"), map[string]int{}
			for _, folder := range regexp.MustCompile(`subPath: c9s/shared/[\w-]+`).FindAllString(objects, -1) {
				folders[folder]++
			}
			if claims != 3 || len(folders) != 3 || strings.Contains(objects, "kind: PersistentVolumeClaim") {
				t.Errorf("%d Pods have the claim, with the folders %v\n%s", claims, folders, errs)
			}
		},
	},
	{
		name: "SR Linux types its defaults at the first start only",
		topo: `name: keep
topology:
  defaults: {kind: nokia_srlinux, image: "srl:25.7.1", startup-config: cfg.cli}
  nodes:
    a: {}
    b: {enforce-startup-config: true}
    j: {startup-config: cfg.json}
    k: {startup-config: cfg.json, enforce-startup-config: true}
`,
		files: map[string]string{"cfg.cli": "set / system name host-name x\n", "cfg.json": "{\"system\": {}}\n", "c9s.yaml": persistence},
		look: func(t *testing.T, r *result) {
			const leave = `[ -z "$enforced" ] && [ -e /etc/opt/srlinux/config.json ] && exit 0`
			for node, enforced := range map[string]string{"a": "enforced=''", "b": "enforced='yes'"} {
				if all := text(r.plan(t, node)); !strings.Contains(all, leave) || !strings.Contains(all, enforced) {
					t.Errorf("%s: the setup script does not look for a saved configuration, or has not %s", node, enforced)
				}
			}
			for node, seed := range map[string]bool{"j": true, "k": false} {
				if f := r.file(t, node, "config/config.json"); f.Seed != seed {
					t.Errorf("%s: config.json is laid out once: %v, want %v", node, f.Seed, seed)
				}
			}
		},
	},
}

const persistence = `apiVersion: c9s.dev/v1
kind: Policy
profiles:
  - name: all
    set: {persistence: {enabled: true, size: 1Gi}}
`
