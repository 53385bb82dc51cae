package kinds

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/lab"
)

func TestMapInterfaceProbes(t *testing.T) {
	raw, err := os.ReadFile("testdata/probes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var probes map[string]struct {
		Mapped  map[string]string
		Refused []string
	}
	if err := yaml.Unmarshal(raw, &probes); err != nil {
		t.Fatal(err)
	}
	if len(probes) != 30 {
		t.Errorf("%d kinds with probes, want 30", len(probes))
	}
	for name, p := range probes {
		k, ok := Builtin().Lookup(name)
		if !ok {
			t.Errorf("no kind %s", name)
			continue
		}
		n := &lab.Node{Name: "n1"}
		for written, want := range p.Mapped {
			got, alias, err := k.MapInterface(written, n)
			if err != nil || got != want {
				t.Errorf("%s: %s became %q (%v), want %q", name, written, got, err, want)
			}
			if wantAlias := written; got != written && alias != wantAlias || got == written && alias != "" {
				t.Errorf("%s: %s has alias %q", name, written, alias)
			}
		}
		for _, written := range p.Refused {
			if got, _, err := k.MapInterface(written, n); err == nil {
				t.Errorf("%s: %s became %s, want an error", name, written, got)
			}
		}
	}
}

func TestMapInterface(t *testing.T) {
	cards := func(c ...lab.Component) *lab.Node { return &lab.Node{Name: "n1", Components: c} }
	alone := cards()
	chassis := cards(
		lab.Component{Slot: "2", Type: "iom", MDA: []lab.MDA{{Slot: 1, Type: "m12-10g"}, {Slot: 2, Type: "m4-sfp+4-sfp+"}}},
		lab.Component{Slot: "A"},
		lab.Component{Slot: "1", Type: "iom", XIOM: []lab.XIOM{{Slot: 1, MDA: []lab.MDA{{Slot: 1, Type: "ms6-200gb"}, {Slot: 2, Type: "ms2-400gb"}}}}},
		lab.Component{Slot: "4", Env: map[string]string{"max_nics": "5"}},
	)
	for _, tt := range []struct {
		kind, written string
		node          *lab.Node
		linux, alias  string // "" for an error
	}{
		{"linux", "anything", alone, "anything", ""},
		{"nokia_srlinux", "e1-1", alone, "e1-1", ""},
		{"nokia_srlinux", "ethernet-1/12/3", alone, "e1-12-3", "ethernet-1/12/3"},
		{"nokia_srlinux", "ethernet-0/1", alone, "", ""},
		{"nokia_srlinux", "mgmt0", alone, "mgmt0", ""},
		{"nokia_srsim", "1/x2/3/c4/5", alone, "e1-x2-3-c4-5", "1/x2/3/c4/5"},
		{"nokia_srsim", "1/x2/3/4", alone, "e1-x2-3-4", "1/x2/3/4"},
		{"nokia_srsim", "e1-2-c3-4", alone, "e1-2-c3-4", ""},
		{"nokia_srsim", "eth1", alone, "eth1", ""},
		{"juniper_vmx", "eth12", alone, "eth12", ""},
		{"juniper_vmx", "eth0", alone, "", ""},
		{"juniper_vmx", "veth3", alone, "veth3", ""},
		{"juniper_vmx", "xe-0/0/10", alone, "eth11", "xe-0/0/10"},
		{"juniper_vmx", "xe-1/0/0", alone, "", ""},
		{"juniper_cjunosevolved", "et-0/0/0", alone, "eth4", "et-0/0/0"},
		{"cisco_iol", "Ethernet0/1", alone, "eth1", "Ethernet0/1"},
		{"cisco_iol", "e2/3", alone, "eth11", "e2/3"},
		{"cisco_iol", "e0/0", alone, "", ""},
		{"cisco_iol", "e1/4", alone, "e1/4", ""},
		{"cisco_iol", "eth7", alone, "eth7", ""},
		{"spirent_stc", "port9", alone, "eth9", "port9"},
		{"spirent_stc", "eth1", alone, "", ""},
		{"f5_bigip-ve", "1.4", alone, "eth4", "1.4"},
		{"f5_bigip-ve", "2.1", alone, "", ""},
		{"ciena_saos", "12", alone, "eth12", "12"},
		{"generic_vm", "whatever", alone, "whatever", ""},
		{"nokia_sros", "1/1/3", alone, "eth3", "1/1/3"},
		{"nokia_sros", "1/1/c5/1", alone, "eth5", "1/1/c5/1"},
		{"nokia_sros", "1/1/c5/2", alone, "", ""},
		{"nokia_sros", "2/1/1", alone, "", ""},
		{"nokia_sros", "1/x1/1/2", chassis, "eth2", "1/x1/1/2"},
		{"nokia_sros", "1/x1/2/1", chassis, "eth7", "1/x1/2/1"},
		{"nokia_sros", "2/1/1", chassis, "eth9", "2/1/1"},
		{"nokia_sros", "2/2/5", chassis, "eth25", "2/2/5"},
		{"nokia_sros", "4/1/1", chassis, "eth29", "4/1/1"},
		{"nokia_sros", "3/1/1", chassis, "", ""},
		{"nokia_sros", "2/3/1", chassis, "", ""},
		{"nokia_sros", "2/1/2", cards(lab.Component{Slot: "A"}), "", ""},
		{"nokia_sros", "1/2/2", cards(lab.Component{MDA: []lab.MDA{{Slot: 1, Type: "me6-100gb"}, {Slot: 2, Type: "me12-100gb"}}}), "eth8", "1/2/2"},
		{"nokia_sros", "eth3", chassis, "eth3", ""},
	} {
		k, ok := Builtin().Lookup(tt.kind)
		if !ok {
			t.Fatalf("no kind %s", tt.kind)
		}
		linux, alias, err := k.MapInterface(tt.written, tt.node)
		if linux != tt.linux || alias != tt.alias || (err == nil) != (tt.linux != "") {
			t.Errorf("%s %s: %q, %q, %v, want %q, %q", tt.kind, tt.written, linux, alias, err, tt.linux, tt.alias)
		}
		if err != nil && !strings.Contains(err.Error(), "allowed are ") {
			t.Errorf("%s %s: %q does not say what is allowed", tt.kind, tt.written, err)
		}
	}
}

func TestCheckInterfaces(t *testing.T) {
	for _, tt := range []struct {
		kind  string
		mode  lab.NetworkMode
		names string
		want  string // codes of the names that are refused
	}{
		{"linux", "", "eth1 swp3 bond0", ""},
		{"linux", "", "eth0", "eth0:interface-name"},
		{"linux", lab.NetworkNone, "eth0", ""},
		{"6wind_vsr", "", "eth0 eth1", "eth0:interface-name"},
		{"nokia_srlinux", "", "e1-1 e1-2-3", ""},
		{"nokia_srlinux", "", "eth1 mgmt0", "eth1:interface-name mgmt0:interface-name"},
		{"nokia_srlinux", lab.NetworkNone, "mgmt0", ""},
		{"nokia_srsim", "", "e1-1-1 e1-x1-1-c1-2 eth3", ""},
		{"nokia_srsim", "", "eth0 e1-1 swp1", "eth0:interface-name e1-1:interface-name swp1:interface-name"},
		{"cisco_xrd", "", "Gi0-0-0-0 Gi0-0-0-12", ""},
		{"cisco_xrd", "", "Gi0/0/0/0 eth1", "Gi0/0/0/0:interface-name eth1:interface-name"},
		{"cisco_c8000", "", "Hu0_0_0_1 FH0_0_0_2 Gi0_0_0_1", "Gi0_0_0_1:interface-name"},
		{"arista_ceos", "", "eth1 et1_1 swp1", "swp1:interface-name"},
		{"arrcus_arcos", "", "swp1 swp1.100 eth1", "eth1:interface-name"},
		{"cumulus_cvx", "", "swp1 eth1", "eth1:interface-name"},
		{"cisco_iol", "", "eth1 e1/4 eth0", "e1/4:interface-name eth0:interface-name"},
		{"vyosnetworks_vyos", "", "eth1 eth0", "eth0:interface-name"},
		{"generic_vm", "", "eth1 ens3", "ens3:interface-name"},
		{"juniper_crpd", "", "eth1 whatever", ""},
		{"bridge", "", "eth1 anything", ""},
	} {
		k, _ := Builtin().Lookup(tt.kind)
		n := &lab.Node{Name: "n1", NetworkMode: tt.mode}
		for i, name := range strings.Fields(tt.names) {
			e := &lab.Endpoint{Node: "n1", Interface: name}
			e.Pos.File, e.Pos.Line = "t.clab.yml", i+1
			n.Endpoints = append(n.Endpoints, e)
		}
		var got []string
		for _, d := range k.CheckInterfaces(n) {
			got = append(got, fmt.Sprintf("%s:%s", n.Endpoints[d.Line-1].Interface, d.Code))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.kind, tt.names, got, tt.want)
		}
	}
}

func BenchmarkMapInterface8000(b *testing.B) {
	srl, _ := Builtin().Lookup("nokia_srlinux")
	vmx, _ := Builtin().Lookup("juniper_vmx")
	n := &lab.Node{Name: "n1"}
	for b.Loop() {
		for i := range 4000 {
			srl.MapInterface(fmt.Sprintf("ethernet-1/%d", i%60+1), n)
			vmx.MapInterface(fmt.Sprintf("xe-0/0/%d", i%60), n)
		}
	}
}
