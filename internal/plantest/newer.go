package plantest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/plan"
)

// Labs of containerlab 0.80 and 0.81.
var newerLabs = []lab{
	{
		name: "FRR",
		topo: `name: frr
topology:
  defaults: {kind: frr, image: "frr:10"}
  nodes:
    a: {sysctls: {net.ipv4.ip_forward: 0}}
    b: {daemons: [bgpd, zebra]}
    c: {extras: {frr: {daemons: [bgpd, zebra]}}}
    d: {daemons: [bgpd], extras: {frr: {daemons: [ospfd]}}}
    e: {kind: frrouting, startup-config: frr.conf, enforce-startup-config: true}
    f: {suppress-startup-config: true}
  links:
    - endpoints: ["a:eth1", "b:eth1"]
`,
		files: map[string]string{"frr.conf": "hostname {{ .ShortName }}\n"},
		says: []string{
			`warning: extras.frr.daemons is the old form of daemons, which containerlab 0.81 rejects [field-deprecated]`,
			`warning: extras.frr.daemons has no effect, since daemons is set, which replaces it [field-deprecated]`,
		},
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]string{"a": "frr defaults traditional\nlog stdout\n!\n!\n", "e": "hostname e\n"} {
				if got := string(r.file(t, node, "config/frr.conf").Content); got != want {
					t.Errorf("%s: frr.conf is\n%s", node, got)
				}
			}
			if !r.file(t, "a", "config/frr.conf").Seed || r.file(t, "e", "config/frr.conf").Seed {
				t.Error("a saved configuration must win unless the startup-config is enforced")
			}
			if slices.ContainsFunc(r.plan(t, "f").Files, func(f plan.File) bool { return f.Path == "config/frr.conf" }) {
				t.Error("f: a configuration is generated although it is suppressed")
			}
			for node, want := range map[string]string{"a": "all", "b": "bgpd", "c": "bgpd", "d": "bgpd"} {
				text := string(r.file(t, node, "config/daemons").Content)
				if got := running(text); got != want || !strings.Contains(text, `bgpd_options="-A 127.0.0.1"`) || !strings.Contains(text, "vtysh_enable=yes") {
					t.Errorf("%s: the daemons %s start, want %s\n%s", node, got, want, text)
				}
			}
			if got := string(r.file(t, "a", "config/vtysh.conf").Content); got != "service integrated-vtysh-config\n" {
				t.Errorf("vtysh.conf is %q", got)
			}
			c := r.plan(t, "a").Containers[0]
			if want := map[string]string{"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1"}; !maps.Equal(c.Sysctls, want) || !c.Privileged {
				t.Errorf("sysctls %v, privileged %t", c.Sysctls, c.Privileged)
			}
		},
	},
	{
		name: "FRR: a daemon that does not exist",
		topo: `name: frr
topology:
  nodes:
    a: {kind: frr, image: "frr:10", daemons: [bgpx]}
`,
		says: []string{`error: daemons must be a list of bgpd, ospfd, ospf6d, ripd, ripngd, isisd, pimd, pim6d, ldpd, nhrpd, eigrpd, babeld, sharpd, pbrd, bfdd, fabricd, vrrpd, pathd, zebra, staticd, mgmtd, watchfrr, not the text "bgpx" [bad-value]`},
	},
	{
		name: "IOL: application ids",
		topo: `name: pids
topology:
  defaults: {kind: cisco_iol, image: "iol:17"}
  kinds:
    cisco_iol: {pid-offset: 64}
  nodes:
    a: {}
    b: {}
    c: {env: {IOL_PID: "9"}}
`,
		look: func(t *testing.T, r *result) {
			for _, node := range []string{"a", "b", "c"} {
				netmap := string(r.file(t, node, "NETMAP").Content)
				id, _, _ := strings.Cut(netmap, ":")
				if n, err := strconv.Atoi(id); err != nil || n <= 64 {
					t.Errorf("%s: NETMAP %q has no offset", node, netmap)
				} else {
					r.file(t, node, fmt.Sprintf("nvram_%05d", n))
				}
				want := id
				if node == "c" {
					want = "9"
				}
				if got := env(r, t, node)["IOL_PID"]; got != want {
					t.Errorf("%s: IOL_PID %s, want %s", node, got, want)
				}
			}
		},
	},
	{
		name: "IOL: another management port",
		topo: `name: ports
topology:
  defaults: {kind: cisco_iol, image: "iol:17"}
  nodes:
    a: {mgmt-intf: Ethernet1/0}
    b: {mgmt-intf: e0/1, env: {CLAB_IOL_NUM_SLOTS: "4"}}
  links:
    - endpoints: ["a:Ethernet0/0", "b:e0/0"]
    - endpoints: ["a:e0/1", "b:e2/0"]
`,
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]string{"a": "eth4 eth1 2", "b": "eth1 eth8 4"} {
				p := r.plan(t, node)
				if got := fmt.Sprintf("%s %s %s", p.Interfaces[0].Name, p.Interfaces[1].Name, env(r, t, node)["CLAB_IOL_NUM_SLOTS"]); got != want {
					t.Errorf("%s: interfaces and slots are %s, want %s", node, got, want)
				}
			}
			if got := string(r.file(t, "a", "NETMAP").Content); got != strings.ReplaceAll("N:1/0 513:1/0\nN:0/0 513:0/0\nN:0/1 513:0/1\n", "N", env(r, t, "a")["IOL_PID"]) {
				t.Errorf("NETMAP is\n%s", got)
			}
			if got := string(r.file(t, "a", "iouyap.ini").Content); !strings.HasSuffix(got, "[513:1/0]\neth_dev = eth0\n[513:0/0]\neth_dev = eth4\n[513:0/1]\neth_dev = eth1\n") {
				t.Errorf("iouyap.ini is\n%s", got)
			}
			if got := string(r.file(t, "a", "boot_config.txt").Content); !strings.Contains(got, "interface Ethernet1/0\n description management") || strings.Count(got, "interface Ethernet0/0\n") != 1 {
				t.Errorf("the configuration is\n%s", got)
			}
		},
	},
	{
		name: "IOL: management ports that do not exist",
		topo: `name: ports
topology:
  defaults: {kind: cisco_iol, image: "iol:17"}
  nodes:
    a: {mgmt-intf: Ethernet1/4}
    b: {mgmt-intf: Ethernet1/0}
    c: {}
  links:
    - endpoints: ["b:e1/0", "c:e0/1"]
`,
		says: []string{
			`error: mgmt-intf must be text like Ethernet1/0, not the text "Ethernet1/4" [bad-value]`,
			`error: node "b": cisco_iol has no interface "e1/0": it is the management interface; allowed are Ethernet<slot>/<port> or e<slot>/<port>, slot 0 to 9, port 0 to 3 but the management port (0/0, or mgmt-intf), or ethX [interface-name]`,
		},
	},
	{
		name: "IOL: configurations of the first start",
		topo: `name: boot
topology:
  defaults: {kind: cisco_iol, image: "iol:17"}
  nodes:
    a: {bootstrap-config: none, startup-config: x.partial.cfg}
    b: {bootstrap-config: None}
    c: {bootstrap-config: base.cfg, startup-config: x.partial.cfg}
    d: {bootstrap-config: base.cfg, startup-config: whole.cfg}
    e: {startup-config: y.partial.cfg}
`,
		files: map[string]string{
			"x.partial.cfg": "router ospf 1\n", "y.partial.cfg": "router ospf 1\n router-id {{ .MgmtIPv4Addr }}\n",
			"base.cfg": "hostname {{ .Hostname }}\n{{ .PartialCfg }}end\n", "whole.cfg": "hostname whole\n",
		},
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]string{
				"b": "\n", "c": "hostname c\nrouter ospf 1\nend\n",
			} {
				if got := string(r.file(t, node, "boot_config.txt").Content); got != want {
					t.Errorf("%s: the configuration is %q, want %q", node, got, want)
				}
			}
			for node, want := range map[string]string{"a": "x.partial.cfg", "d": "whole.cfg"} {
				if f := r.file(t, node, "boot_config.txt"); f.Ref == nil || f.Ref.Origin != want {
					t.Errorf("%s: the configuration is %q, want the file %s", node, f.Content, want)
				}
			}
			if got := string(r.file(t, "e", "boot_config.txt").Content); !strings.Contains(got, "router ospf 1\n router-id 172.20.20.") {
				t.Errorf("e: the configuration is %q", got)
			}
		},
	},
	{
		name: "IOL: a bootstrap-config that does not exist",
		topo: `name: boot
topology:
  nodes:
    a: {kind: cisco_iol, image: "iol:17", bootstrap-config: nowhere.cfg}
`,
		says: []string{`error: bootstrap-config "nowhere.cfg" does not exist [file-missing]`},
	},
	{
		name: "IOL: switches by their image",
		topo: `name: layers
topology:
  defaults: {kind: cisco_iol}
  nodes:
    a: {image: "registry/cisco_IOL-L2:17"}
    b: {image: "cl2.example.com/cisco_iol:1"}
    c: {image: "registry/cisco_iol-l2:17", type: iol}
`,
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]bool{"a": true, "b": false, "c": false} {
				if got := strings.Contains(string(r.file(t, node, "boot_config.txt").Content), "no switchport"); got != want {
					t.Errorf("%s is a switch: %t, want %t", node, got, want)
				}
			}
		},
	},
	{
		name: "Fortinet: licence, processors and memory",
		topo: `name: forti
topology:
  defaults: {kind: fortinet_fortiproxy, image: "f:1"}
  nodes:
    a: {license: lic, cpu: 4, memory: 4GB}
    b: {memory: 4GiB, cpu: 1.5, env: {QEMU_SMP: "8"}}
    c: {kind: fortinet_fortigate, license: lic}
  links:
    - endpoints: ["a:port2", "b:port3"]
`,
		files: map[string]string{"lic": "a licence\n"},
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]string{"a": "4 3815", "b": "8 4096", "c": "2 2048"} {
				e := env(r, t, node)
				if got := e["QEMU_SMP"] + " " + e["QEMU_MEMORY"]; got != want {
					t.Errorf("%s: QEMU has %s, want %s", node, got, want)
				}
			}
			for _, node := range []string{"a", "c"} {
				if !r.file(t, node, "tftpboot/appliance.lic").Secret || !mounts(r, t, node, "/tftpboot") {
					t.Errorf("%s: the licence is not a Secret at /tftpboot", node)
				}
			}
			if mounts(r, t, "b", "/tftpboot") {
				t.Error("b: a folder for the licence without one")
			}
			if got := r.plan(t, "a").Interfaces[0].Name; got != "eth1" {
				t.Errorf("port2 is %s", got)
			}
		},
	},
	{
		name: "Catalyst 8000V: zero-touch provisioning, and the first port",
		topo: `name: c8000v
topology:
  defaults: {kind: cisco_c8000v, image: "c:1"}
  nodes:
    a: {type: ztp}
    b: {type: ztp, startup-config: cfg, suppress-startup-config: true}
    c: {network-mode: none}
    d: {}
    e: {kind: dell_ftosv}
  links:
    - endpoints: ["c:Gi1", "d:Gi2"]
    - endpoints: ["e:1/1/3", "d:Gi3"]
    - endpoints: ["e:ethernet1/1/1", "d:Gi4"]
    - endpoints: ["e:ethernet 1/1/2", "d:Gi5"]
`,
		files: map[string]string{"cfg": "hostname x\n"},
		look: func(t *testing.T, r *result) {
			for _, node := range []string{"a", "b"} {
				if got := env(r, t, node)["MODE"]; got != "ztp" {
					t.Errorf("%s: MODE is %q", node, got)
				}
			}
			for node, want := range map[string]string{"c": "eth1", "d": "eth1 eth2 eth3 eth4", "e": "eth3 eth1 eth2"} {
				var got []string
				for _, i := range r.plan(t, node).Interfaces {
					got = append(got, i.Name)
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s: interfaces %v, want %s", node, got, want)
				}
			}
		},
	},
	{
		name: "Catalyst 8000V: zero-touch provisioning with a startup-config",
		topo: `name: c8000v
topology:
  defaults: {kind: cisco_c8000v, image: "c:1"}
  nodes:
    a: {type: ztp, startup-config: cfg}
`,
		files: map[string]string{"cfg": "hostname x\n"},
		says:  []string{`error: node "a": type ztp of kind cisco_c8000v takes no startup-config [startup-config-conflict]`},
	},
	{
		name: "Catalyst 8000V: the port of the management interface",
		topo: `name: c8000v
topology:
  defaults: {kind: cisco_c8000v, image: "c:1"}
  nodes:
    a: {}
    b: {}
  links:
    - endpoints: ["b:Gi1", "a:Gi2"]
`,
		says: []string{
			`error: node "b": cisco_c8000v has no interface "Gi1": the first data port is number 2; allowed are GiX or GigabitEthernetX, X from 2 on (from 1 on with network-mode none), or ethX, X from 1 on [interface-name]`,
		},
	},
	{
		name: "SR Linux: modular chassis",
		topo: `name: chassis
topology:
  defaults: {kind: nokia_srlinux, image: "srl:25.7.1"}
  nodes:
    a: {type: ixr-10e, components: [{slot: 1, type: imm3-36-800g-osfp}]}
    b: {type: ixr-18e-gen3-sync}
    c: {type: ixr6e}
    d: {type: ixr18e}
    e: {type: ixr-6e, components: [{type: imm60-100g-qsfp28}], env: {SRL_CHASSIS_MODE: MINE}}
    f: {type: ixr-10e}
    g: {type: ixr-10e, components: [{slot: 10, type: imm36-400g-qsfpdd}, {slot: 2, type: imm60-100g-qsfp28}]}
    h: {}
`,
		says: []string{`warning: node "g": SR Linux in a container may not bring up more than one card [kind-incomplete]`},
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]string{
				"a": "69,184 1:53,14 GEN3_ONLY", "b": "70,25 1:46,11 GEN3_ONLY", "c": "68,184 1:182,199 GEN2CP_ONLY",
				"d": "70,184 1:33,13 GEN3_ONLY", "e": "68,184 1:183,219 MINE", "f": "69,184 1:182,199 GEN2CP_ONLY",
				"g": "69,184 2:183,219 10:182,199 GEN2CP_ONLY", "h": "72,187 1:187,208 ",
			} {
				var topo struct {
					Chassis struct {
						Type int `yaml:"chassis_type"`
						CPM  int `yaml:"cpm_card_type"`
					} `yaml:"chassis_configuration"`
					Slots yaml.Node `yaml:"slot_configuration"`
				}
				if err := yaml.Unmarshal(r.file(t, node, "topology.yml").Content, &topo); err != nil {
					t.Errorf("%s: %v", node, err)
				}
				got := fmt.Sprintf("%d,%d ", topo.Chassis.Type, topo.Chassis.CPM)
				for i := 0; i+1 < len(topo.Slots.Content); i += 2 {
					var card struct {
						Card int `yaml:"card_type"`
						MDA  int `yaml:"mda_type"`
					}
					if err := topo.Slots.Content[i+1].Decode(&card); err != nil {
						t.Errorf("%s: %v", node, err)
					}
					got += fmt.Sprintf("%s:%d,%d ", topo.Slots.Content[i].Value, card.Card, card.MDA)
				}
				if got += env(r, t, node)["SRL_CHASSIS_MODE"]; got != want {
					t.Errorf("%s: the chassis is %q, want %q", node, got, want)
				}
			}
		},
	},
	{
		name: "SR Linux: cards that do not fit",
		topo: `name: chassis
topology:
  defaults: {kind: nokia_srlinux, image: "srl:25.7.1"}
  nodes:
    a: {type: ixr-d2l, components: [{slot: 1, type: imm36-400g-qsfpdd}]}
    b: {type: ixr-6e, components: [{slot: 1, type: imm36-400g-qsfpdd}, {slot: 2, type: imm3-36-800g-osfp}]}
    c: {type: ixr-6e, components: [{slot: 1, type: nothing}]}
`,
		says: []string{
			`error: node "a": type ixr-d2l of kind nokia_srlinux is not modular [components]`,
			`error: node "b": the cards imm36-400g-qsfpdd and imm3-36-800g-osfp do not fit in one chassis [components]`,
			`error: node "c": type ixr-6e has no card "nothing" [components]`,
		},
	},
	{
		name: "SR Linux: two cards in one slot",
		topo: `name: chassis
topology:
  nodes:
    a: {kind: srl, image: "srl:25.7.1", type: ixr-6e, components: [{slot: 1, type: imm36-400g-qsfpdd}, {slot: "1", type: imm36-400g-qsfpdd}]}
`,
		says: []string{`error: slot "1" of node "a" is used twice (also at DIR/t.clab.yml:4:68) [components]`},
	},
	{
		name: "labels that expose ports",
		topo: `name: labels
topology:
  nodes:
    a: {kind: linux, image: "i:1", labels: {c9s.run/exposePorts: "9273/tcp, 8125/udp,77", c9s.run/appProtocols: "9273/tcp=kubernetes.io/h2c"}}
`,
		look: func(t *testing.T, r *result) {
			objects, errs := r.run("render")
			for _, want := range []string{"name: tcp-9273", "name: udp-8125", "name: tcp-77", "appProtocol: kubernetes.io/h2c"} {
				if !strings.Contains(objects, want) {
					t.Errorf("the Service has no %s:\n%s", want, errs)
				}
			}
			if env(r, t, "a")["CLAB_LABEL_C9S_RUN_EXPOSEPORTS"] == "" {
				t.Error("the label is not in the environment")
			}
		},
	},
	{
		name: "labels that expose no ports",
		topo: `name: labels
topology:
  nodes:
    a: {kind: linux, image: "i:1", labels: {c9s.run/exposePorts: "80:80,web"}}
`,
		says: []string{
			`error: port "80:80" of the label c9s.run/exposePorts is not a number and a protocol [bad-port]`,
			`error: port "web" of the label c9s.run/exposePorts is not a number and a protocol [bad-port]`,
		},
	},
	{
		name: "SR Linux: a port with a leading zero",
		topo: `name: chassis
topology:
  defaults: {kind: nokia_srlinux, image: "srl:25.7.1"}
  nodes:
    a: {}
    b: {}
  links:
    - endpoints: ["a:e1-1", "b:e1-01"]
`,
		says: []string{
			`error: interface "e1-01" of node "b" (nokia_srlinux): not a name that this kind has [interface-name]`,
		},
	},
	{
		name: "Cumulus VX: ports that are split",
		topo: `name: breakouts
topology:
  defaults: {image: "c:1"}
  nodes:
    a: {kind: nvidia_cumulusvx, port-count: 64, breakouts: [{port: 1..20, channels: 4}, {port: 64, channels: 2}]}
    b: {kind: nvidia_cumulusvx}
    h: {kind: linux}
  links:
    - endpoints: ["a:swp1s0", "h:eth1"]
    - endpoints: ["a:swp20s3", "h:eth2"]
    - endpoints: ["a:swp64s1", "h:eth3"]
    - endpoints: ["a:swp21", "h:eth4"]
    - endpoints: ["a:eth80", "b:swp7"]
`,
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]string{"a": "eth65 eth144 eth146 eth21 eth80", "b": "eth7"} {
				var got []string
				for _, i := range r.plan(t, node).Interfaces {
					got = append(got, i.Name)
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s: interfaces %v, want %s", node, got, want)
				}
			}
			var ports []string
			for line := range strings.Lines(string(r.file(t, "a", "config/ports.conf").Content)) {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
					ports = append(ports, line)
				}
			}
			if len(ports) != 64 || ports[0] != "1=4x" || ports[19] != "20=4x" || ports[20] != "21=1x" || ports[63] != "64=2x" {
				t.Errorf("ports.conf has %d ports: %v", len(ports), ports)
			}
			if slices.ContainsFunc(r.plan(t, "b").Files, func(f plan.File) bool { return f.Path == "config/ports.conf" }) {
				t.Error("b has a file of ports")
			}
		},
	},
	{
		name: "Cumulus VX: ports that do not exist",
		topo: `name: breakouts
topology:
  defaults: {kind: nvidia_cumulusvx, image: "c:1"}
  kinds:
    nvidia_cumulusvx: {port-count: 64, breakouts: [{port: 1..2, channels: 4}]}
  nodes:
    a: {}
    b: {}
    c: {breakouts: [{port: 1..3, channels: 2}, {port: 3, channels: 2}]}
    d: {breakouts: [{port: 5..2, channels: 2}]}
    e: {port-count: 999}
    f: {breakouts: null}
    g: {breakouts: [{port: 60..65, channels: 2}]}
    h: {breakouts: [{port: 1, channels: 3}]}
    i: {breakouts: [{port: 1}]}
  links:
    - endpoints: ["a:swp1", "b:swp3"]
    - endpoints: ["a:swp1s4", "b:swp4"]
    - endpoints: ["a:swp65", "b:swp5"]
    - endpoints: ["a:swp3s0", "b:swp6"]
    - endpoints: ["b:eth73", "a:swp7"]
    - endpoints: ["c:swp1", "d:swp1"]
`,
		says: []string{
			`error: node "c": port 3 is in breakouts twice [kind-key]`,
			`error: node "d": the ports 5..2 do not ascend [kind-key]`,
			`error: node "e": the ports and lanes are 1007, more than 999 [kind-key]`,
			`error: node "f": port-count needs breakouts, the ports that are split [kind-key]`,
			`error: node "g": port 60..65 is not between 1 and port-count, 64 [kind-key]`,
			`error: channels must be one of 2, 4, 8, not the number 3 [bad-value]`,
			`error: an entry of breakouts has no channels [bad-value]`,
			`error: node "a": nvidia_cumulusvx has no interface "swp1": port 1 is split into the lanes 0 to 3; allowed are swpX or ethX, X from 1 on, or swpXsY for lane Y of a port in breakouts [interface-name]`,
			`error: node "a": nvidia_cumulusvx has no interface "swp1s4": port 1 has the lanes 0 to 3; allowed are swpX or ethX, X from 1 on, or swpXsY for lane Y of a port in breakouts [interface-name]`,
			`error: node "a": nvidia_cumulusvx has no interface "swp65": the switch has the ports 1 to 64; allowed are swpX or ethX, X from 1 on, or swpXsY for lane Y of a port in breakouts [interface-name]`,
			`error: node "a": nvidia_cumulusvx has no interface "swp3s0": port 3 is not split; allowed are swpX or ethX, X from 1 on, or swpXsY for lane Y of a port in breakouts [interface-name]`,
			`error: interface "eth73" of node "b" (nvidia_cumulusvx): the switch has 72 ports and lanes [interface-name]`,
		},
	},
	{
		name: "Cumulus VX: one of the two keys",
		topo: `name: breakouts
topology:
  nodes:
    a: {kind: nvidia_cumulusvx, image: "c:1", port-count: 64}
    b: {kind: nvidia_cumulusvx, image: "c:1", breakouts: [{port: 1, channels: 4}]}
`,
		says: []string{
			`error: node "a": port-count needs breakouts, the ports that are split [kind-key]`,
			`error: node "b": breakouts needs port-count, the number of the switch's ports [kind-key]`,
		},
	},
	{
		name: "SR-SIM: control cards know their management address",
		topo: `name: cpm
mgmt: {ipv4-subnet: 172.20.20.0/24, ipv6-subnet: "3fff:172:20:20::/64"}
topology:
  defaults: {kind: nokia_srsim, image: "srsim:25", license: lic}
  nodes:
    a: {type: SR-7s, mgmt-ipv4: 172.20.20.9, mgmt-ipv6: "3fff:172:20:20::9", components: [{slot: A, type: cpm2-s}, {slot: B, type: cpm2-s}, {slot: 1, type: xcm2-7s}]}
    b: {type: SR-7s, components: [{slot: A, type: cpm2-s, env: {NOKIA_SROS_STATIC_ROUTE_1: "10.0.0.0/8@10.0.0.1"}}, {slot: 1, type: xcm2-7s}]}
    c: {type: SR-7s, components: [{slot: A, type: cpm2-s, env: {NOKIA_SROS_MGMT_IF: eth5}}, {slot: 1, type: xcm2-7s}]}
    d: {type: sr-1}
    e: {type: ixr-r6, components: [{slot: A}, {slot: B}]}
`,
		files: map[string]string{"lic": "a licence\n"},
		says: []string{
			srsimIncomplete(" (and at 4 more places)"),
			`warning: kind nokia_srsim: the default configuration of the built-in planner has no parts of its own for the IXR and SAR families [kind-incomplete]`,
		},
		look: func(t *testing.T, r *result) {
			for _, name := range []string{"a/a", "a/b", "e/a", "e/b"} {
				node, card, _ := strings.Cut(name, "/")
				if e := cardEnv(r, t, node, card); !strings.HasSuffix(e["NOKIA_SROS_ADDRESS_IPV4_ACTIVE"], "/24") || e["NOKIA_SROS_STATIC_ROUTE_1"] != "0.0.0.0/0@172.20.20.1" || !strings.HasSuffix(e["NOKIA_SROS_ADDRESS_IPV6_ACTIVE"], "/64") || e["NOKIA_SROS_STATIC_ROUTE_2"] != "::/0@3fff:172:20:20::1" {
					t.Errorf("%s: the environment is %v", name, e)
				}
			}
			if got := cardEnv(r, t, "a", "a")["NOKIA_SROS_ADDRESS_IPV4_ACTIVE"]; got != "172.20.20.9/24" {
				t.Errorf("a: the address is %q", got)
			}
			for _, name := range []string{"a/1", "b/a", "c/a"} {
				node, card, _ := strings.Cut(name, "/")
				if got := cardEnv(r, t, node, card)["NOKIA_SROS_ADDRESS_IPV4_ACTIVE"]; got != "" {
					t.Errorf("%s: the address is %q", name, got)
				}
			}
			if n := len(r.plan(t, "d").Containers); n != 1 || env(r, t, "d")["NOKIA_SROS_ADDRESS_IPV4_ACTIVE"] != "" {
				t.Errorf("d: %d containers, environment %v", n, env(r, t, "d"))
			}
		},
	},
	{
		name: "variables of containerlab's own process",
		topo: `name: own
topology:
  nodes:
    a: {kind: nokia_srlinux, image: "srl:25.7.1"}
    b: {kind: srl, image: "srl:25.7.1", custom-prompt: true, eda-default-grpc-server: false}
    c: {kind: nokia_sros, image: "sros:25", license: lic}
`,
		files: map[string]string{"lic": "a licence\n"},
		env:   []string{"CLAB_CUSTOM_PROMPT=FALSE", "CLAB_EDA_USE_DEFAULT_GRPC_SERVER=1", "CLAB_SKIP_SROS_SSH_KEY_CONFIG=1"},
		says: []string{
			`warning: CLAB_CUSTOM_PROMPT in the environment of c9s sets custom-prompt to false for nodes of kind nokia_srlinux; containerlab ignores it from 0.80 on [field-deprecated]`,
			`warning: CLAB_EDA_USE_DEFAULT_GRPC_SERVER in the environment of c9s sets eda-default-grpc-server to true for nodes of kind nokia_srlinux; containerlab ignores it from 0.80 on [field-deprecated]`,
			`warning: CLAB_SKIP_SROS_SSH_KEY_CONFIG in the environment of c9s sets inject-ssh-keys to false for nodes of kind nokia_sros; containerlab ignores it from 0.80 on [field-deprecated]`,
		},
		look: func(t *testing.T, r *result) {
			for node, want := range map[string]bool{"a": false, "b": true} {
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
		name: "components of a kind without cards",
		topo: `name: cards
topology:
  defaults: {image: "i:1", components: [{slot: 1, type: x}]}
  nodes:
    a: {kind: linux}
    b: {kind: cisco_iol}
`,
		says: []string{
			`warning: components have no effect, since kind "linux" of node "a" has no cards; containerlab rejects them from 0.80 on [field-ignored]`,
		},
	},
	{
		name: "SONiC: ports without ARP and IPv6 of Linux",
		topo: `name: sonic
topology:
  nodes:
    a: {kind: sonic-vs, image: "s:1"}
`,
		look: func(t *testing.T, r *result) {
			if said := text(r.plan(t, "a")); !strings.Contains(said, "arp off") || !strings.Contains(said, "disable_ipv6") {
				t.Errorf("the steps are\n%s", said)
			}
		},
	},
}

// running are the daemons that a file of FRR starts, "all" for all of them.
func running(daemons string) string {
	var yes []string
	all := true
	for line := range strings.Lines(daemons) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case name == "vtysh_enable":
		case value == "yes":
			yes = append(yes, name)
		case value == "no":
			all = false
		}
	}
	if all && len(yes) == 18 {
		return "all"
	}
	return strings.Join(yes, " ")
}

// env is the environment of a node's first container.
func env(r *result, t *testing.T, node string) map[string]string {
	t.Helper()
	return r.plan(t, node).Containers[0].Env
}

// cardEnv is the environment of the container of a card.
func cardEnv(r *result, t *testing.T, node, card string) map[string]string {
	t.Helper()
	for _, c := range r.plan(t, node).Containers {
		if c.Name == card {
			return c.Env
		}
	}
	t.Fatalf("%s has no card %s", node, card)
	return nil
}

func mounts(r *result, t *testing.T, node, target string) bool {
	t.Helper()
	return slices.ContainsFunc(r.plan(t, node).Containers[0].Mounts, func(m plan.Mount) bool { return m.Target == target })
}
