package plan

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/c9s-lab/c9s/pkg/lab"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGoldenPlans(t *testing.T) {
	for _, tt := range []struct {
		name, kind string
		change     func(*lab.Lab, *lab.Node)
	}{
		{"linux", "linux", func(l *lab.Lab, n *lab.Node) {
			connect(l, n, "eth1", "eth2")
			n.Env = map[string]string{"FOO": "bar", "no_proxy": "example.com"}
			n.Labels = map[string]string{"team.name/x": "core"}
			n.Exec = []lab.Exec{{Argv: []string{"ip", "route"}, Raw: "ip route"}}
			n.Mounts = []lab.Mount{
				{Target: "/etc/daemons", File: testFile(l, "daemons", "bgpd=yes\n"), ReadOnly: true},
				{Target: "/etc/frr", Dir: &lab.Dir{Mode: 0o755, Entries: []lab.DirEntry{
					{Path: "frr.conf", Mode: 0o640, File: testFile(l, "frr/frr.conf", "hostname x\n")},
					{Path: "more", Mode: 0o750}, {Path: "more/link", Link: "../frr.conf"},
				}}},
				{Target: "/lib/modules", HostPath: "/lib/modules", ReadOnly: true},
				{Target: "/var/data", Volume: "data"},
			}
			n.Healthcheck = &lab.Healthcheck{Test: []string{"CMD", "true"}, Interval: 5, Timeout: 3, Retries: 2}
		}},
		{"nokia_srlinux", "nokia_srlinux", func(l *lab.Lab, n *lab.Node) {
			connect(l, n, "e1-1@10.0.0.1/31", "e1-2", "e1-3-1")
			n.StartupConfig = &lab.Config{Name: "srl.cli", File: *testFile(l, "srl.cli", "set / system name host-name {{ .ShortName }}\n")}
			n.License = testFile(l, "srl.lic", "key")
			n.DNS = &lab.DNS{Servers: []string{"192.0.2.53"}}
		}},
		{"nokia_srsim", "nokia_srsim", func(l *lab.Lab, n *lab.Node) {
			n.License = testFile(l, "sros.lic", "key")
			n.Certificate.Issue = true
			connect(l, n, "e1-1-c1-1")
		}},
		{"nokia_srsim_chassis", "nokia_srsim", func(l *lab.Lab, n *lab.Node) {
			n.Type = "SR-7s"
			n.License = testFile(l, "sros.lic", "key")
			connect(l, n, "e1-1-c1-1")
			n.Exec = []lab.Exec{{Argv: []string{"true"}, Raw: "true"}}
			n.StartupConfig = &lab.Config{Name: "x.partial.cfg", Partial: true, File: *testFile(l, "x.partial.cfg", "/configure system location lab\n")}
			n.Components = []lab.Component{
				{Slot: "a", Type: "cpm2-s"},
				{Slot: "2", Type: "xcm2-7s", XIOM: []lab.XIOM{{Slot: 1, Type: "iom-s-3.0t", MDA: []lab.MDA{{Slot: 1, Type: "ms8-100gb-sfpdd+2-100gb-qsfp28"}}}}},
				{Slot: "1", Type: "xcm-7s", SFM: "sfm-s", MDA: []lab.MDA{{Slot: 1, Type: "s36-100gb-qsfp28"}}, Env: map[string]string{"X": "1"}},
				{Slot: "B", Type: "cpm2-s"},
			}
		}},
		{"arista_ceos", "arista_ceos", func(l *lab.Lab, n *lab.Node) {
			connect(l, n, "eth1@192.0.2.1/24", "eth2")
			n.Env = map[string]string{"CLAB_MGMT_VRF": "MGMT"}
			n.Extras.CEOSCopyToFlash = []lab.NamedFile{{Name: "extra.txt", File: *testFile(l, "extra.txt", "x")}}
			n.Mounts = []lab.Mount{{
				Target: "/mnt/flash/EosIntfMapping.json",
				File:   testFile(l, "EosIntfMapping.json", `{"ManagementIntf":{"eth0":"Management1"},"EthernetIntf":{}}`),
			}}
		}},
		{"juniper_crpd", "juniper_crpd", func(l *lab.Lab, n *lab.Node) {
			connect(l, n, "eth1")
			n.License = testFile(l, "junos.lic", "key")
		}},
		{"cisco_iol", "cisco_iol", func(l *lab.Lab, n *lab.Node) {
			n.Type = "L2"
			connect(l, n, "eth1@192.0.2.1/24", "eth6")
			n.StartupConfig = &lab.Config{Name: "iol.partial.cfg", Partial: true, File: *testFile(l, "iol.partial.cfg", "router ospf 1\n")}
		}},
		{"cisco_xrd", "cisco_xrd", func(l *lab.Lab, n *lab.Node) {
			connect(l, n, "Gi0-0-0-0", "Gi0-0-0-1")
		}},
		{"nokia_sros", "nokia_sros", func(l *lab.Lab, n *lab.Node) {
			n.Type = "sr-7"
			n.License = testFile(l, "sros.lic", "key")
			n.Env = map[string]string{"NOKIA_SROS_SFM": "m-sfm6", "CONNECTION_MODE": "macvtap"}
			connect(l, n, "eth1")
			n.Components = []lab.Component{
				{Slot: "1", Type: "iom4-e", MDA: []lab.MDA{{Slot: 1, Type: "me6-10gb-sfp+"}}, Env: map[string]string{"cpu": "2"}},
				{Slot: "A", Type: "cpm5"},
			}
		}},
		{"vyosnetworks_vyos", "vyosnetworks_vyos", func(l *lab.Lab, n *lab.Node) {
			connect(l, n, "eth1@192.0.2.1/24")
		}},
		{"juniper_vjunosrouter", "juniper_vjunosrouter", func(l *lab.Lab, n *lab.Node) {
			connect(l, n, "eth1")
			n.Credentials = lab.Credentials{Username: "op"}
			n.StartupConfig = &lab.Config{Name: "j.cfg", File: *testFile(l, "j.cfg", "system { host-name plain; }\n")}
			n.EnforceStartupConfig = true
		}},
		{"bridge", "bridge", func(l *lab.Lab, n *lab.Node) { connect(l, n, "eth1", "eth2") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := testLab("golden")
			tt.change(l, testNode(l, "n1", tt.kind, 1))
			golden(t, filepath.Join("testdata", tt.name+".golden"), planText(t, planOf(t, l)))
		})
	}
}

// planText is a plan as JSON with its generated files readable beside it.
func planText(t *testing.T, p *Plan) []byte {
	t.Helper()
	shown := *p
	shown.Files = slices.Clone(p.Files)
	var texts bytes.Buffer
	keep := func(name string, content []byte) {
		fmt.Fprintf(&texts, "\n--- %s\n%s", name, content)
		if !bytes.HasSuffix(content, []byte("\n")) {
			texts.WriteByte('\n')
		}
	}
	for i, f := range shown.Files {
		if f.Content != nil {
			keep(f.Path, f.Content)
			shown.Files[i].Content = nil
		}
	}
	shown.Steps = slices.Clone(p.Steps)
	for i, s := range shown.Steps {
		if s.Write != nil {
			keep("step "+s.Write.Path, s.Write.Content)
			w := *s.Write
			w.Content = nil
			shown.Steps[i].Write = &w
		}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(shown); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), texts.Bytes()...)
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test ./pkg/plan -update rewrites it); got:\n%s", file, got)
	}
}
