package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// planOf plans the lab's first node.
func planOf(t *testing.T, l *lab.Lab, options ...Option) *Plan {
	t.Helper()
	p, err := NewBuiltin(kinds.Builtin(), options...).Plan(context.Background(), l, l.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// connect gives the node ends with these Linux names; "eth1@10.0.0.1/24" has an
// address.
func connect(l *lab.Lab, n *lab.Node, names ...string) {
	for _, name := range names {
		name, addr, _ := strings.Cut(name, "@")
		e := &lab.Endpoint{Node: n.Name, Interface: name, Link: len(l.Links), MAC: fmt.Sprintf("aa:c1:ab:00:00:%02x", len(l.Links)+1)}
		if addr != "" {
			e.IPv4 = netip.MustParsePrefix(addr)
		}
		n.Endpoints = append(n.Endpoints, e)
		l.Links = append(l.Links, &lab.Link{Type: lab.LinkVeth, MTU: 9500, Endpoints: []*lab.Endpoint{e}})
	}
}

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

// codes lists the diagnostics of a plan as code/severity, those of incomplete
// kinds left out.
func codes(p *Plan) string {
	var out []string
	for _, d := range p.Diagnostics {
		if d.Code != CodeKindIncomplete {
			out = append(out, fmt.Sprintf("%s/%s", d.Code, d.Severity))
		}
	}
	return strings.Join(out, " ")
}

func TestDiagnostics(t *testing.T) {
	config := func(name, text string) func(*lab.Lab, *lab.Node) {
		return func(l *lab.Lab, n *lab.Node) {
			n.StartupConfig = &lab.Config{Name: name, Partial: strings.Contains(name, ".partial"), File: *testFile(l, name, text)}
		}
	}
	for _, tt := range []struct {
		name, kind string
		change     func(*lab.Lab, *lab.Node)
		codes      string
		says       string
	}{
		{"unknown kind", "nope", nil, "kind-unknown/error", `kind "nope"`},
		{"refused kind", "k8s-kind", nil, "kind-refused/error", "Docker"},
		{"refused kind", "ext-container", nil, "kind-refused/error", "cannot run in a Pod"},
		{"no licence", "nokia_srsim", nil, "license-required/error", "does not start without"},
		{"no licence but perhaps", "nokia_sros", nil, "license-required/warning", "needs a licence"},
		{"licence that nobody reads", "linux", func(l *lab.Lab, n *lab.Node) { n.License = testFile(l, "x", "x") }, "license-ignored/warning", "does not read license"},
		{"config that nobody reads", "linux", config("a.cfg", "x"), "startup-config-ignored/warning", "does not read startup-config"},
		{"config that nobody reads", "freebsd", config("a.cfg", "x"), "startup-config-ignored/warning", "freebsd"},
		{"config of a bridge", "bridge", config("a.cfg", "x"), "startup-config-ignored/warning", "bridge"},
		{"bad template", "juniper_crpd", config("dir/a.cfg", "one\ntwo {{ .Nope }}\n"), "startup-config-template/error", "startup-config dir/a.cfg:2: "},
		{"no template", "juniper_crpd", config("a.cfg", "one\n{{ if }}\n"), "startup-config-template/error", "startup-config a.cfg:2: "},
		{"no template function", "juniper_crpd", config("a.cfg", "{{ add 1 2 }}"), "startup-config-template/error", `"add"`},
		{"certificate in a template", "vyosnetworks_vyos", config("a.cfg", "{{ .TLSCert }}"), "startup-config-template/error", "TLSCert"},
		{"enforce without", "arista_ceos", func(_ *lab.Lab, n *lab.Node) { n.EnforceStartupConfig = true }, "startup-config-conflict/error", "without a startup-config"},
		{"enforce and suppress", "arista_ceos", func(l *lab.Lab, n *lab.Node) {
			config("a", "a")(l, n)
			n.EnforceStartupConfig, n.SuppressStartupConfig = true, true
		}, "startup-config-conflict/error", "exclude each other"},
		{"sdwan format", "cisco_sdwan", config("a.cfg", "x"), "startup-config-format/error", "a.cfg"},
		{"saos whole", "ciena_saos", func(l *lab.Lab, n *lab.Node) { n.Type = "5162"; config("a.cfg", "x")(l, n) }, "startup-config-partial/error", "partial startup-configs only"},
		{"saos no type", "ciena_saos", nil, "node-type/error", "needs a type"},
		{"saos type", "ciena_saos", func(_ *lab.Lab, n *lab.Node) { n.Type = "9999" }, "node-type/error", `"9999"`},
		{"srl type", "nokia_srlinux", func(_ *lab.Lab, n *lab.Node) { n.Type = "ixr-d99" }, "node-type/error", "ixr-d99"},
		{"c8000v type", "cisco_c8000v", func(_ *lab.Lab, n *lab.Node) { n.Type = "manual" }, "node-type/error", "manual"},
		{"iol type", "cisco_iol", func(_ *lab.Lab, n *lab.Node) { n.Type = "l3" }, "node-type/error", "l3"},
		{"sros partial", "nokia_sros", func(l *lab.Lab, n *lab.Node) {
			n.License = testFile(l, "lic", "x")
			config("a.partial.cfg", "x")(l, n)
		}, "startup-config-partial/warning", "over SSH"},
		{"sros two control cards", "nokia_sros", func(l *lab.Lab, n *lab.Node) {
			n.License = testFile(l, "lic", "x")
			n.Components = []lab.Component{{Slot: "A"}, {Slot: "B"}}
		}, "components/error", "one control card"},
		{"srsim integrated with cards", "nokia_srsim", func(l *lab.Lab, n *lab.Node) {
			n.License = testFile(l, "lic", "x")
			n.Components = []lab.Component{{Slot: "A"}, {Slot: "1"}}
		}, "components/error", "integrated"},
		{"srsim slot twice", "nokia_srsim", func(l *lab.Lab, n *lab.Node) {
			n.License, n.Type = testFile(l, "lic", "x"), "SR-7"
			n.Components = []lab.Component{{Slot: "A"}, {Slot: "a"}, {Slot: "1"}}
		}, "components/error", "twice"},
	} {
		t.Run(tt.kind+" "+tt.name, func(t *testing.T) {
			l := testLab("t")
			n := testNode(l, "n1", tt.kind, 1)
			if tt.change != nil {
				tt.change(l, n)
			}
			p := planOf(t, l)
			if got := codes(p); got != tt.codes {
				t.Fatalf("codes %q, want %q: %v", got, tt.codes, p.Diagnostics)
			}
			for _, d := range p.Diagnostics {
				if d.Code == CodeKindIncomplete {
					continue
				}
				if !strings.Contains(d.Message, tt.says) || !strings.Contains(d.Message, `node "n1"`) || d.Hint == "" || d.Pos != n.Pos {
					t.Errorf("%+v, want %q of node n1 at %s with a hint", d, tt.says, n.Pos)
				}
			}
		})
	}
}

func TestIncompleteKindsAreToldOnce(t *testing.T) {
	l := testLab("t")
	testNode(l, "a", "nokia_srlinux", 1)
	testNode(l, "b", "nokia_srlinux", 2)
	b := NewBuiltin(kinds.Builtin())
	var all diag.List
	for _, n := range l.Nodes {
		p, _ := b.Plan(context.Background(), l, n)
		all.Append(p.Diagnostics)
	}
	if list := all.All(); len(list) != 1 || list[0].Code != CodeKindIncomplete || list[0].File != l.Source {
		t.Errorf("%v, want one warning for both nodes", list)
	}
}

// fileOf finds a file of a plan.
func fileOf(p *Plan, path string) *File {
	for i := range p.Files {
		if p.Files[i].Path == path {
			return &p.Files[i]
		}
	}
	return nil
}

func TestStartupConfig(t *testing.T) {
	const template = "host {{ .ShortName }} in {{ .Env.SITE }}: $SITE ${SITE} $HOME ${OTHER:-none} $1 $$\n"
	for _, tt := range []struct {
		kind, name, text, path string
		want                   string // "" for a file of its own
		seed                   bool
	}{
		{"juniper_vmx", "a.cfg", template, "config/startup-config.cfg", "host n1 in fra: fra fra $HOME none $1 $\n", true},
		{"juniper_vmx", "a.partial.cfg", "x\n", "config/startup-config.cfg", "", true},
		{"dell_sonic", "a.json", "{}", "config/config_db.json", "", true},
		{"mikrotik_ros", "a.rsc", "/ip", "ftpboot/config.auto.rsc", "", true},
		{"arrcus_arcos", "a.cfg", template, "startup.cfg", "", false},
		{"nokia_sros", "a.cfg", template, "tftpboot/config.txt", "host n1 in fra: fra fra $HOME none $1 $\n", true},
		{"nokia_srlinux", "a.json", "{\"a\": \"{{ .ShortName }}\"}", "config/config.json", "{\"a\": \"n1\"}", true},
		{"cisco_sdwan", "a.YML", template, "config/cloud-init.yaml", "", true},
		{"cisco_sdwan", "a.xml", template, "config/zcloud.xml", "", true},
		{"cisco_iol", "a.cfg", "hostname {{ .Hostname }} $SITE\nend\n", "boot_config.txt", "hostname n1 $SITE\nend\n", false},
		{"6wind_vsr", "a.cli", template, "init-config.cli", template + "/ vrf main ssh-server\n", false},
		{"fdio_vpp", "a.yaml", "x", "config/vpp/vppcfg.yaml", "", true},
		{"ciena_saos", "my.partial.cfg", "x", "config/my.partial.cfg", "", true},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			l := testLab("t")
			n := testNode(l, "n1", tt.kind, 1)
			n.Env = map[string]string{"SITE": "fra"}
			if tt.kind == "ciena_saos" {
				n.Type = "5162"
			}
			n.License = testFile(l, "lic", "")
			n.StartupConfig = &lab.Config{Name: tt.name, Partial: strings.Contains(tt.name, ".partial"), File: *testFile(l, tt.name, tt.text)}
			for _, enforced := range []bool{false, true} {
				n.EnforceStartupConfig = enforced
				p := planOf(t, l)
				f := fileOf(p, tt.path)
				if f == nil {
					t.Fatalf("no file %s: %v", tt.path, p.Diagnostics)
				}
				if tt.want == "" && (f.Ref == nil || f.Content != nil) || tt.want != "" && string(f.Content) != tt.want {
					t.Errorf("content %q (ref %v), want %q", f.Content, f.Ref, tt.want)
				}
				if f.Seed != (tt.seed && !enforced) {
					t.Errorf("seed %v with enforce %v", f.Seed, enforced)
				}
			}
		})
	}
}

func TestSuppressedStartupConfig(t *testing.T) {
	for kind, path := range map[string]string{
		"arista_ceos": "flash/startup-config", "cisco_xrd": "first-boot.cfg", "nokia_srsim": "A/config/cf3/config.cfg",
	} {
		l := testLab("t")
		n := testNode(l, "n1", kind, 1)
		n.SuppressStartupConfig = true
		n.License = testFile(l, "lic", "")
		p := planOf(t, l)
		if fileOf(p, path) != nil {
			t.Errorf("%s: %s is there", kind, path)
		}
		for _, m := range p.Containers[0].Mounts {
			if m.Path == path {
				t.Errorf("%s: %s is mounted, which is not there", kind, path)
			}
		}
	}
}

func TestTemplateFuncs(t *testing.T) {
	l := testLab("t")
	n := testNode(l, "n1", "juniper_crpd", 1)
	n.StartupConfig = &lab.Config{Name: "a.cfg", File: *testFile(l, "a.cfg", "{{ add 1 2 }}")}
	p := planOf(t, l, WithTemplateFuncs(template.FuncMap{"add": func(a, b int) int { return a + b }}))
	if f := fileOf(p, "config/juniper.conf"); f == nil || string(f.Content) != "3" {
		t.Errorf("%+v %v", f, p.Diagnostics)
	}
}

func TestUserWins(t *testing.T) {
	l := testLab("t")
	n := testNode(l, "n1", "nokia_srlinux", 1)
	n.Cmd, n.User = []string{"sleep", "1"}, "admin"
	n.Env = map[string]string{"SRLINUX": "2"}
	n.Sysctls = map[string]string{"net.ipv4.ip_forward": "1", "net.core.somaxconn": "9"}
	n.Mounts = []lab.Mount{{Target: "/tmp/topology.yml", File: testFile(l, "mine.yml", "x")}}
	c := planOf(t, l).Containers[0]
	if !slices.Equal(c.Cmd, n.Cmd) || c.User != "admin" || c.Env["SRLINUX"] != "2" {
		t.Errorf("cmd %v, user %s, SRLINUX %s", c.Cmd, c.User, c.Env["SRLINUX"])
	}
	if c.Sysctls["net.ipv4.ip_forward"] != "0" || c.Sysctls["net.core.somaxconn"] != "9" {
		t.Errorf("sysctls %v", c.Sysctls)
	}
	at := slices.IndexFunc(c.Mounts, func(m Mount) bool { return m.Target == "/tmp/topology.yml" })
	if c.Mounts[at].Path != "binds/tmp/topology.yml" {
		t.Errorf("mounts %v", c.Mounts)
	}
	vm := testNode(l, "vm", "cisco_xrv9k", 2)
	vm.Env = map[string]string{"USERNAME": "me", "QEMU_MEMORY": "1"}
	vm.Cmd = []string{"ignored"}
	p, _ := NewBuiltin(kinds.Builtin()).Plan(context.Background(), l, vm)
	c = p.Containers[0]
	if c.Cmd[1] != "me" || c.Env["QEMU_MEMORY"] != "1" || c.Env["PASSWORD"] != "clab@123" {
		t.Errorf("cmd %v, env %v", c.Cmd, c.Env)
	}
}

func TestPlansDoNotDependOnOtherNodes(t *testing.T) {
	for _, k := range kinds.Builtin().All() {
		l := testLab("t")
		n := testNode(l, "n1", k.Name, 1)
		n.License, n.Type = testFile(l, "lic", "x"), ""
		before, _ := json.Marshal(planOf(t, l))
		testNode(l, "n2", "linux", 2)
		if after, _ := json.Marshal(planOf(t, l)); !bytes.Equal(before, after) {
			t.Errorf("%s: a second node changes the plan", k.Name)
		}
		if again, _ := json.Marshal(planOf(t, l)); !bytes.Equal(before, again) {
			t.Errorf("%s: two plans of the same node differ", k.Name)
		}
	}
}

func TestAddressesAreUnique(t *testing.T) {
	seen := map[string]string{}
	l := testLab("t")
	for i := 1; i <= 4094; i++ {
		x := &NodeData{LabName: l.Name, ShortName: fmt.Sprint("n", i), Index: i}
		for _, mac := range []string{x.IndexMAC("1a")} {
			if other := seen[mac]; other != "" {
				t.Fatalf("%s and %s have %s", other, x.ShortName, mac)
			}
			seen[mac] = x.ShortName
		}
		if id := x.IOLID(); id < 1 || id > 1023 || id == 513 {
			t.Fatalf("index %d has IOL id %d", i, id)
		}
	}
}

func TestCodesAreDescribed(t *testing.T) {
	described := Codes()
	for code, text := range described {
		if strings.ToLower(string(code)) != string(code) || text == "" || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", code, text)
		}
	}
	if len(described) != 19 {
		t.Errorf("%d codes are described", len(described))
	}
}

func TestBehavioursExist(t *testing.T) {
	for _, k := range kinds.Builtin().All() {
		if _, ok := behaviours[k.Behaviour]; k.Behaviour != "" && !ok {
			t.Errorf("%s: no behaviour %s", k.Name, k.Behaviour)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(behaviours)) {
		if !slices.ContainsFunc(kinds.Builtin().All(), func(k *kinds.Kind) bool { return k.Behaviour == name }) {
			t.Errorf("no kind has behaviour %s", name)
		}
	}
}

func BenchmarkBuiltin1000(b *testing.B) {
	l := testLab("t")
	for i := range 1000 {
		n := testNode(l, fmt.Sprintf("n%d", i), []string{"linux", "nokia_srlinux"}[i%2], i+1)
		connect(l, n, "e1-1", "e1-2", "e1-3", "e1-4")
	}
	planner := NewBuiltin(kinds.Builtin())
	for b.Loop() {
		for _, n := range l.Nodes {
			planner.Plan(context.Background(), l, n)
		}
	}
}
