package conform

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// loadLabs compiles topologies, or makes labs of every kind in dir.
func loadLabs(dir string, files []string) ([]*lab.Lab, error) {
	var out []*lab.Lab
	if len(files) == 0 {
		return kindLabs(dir)
	}
	for _, name := range files {
		src, err := topology.Open(context.Background(), name, os.Stdin)
		if err != nil {
			return nil, err
		}
		l, err := compileSource(src, os.Environ())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// marker is in a line of the startup-configs that the kinds are compared with.
const marker = "c9s-marker"

// The files of the labs of the kinds.
var labFiles = map[string]string{
	"node.cfg":         "# " + marker + " {{ print 1 }} $SITE ${SITE} $NODE_ONLY ${NO_SUCH} ${NO_SUCH:-default}\n",
	"node.partial.cfg": "# " + marker + " {{ print 1 }} $SITE\n",
	"node.json":        `{"` + marker + `": "$SITE"}` + "\n",
	"node.yaml":        "# " + marker + "\n",
	"node.xml":         "<!-- " + marker + " -->\n",
	"lic":              "a licence\n",
	"agent.yml":        "agent: yes\n",
	"flash.txt":        "for the flash\n",
	"c9s.yaml":         "",
}

// hostEnv is the environment of these labs.
var hostEnv = []string{"SITE=fra", "HOME=/home/someone", "TMPDIR=/var/tmp"}

// kindLabs are the labs of every kind: plain; with startup-config, licence and
// certificate; and with what is special to the kind, each of the latter in its releases.
func kindLabs(dir string) ([]*lab.Lab, error) {
	for name, text := range labFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	var out []*lab.Lab
	for _, k := range kinds.Builtin().All() {
		if k.Refused != "" || k.Since != "" { // newer kinds are the catalogue's alone
			continue
		}
		tags := releases[k.Name]
		if len(tags) == 0 {
			tags = []string{"1.2.3"}
		}
		for _, tag := range tags {
			for _, form := range append([]string{plainForm(k), fullForm(k)}, specialForms(k)...) {
				text := kindLab(k, tag, form)
				l, err := compileSource(&topology.Source{Name: "t.clab.yml", Base: "t.clab.yml", Dir: dir, Data: []byte(text)}, hostEnv)
				if err != nil {
					return nil, fmt.Errorf("kind %s: %w\n%s", k.Name, err, text)
				}
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// releases are the tags that kinds look at, and one that tells no release.
var releases = map[string][]string{
	"nokia_srlinux": {"23.10.2", "25.7.1", "latest"},
	"nokia_srsim":   {"25.7.R1", "26.3.R1", "latest"},
	"juniper_crpd":  {"23.2R1", "24.4R1"},
}

func plainForm(k *kinds.Kind) string { return typeField(k, 0) }

// typeField is the i-th type of a kind that needs one, or of one that has several for
// i > 0.
func typeField(k *kinds.Kind, i int) string {
	names := slices.Sorted(maps.Keys(k.Types.Values))
	if len(names) == 0 || i == 0 && !k.Types.Required {
		return ""
	}
	return ", type: '" + names[i%len(names)] + "'"
}

// fullForm is a node with all that may come from files.
func fullForm(k *kinds.Kind) string {
	if k.RootNamespace {
		return ""
	}
	return typeField(k, 0) + ", startup-config: " + startupFile(k) + ", license: lic, certificate: {issue: true}, env: {NODE_ONLY: '1'}"
}

func startupFile(k *kinds.Kind) string {
	switch {
	case k.Startup.Partial == "only":
		return "node.partial.cfg"
	case k.Startup.Extensions != nil:
		return "node.yaml"
	}
	return "node.cfg"
}

// specialForms are the values that only some kinds make something of.
func specialForms(k *kinds.Kind) []string {
	if k.RootNamespace {
		return nil
	}
	forms := []string{
		typeField(k, 1) + ", startup-config: " + startupFile(k) + ", enforce-startup-config: true, license: lic",
		typeField(k, 0) + ", suppress-startup-config: true, license: lic",
		typeField(k, 0) + ", license: lic, env: {A: b, USERNAME: me, PASSWORD: secret, QEMU_SMP: '3', QEMU_MEMORY: '5000', CONNECTION_MODE: macvtap}, credentials: {username: op, password: pw}, cmd: run this, user: someone, cap-add: [SYS_NICE], sysctls: {net.core.somaxconn: '9'}, memory: 2gb, cpu: 1.5, labels: {team/x: core}",
	}
	if k.Startup.Partial != "none" && k.Startup.Extensions == nil && k.Startup.File != "" {
		forms = append(forms, typeField(k, 0)+", startup-config: node.partial.cfg, license: lic")
	}
	return append(forms, special[k.Name]...)
}

// special is what the page of a kind says of it alone.
var special = map[string][]string{
	"arista_ceos":   {", env: {CLAB_MGMT_VRF: MGMT}, extras: {ceos-copy-to-flash: [flash.txt]}"},
	"cisco_c8000v":  {", type: controller"},
	"cisco_iol":     {", type: L2"},
	"cisco_sdwan":   {", startup-config: node.xml", ", type: controller"},
	"cisco_vios":    {", type: switch", ", type: l2, startup-config: node.partial.cfg"},
	"linux":         {", network-mode: none", ", network-mode: host", ", exec: [ip link, sh -c 'echo a b']"},
	"nokia_srlinux": {", startup-config: node.json", ", type: ixr-6e", ", extras: {srl-agents: [agent.yml]}", ", dns: {servers: [192.0.2.53]}"},
	"nokia_sros": {
		", license: lic, type: sr-7, components: [{slot: A, type: cpm5}, {slot: 1, type: iom4-e, env: {cpu: '2'}, mda: [{slot: 1, type: me6-10gb-sfp+}]}]",
		", license: lic, env: {CLAB_SROS_CONFIG_MODE: classic}",
	},
	"nokia_srsim": {
		", license: lic, type: SR-1s", ", license: lic, type: ixr-e2", ", license: lic, type: sar-hm",
		", license: lic, type: sr-7, certificate: {issue: true}, components: [{slot: A}, {slot: B}, {slot: 1, type: iom4-e-b, mda: [{slot: 1, type: me6-100gb-qsfp28}]}]",
		", license: lic, env: {CLAB_SROS_CONFIG_MODE: classic}", ", license: lic, env: {NOKIA_SROS_SLOT: '1'}",
	},
	"sonic-vm": {", startup-config: node.json"},
}

// kindLab is a node of a kind, linked to another by the first name that the kind's rules
// allow.
func kindLab(k *kinds.Kind, tag, fields string) string {
	iface := "eth1"
	for _, name := range []string{"eth1", "ethernet-1/1", "1/1/1", "1/1/c1/1", "Gi0-0-0-0", "Hu0_0_0_1", "swp1", "Ethernet0/1", "eth4", "et-0/0/0", "port1", "e1-1"} {
		probe := &lab.Node{Name: "n1", Kind: k.Name}
		linux, alias, err := k.MapInterface(name, probe)
		if err != nil {
			continue
		}
		probe.Endpoints = []*lab.Endpoint{{Node: "n1", Interface: linux, Alias: alias}}
		if len(k.CheckInterfaces(probe)) == 0 {
			iface = name
			break
		}
	}
	if strings.Contains(fields, "components:") {
		iface = "1/1/1"
	}
	if strings.Contains(fields, "network-mode: host") {
		return fmt.Sprintf("name: t\ntopology:\n  nodes:\n    n1: {kind: %s, image: 'registry.example/img:%s'%s}\n", k.Name, tag, fields)
	}
	return fmt.Sprintf("name: t\ntopology:\n  nodes:\n    n1: {kind: %s, image: 'registry.example/img:%s'%s}\n    %s: {kind: linux, image: 'alpine:3'}\n  links:\n    - endpoints: [\"n1:%s\", \"%s:eth1\"]\n",
		k.Name, tag, fields, peer, iface, peer)
}

func compileSource(src *topology.Source, env []string) (*lab.Lab, error) {
	f, diags := topology.Load(context.Background(), src, topology.Options{Env: env})
	if f == nil {
		return nil, fmt.Errorf("%s", diags[0])
	}
	home, _ := os.UserHomeDir()
	l, more := compile.Compile(context.Background(), f, compile.Options{AllowMissing: true, Home: home, Env: env})
	for _, d := range append(diags, more...) {
		if d.Severity == "error" {
			return nil, fmt.Errorf("%s", d)
		}
	}
	return l, nil
}
