package compile

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// compileText compiles a topology in a folder with the given files.
func compileText(t *testing.T, text string, files map[string]string, o Options) (*lab.Lab, []diag.Diagnostic) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(full, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(full, mode); err != nil {
			t.Fatal(err)
		}
	}
	src := &topology.Source{Name: "t.clab.yml", Base: "t.clab.yml", Dir: dir, Data: []byte(text)}
	f, diags := topology.Load(t.Context(), src, topology.Options{Env: o.Env})
	if f == nil {
		t.Fatalf("nothing was read: %v", diags)
	}
	l, more := Compile(context.Background(), f, o)
	return l, append(diags, more...)
}

// compileClean is compileText for a topology without an error.
func compileClean(t *testing.T, text string, files map[string]string, o Options) *lab.Lab {
	t.Helper()
	l, diags := compileText(t, text, files, o)
	for _, d := range diags {
		if d.Severity == diag.Error {
			t.Errorf("unexpected: %s", d)
		}
	}
	return l
}

// TestInheritance has one field of each merge rule at every level.
func TestInheritance(t *testing.T) {
	l := compileClean(t, `
name: t
topology:
  defaults:
    kind: linux
    image: from-defaults
    user: "1"
    group: g
    env: {A: defaults, B: defaults, C: defaults, D: defaults}
    exec: [one, two]
    ports: ["1"]
    binds: ["a:/one", "a:/two"]
    labels: {x: defaults}
    startup-delay: 5
    privileged: false
    credentials: {username: defaults}
    certificate: {issue: true, key-size: 4096, sans: [a]}
    config: {vars: {deep: {a: 1, b: 1}}}
    stages: {create: {exec: [{command: first}]}}
  kinds:
    linux:
      user: "2"
      env: {B: kind, C: kind, D: kind}
      exec: [two, three]
      ports: ["2", "3"]
      binds: ["b:/two"]
      config: {vars: {deep: {b: 2}}}
      certificate: {sans: [b]}
  groups:
    g:
      user: "3"
      env: {C: group, D: group}
      exec: [four]
      binds: ["c:/three:ro"]
      startup-delay: 0
      credentials: {password: group}
      stages: {create: {exec: [{command: second, phase: on-exit}]}}
  nodes:
    full:
      user: "4"
      env: {D: node}
      exec: [one, five]
      privileged: true
    plain:
      image: own
    empty:
`, map[string]string{"a": "a", "b": "b", "c": "c"}, Options{})
	full := l.Node("full")
	want := &lab.Node{
		Image: "from-defaults", User: "4", Group: "g", Privileged: true, StartupDelay: 5,
		Env:         map[string]string{"A": "defaults", "B": "kind", "C": "group", "D": "node"},
		Labels:      map[string]string{"x": "defaults"},
		Ports:       []lab.Port{{Container: 2, Protocol: "TCP"}, {Container: 3, Protocol: "TCP"}},
		Credentials: lab.Credentials{Password: "group"},
		Certificate: lab.Certificate{Issue: true, KeySize: 4096, SANs: []string{"b"}},
		ConfigVars:  map[string]any{"deep": map[string]any{"a": 1, "b": 2}},
	}
	got := &lab.Node{
		Image: full.Image, User: full.User, Group: full.Group, Privileged: full.Privileged, StartupDelay: full.StartupDelay,
		Env: full.Env, Labels: full.Labels, Ports: full.Ports, Credentials: full.Credentials, Certificate: full.Certificate, ConfigVars: full.ConfigVars,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	var exec, stage, mounts []string
	for _, e := range full.Exec {
		exec = append(exec, e.Raw)
	}
	for _, e := range full.Stages[lab.StageCreate].Exec {
		stage = append(stage, e.Raw+" "+e.Phase)
	}
	for _, m := range full.Mounts {
		mounts = append(mounts, m.Target+"="+string(l.Files[m.File.Digest]))
	}
	for _, pair := range [][2]string{
		{strings.Join(exec, " "), "one two three four five"},
		{strings.Join(stage, ","), "first on-enter,second on-exit"},
		{strings.Join(mounts, " "), "/one=a /three=c /two=b"},
		{l.Node("plain").Image + " " + l.Node("plain").User, "own 3"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("got %q, want %q", pair[0], pair[1])
		}
	}
	// A node with nothing under it takes booleans from the defaults only.
	if e := l.Node("empty"); e.Privileged || e.User != "3" {
		t.Errorf("empty: privileged %v, user %q", e.Privileged, e.User)
	}
}

func TestKindComesFromTheGroup(t *testing.T) {
	l := compileClean(t, `
name: t
topology:
  defaults: {image: a, group: dg}
  kinds:
    SRL: {type: ixr-d3l, group: kg}
  groups:
    g: {kind: SRL}
    dg: {kind: linux}
    kg: {position: top}
  nodes:
    a: {group: g}
    b: {}
    c: {kind: ceos}
`, nil, Options{})
	for name, want := range map[string]string{"a": "nokia_srlinux srl g ixr-d3l", "b": "linux linux dg ", "c": "arista_ceos ceos dg "} {
		n := l.Node(name)
		if got := strings.Join([]string{n.Kind, n.WrittenKind, n.Group, n.Type}, " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestMagicVariablesAndFiles(t *testing.T) {
	l := compileClean(t, `
name: lab
topology:
  defaults:
    kind: linux
    image: a
    binds:
      - "conf/__clabNodeName__:/etc/conf"
      - "run.sh:/run.sh:ro"
    startup-config: __clabNodeName__.partial.cfg
    license: lic.txt
    exec: ["echo __clabNodeName__ __clabLabName__"]
    env-files: [one.env, two.env]
    env: {B: own}
  nodes:
    r1: {env: {NAME: __clabNodeName__}}
`, map[string]string{
		"conf/r1/frr.conf": "hostname r1", "conf/r1/sub/x": "x", "run.sh": "#!/bin/sh", "r1.partial.cfg": "cfg", "lic.txt": "secret",
		"one.env": "A=1\nB=file\n", "two.env": "A=2\nC=${A}3\n",
	}, Options{})
	n := l.Node("r1")
	if n.Exec[0].Raw != "echo r1 clab-lab" || n.Env["NAME"] != "__clabNodeName__" {
		t.Errorf("exec %q, env %v: magic variables apply to exec and not to env", n.Exec[0].Raw, n.Env)
	}
	if n.Env["A"] != "2" || n.Env["B"] != "own" || n.Env["C"] != "23" {
		t.Errorf("env %v: the later file wins, and env over both", n.Env)
	}
	if n.StartupConfig == nil || !n.StartupConfig.Partial || n.StartupConfig.Name != "r1.partial.cfg" {
		t.Errorf("startup-config %+v", n.StartupConfig)
	}
	if n.License == nil || !n.License.Secret {
		t.Errorf("licence %+v: it must be secret", n.License)
	}
	dir, script := n.Mounts[0], n.Mounts[1]
	var paths []string
	for _, e := range dir.Dir.Entries {
		paths = append(paths, e.Path)
	}
	if got := strings.Join(paths, " "); got != "frr.conf sub sub/x" {
		t.Errorf("the folder has %q", got)
	}
	if script.File.Mode != 0o755 || !script.ReadOnly {
		t.Errorf("script %+v: the execute bit and ro must be kept", script)
	}
}

func TestWorkerPathsAndPlaceholders(t *testing.T) {
	_, diags := compileText(t, `
name: t
topology:
  defaults: {kind: linux, image: a}
  nodes:
    r1:
      binds:
        - /lib/modules:/lib/modules
        - /dev/net/tun:/dev/net/tun
        - gone.cfg:/gone.cfg
        - __clabDir__/ansible-inventory.yml:/inv.yml:ro
      license: gone.lic
    r2: {image: ""}
`, nil, Options{AllowMissing: true})
	var got []string
	for _, d := range diags {
		got = append(got, string(d.Severity)+" "+string(d.Code))
	}
	want := []string{"warning worker-path", "warning worker-path", "warning file-placeholder", "warning file-generated", "warning file-placeholder"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRemoteFiles(t *testing.T) {
	const text = "name: t\ntopology:\n  nodes:\n    r1: {kind: linux, image: a, startup-config: 'https://example.org/x/r1.cfg'}\n"
	fetched := Options{Fetch: func(_ context.Context, url string) ([]byte, error) { return []byte(url), nil }}
	l := compileClean(t, text, nil, fetched)
	c := l.Node("r1").StartupConfig
	if c.Name != "r1.cfg" || string(l.Files[c.File.Digest]) != "https://example.org/x/r1.cfg" {
		t.Errorf("%+v", c)
	}
	for name, o := range map[string]Options{
		"no network": {},
		"failure":    {Fetch: func(context.Context, string) ([]byte, error) { return nil, errors.New("gone") }},
	} {
		if _, diags := compileText(t, text, nil, o); len(diags) != 1 || diags[0].Code != CodeFetch {
			t.Errorf("%s: %v", name, diags)
		}
	}
	mapped := compileClean(t, text, map[string]string{"local.cfg": "local"}, Options{AllowMissing: true})
	if !mapped.Node("r1").StartupConfig.File.Placeholder {
		t.Error("with AllowMissing a URL must not be fetched")
	}
}

func TestLinks(t *testing.T) {
	l := compileClean(t, `
name: t
topology:
  defaults: {kind: linux, image: a}
  nodes:
    a:
    b:
    srl: {kind: srl}
    br: {kind: bridge}
    sim: {kind: nokia_srsim, license: lic}
    machine: {kind: host}
  links:
    - endpoints: ["a:eth1", "srl:ethernet-1/1"]
      ipv4: ["10.0.0.1/30", ""]
    - endpoints: ["b:eth1", "br:p1"]
      mtu: 1500
    - endpoints: ["host:tap1", "a:eth2"]
    - endpoints: ["b:eth2", "machine:tap2"]
    - endpoints: ["a:eth3", "a:eth4"]
    - endpoints: ["sim:1/1/c1/1", "b:eth3"]
    - type: veth
      endpoints: [{node: sim, interface: 1/1/c2/1, mac: "02:00:00:00:00:09"}, {node: b, interface: eth4}]
    - endpoints: ["macvlan:ens3", "b:eth5"]
    - {type: vxlan, endpoint: {node: a, interface: eth5}, remote: 192.0.2.1, vni: 7}
    - {type: dummy, endpoint: {node: a, interface: d0}}
    - endpoints: ["mgmt-net:m1", "a:eth6"]
    - {type: veth, endpoints: [{node: host, interface: h1}, {node: a, interface: eth7}]}
    - {type: veth, endpoints: [{node: a, interface: eth8}, {node: mgmt-net, interface: m2}]}
`, map[string]string{"lic": "x"}, Options{})
	var got []string
	for _, link := range l.Links {
		var ends []string
		for _, e := range link.Endpoints {
			end := e.Node + ":" + e.Interface
			if e.Alias != "" {
				end += "(" + e.Alias + ")"
			}
			if e.Bridge {
				end += " port"
			}
			ends = append(ends, end)
			if e.MAC == "" {
				t.Errorf("%s has no MAC address", end)
			}
		}
		text := string(link.Type) + " " + strings.Join(ends, " - ")
		if link.HostInterface != "" {
			text += " > " + link.HostInterface
		}
		got = append(got, text)
		if (link.WireID != 0) != (len(link.Endpoints) == 2) {
			t.Errorf("%s has wire id %d", text, link.WireID)
		}
	}
	want := []string{
		"veth a:eth1 - srl:e1-1(ethernet-1/1)",
		"veth b:eth1 - br:p1 port",
		"host a:eth2 > tap1",
		"host b:eth2 > tap2",
		"veth a:eth3 - a:eth4",
		"veth-stitch sim:e1-1-c1-1(1/1/c1/1) - b:eth3",
		"veth sim:e1-1-c2-1(1/1/c2/1) - b:eth4",
		"macvlan b:eth5 > ens3",
		"vxlan a:eth5",
		"dummy a:d0",
		"mgmt-net a:eth6 > m1",
		"host a:eth7 > h1",
		"mgmt-net a:eth8 > m2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if l.Links[0].MTU != 9500 || l.Links[1].MTU != 1500 || l.Links[7].MTU != 0 || l.Links[8].VXLAN.DstPort != 14789 {
		t.Errorf("MTUs %d %d %d, port %d", l.Links[0].MTU, l.Links[1].MTU, l.Links[7].MTU, l.Links[8].VXLAN.DstPort)
	}
	if a := l.Links[0].Endpoints[0]; a.IPv4.String() != "10.0.0.1/30" {
		t.Errorf("address %s", a.IPv4)
	}
	if mac := l.Links[6].Endpoints[0].MAC; mac != "02:00:00:00:00:09" {
		t.Errorf("MAC %s is not the one that is written", mac)
	}
	for _, p := range l.Pods {
		if p.Name == "machine" {
			t.Error("a node of kind host has a Pod")
		}
	}
}

func TestPodsAndNetworkModes(t *testing.T) {
	l := compileClean(t, `
name: t
topology:
  defaults: {kind: linux, image: a}
  nodes:
    z: {network-mode: "container:clab-t-a"}
    m: {network-mode: "container:z"}
    a:
    n: {network-mode: none}
    h: {network-mode: host}
`, nil, Options{})
	var got []string
	for _, p := range l.Pods {
		got = append(got, p.Name+"="+strings.Join(p.Nodes, "+"))
	}
	if diff := cmp.Diff([]string{"a=a+m+z", "h=h", "n=n"}, got); diff != "" {
		t.Error(diff)
	}
	for name, has := range map[string]bool{"a": true, "z": false, "n": false, "h": false} {
		if l.Node(name).MgmtIPv4.IsValid() != has {
			t.Errorf("%s has management address %s", name, l.Node(name).MgmtIPv4)
		}
	}
}

func TestManagementNetwork(t *testing.T) {
	const nodes = "topology:\n  nodes:\n    r1: {kind: linux, image: a}\n"
	tests := []struct{ mgmt, v4, gw4, v6, gw6 string }{
		{"", "172.20.20.0/24", "172.20.20.1", "3fff:172:20:20::/64", "3fff:172:20:20::1"},
		{"mgmt: {ipv4-subnet: 10.1.0.0/16}\n", "10.1.0.0/16", "10.1.0.1", "", ""},
		{"mgmt: {ipv6-subnet: '2001:db8::/64', ipv6-gw: '2001:db8::f'}\n", "", "", "2001:db8::/64", "2001:db8::f"},
		{"mgmt: {ipv4-subnet: auto}\n", "172.20.20.0/24", "172.20.20.1", "", ""},
		{"mgmt: {ipv4_subnet: 10.2.0.0/24, ipv4-gw: 10.2.0.254}\n", "10.2.0.0/24", "10.2.0.254", "", ""},
	}
	text := func(v interface {
		IsValid() bool
		String() string
	}) string {
		if !v.IsValid() {
			return ""
		}
		return v.String()
	}
	for _, tt := range tests {
		l := compileClean(t, "name: t\n"+tt.mgmt+nodes, nil, Options{})
		m := l.Mgmt
		got := []string{text(m.IPv4.Subnet), text(m.IPv4.Gateway), text(m.IPv6.Subnet), text(m.IPv6.Gateway)}
		if diff := cmp.Diff([]string{tt.v4, tt.gw4, tt.v6, tt.gw6}, got); diff != "" {
			t.Errorf("%s%s", tt.mgmt, diff)
		}
		n := l.Node("r1")
		if n.MgmtIPv4.IsValid() != (tt.v4 != "") || n.MgmtIPv6.IsValid() != (tt.v6 != "") {
			t.Errorf("%s: addresses %s %s", tt.mgmt, n.MgmtIPv4, n.MgmtIPv6)
		}
	}
}

func TestAllocationsAreReadBack(t *testing.T) {
	const before = "name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n    r1:\n    r2:\n  links:\n    - endpoints: ['r1:eth1', 'r2:eth1']\n"
	const after = "name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n    r0: {mgmt-ipv4: 172.20.20.77}\n    r2:\n    r1:\n  links:\n    - endpoints: ['r0:eth1', 'r1:eth2']\n    - endpoints: ['r2:eth1', 'r1:eth1']\n"
	first := compileClean(t, before, nil, Options{})
	second := compileClean(t, after, nil, Options{Previous: &first.Allocations})
	for pool, values := range first.Allocations.Pools {
		for owner, v := range values {
			if got := second.Allocations.Pools[pool][owner]; got != v {
				t.Errorf("%s of %s: %s became %s", pool, owner, v, got)
			}
		}
	}
	if first.Links[0].WireID != second.Links[1].WireID {
		t.Error("a wire got another id when its ends were swapped")
	}
	third := compileClean(t, before, nil, Options{Previous: &second.Allocations})
	if third.Allocations.Released["mgmt-ipv4"]["r0"] != "172.20.20.77" {
		t.Errorf("released %v: the address of a node that is gone is kept back", third.Allocations.Released)
	}
}

func TestImportEnvs(t *testing.T) {
	l := compileClean(t, "name: t\ntopology:\n  nodes:\n    r1: {kind: linux, image: a, env: {__IMPORT_ENVS: 'true', A: own}}\n", nil, Options{Env: []string{"A=outer", "B=outer"}})
	if env := l.Node("r1").Env; env["A"] != "own" || env["B"] != "outer" {
		t.Errorf("env %v", env)
	}
}

func TestMapName(t *testing.T) {
	for name, want := range map[string]string{
		"r1": "r1", "R1": "r1", "PE_1": "pe-1", "a.b": "a-b", "1": "n-1", "-x-": "x", "br0|r1": "br0-r1", "___": "n-" + nameHash("___"),
		strings.Repeat("a", 58): strings.Repeat("a", 58),
		strings.Repeat("a", 70): strings.Repeat("a", 49) + "-" + nameHash(strings.Repeat("a", 70)),
		"öl":                    "l",
	} {
		if got := MapName(name, 58); got != want {
			t.Errorf("MapName(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestAssumedManagementSubnet has addresses for a network that the file does not describe.
func TestAssumedManagementSubnet(t *testing.T) {
	tests := []struct{ first, second, subnet, gateway string }{
		{"192.168.79.1", "192.168.79.2", "192.168.79.0/24", "192.168.79.3"},
		{"10.0.1.10", "10.0.2.10", "10.0.0.0/22", "10.0.0.1"},
		{"172.20.20.5", "172.20.20.6", "172.20.20.0/24", "172.20.20.1"},
	}
	for _, tt := range tests {
		l, diags := compileText(t, "name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n    a: {mgmt-ipv4: "+tt.first+"}\n    b: {mgmt-ipv4: "+tt.second+"}\n    c:\n", nil, Options{})
		for _, d := range diags {
			if d.Severity == diag.Error {
				t.Errorf("unexpected: %s", d)
			}
		}
		if m := l.Mgmt.IPv4; m.Subnet.String() != tt.subnet || m.Gateway.String() != tt.gateway {
			t.Errorf("%s and %s: subnet %s, gateway %s, want %s, %s", tt.first, tt.second, m.Subnet, m.Gateway, tt.subnet, tt.gateway)
		}
		if warned := len(diags) == 1; warned != (tt.subnet != "172.20.20.0/24") {
			t.Errorf("%s: %v", tt.first, diags)
		}
	}
	_, diags := compileText(t, "name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n    a: {mgmt-ipv4: 10.0.0.1}\n    b: {mgmt-ipv4: 192.168.0.1}\n", nil, Options{})
	if len(diags) != 2 || diags[0].Code != CodeBadAddress {
		t.Errorf("addresses with nothing in common: %v", diags)
	}
}

// TestHealthcheckThatDockerIgnores: Docker runs no healthcheck whose test has no type, and
// c9s says so.
func TestHealthcheckThatDockerIgnores(t *testing.T) {
	l, diags := compileText(t, "name: t\ntopology:\n  nodes:\n    r1: {kind: linux, image: a, healthcheck: {test: ['curl -f http://localhost/ || exit 1']}}\n", nil, Options{})
	if l == nil || l.Nodes[0].Healthcheck != nil {
		t.Errorf("the lab is %+v", l)
	}
	if len(diags) != 1 || diags[0].Severity != diag.Warning || !strings.Contains(diags[0].Message, "no effect, as in Docker") {
		t.Errorf("diagnostics %v", diags)
	}
}

// TestMappedNamePlace: the warning about names is at the first one that differs.
func TestMappedNamePlace(t *testing.T) {
	_, diags := compileText(t, "name: t\ntopology:\n  nodes:\n    a: {kind: linux, image: a}\n    R1: {kind: linux, image: a}\n    R2: {kind: linux, image: a}\n", nil, Options{})
	if len(diags) != 1 || diags[0].Pos.Line != 5 {
		t.Errorf("%v", diags)
	}
}

// TestMappedLabName: a lab whose name is not its namespace's is reported, with its nodes.
func TestMappedLabName(t *testing.T) {
	text := func(name string) string {
		return "name: " + name + "\ntopology:\n  nodes:\n    R1: {kind: linux, image: a}\n"
	}
	for name, want := range map[string]string{"ine_v5": "the lab ine_v5 as ine-v5, R1 as r1", "ine-v5": "shows R1 as r1"} {
		_, diags := compileText(t, text(name), nil, Options{})
		if len(diags) != 1 || diags[0].Code != CodeNameMapped || !strings.Contains(diags[0].Message, want) {
			t.Errorf("%s: %v, want %s", name, diags, want)
		}
	}
	if _, diags := compileText(t, text("ine_v5"), nil, Options{Namespace: "mine"}); len(diags) != 1 || strings.Contains(diags[0].Message, "the lab") {
		t.Errorf("with a namespace of its own: %v", diags)
	}
}

// TestSharedFiles: files that nodes exchange in containerlab, and cannot across Pods.
func TestSharedFiles(t *testing.T) {
	files := map[string]string{"dir/a": "a", "file": "b"}
	for _, tt := range []struct{ nodes, want string }{
		{"a: {binds: [dir:/d], volumes: [vol:/v]}\n    b: {binds: [./dir:/e], volumes: [vol:/w]}", "its own copy of dir (a, b), volume vol (a, b), and nothing"},
		{"a: {binds: [dir:/d], volumes: [vol:/v]}\n    b: {binds: [dir:/d], volumes: [vol:/v], network-mode: container:a}", ""}, // one Pod
		{"a: {binds: [dir:/d:ro], volumes: [vol:/v:ro]}\n    b: {binds: [dir:/d:ro], volumes: [vol:/v:ro]}", ""},
		{"a: {binds: [dir:/d]}\n    b: {binds: [dir:/d:ro]}", "its own copy of dir (a, b), and nothing"},
		{"a: {binds: [file:/f]}\n    b: {binds: [file:/f]}", ""}, // a file is a configuration
		{"a: {volumes: [/v]}\n    b: {volumes: [/v]}", ""},       // anonymous
	} {
		_, diags := compileText(t, "name: t\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes:\n    "+tt.nodes+"\n", files, Options{})
		got := ""
		for _, d := range diags {
			if d.Code == CodeShared {
				got += d.Message
			}
			if d.Severity == diag.Error {
				t.Errorf("%s: %s", tt.nodes, d)
			}
		}
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s:\n got %q\nwant %q", tt.nodes, got, tt.want)
		}
	}
}

// TestLimitedIndexes: an IOL's application id, which is made from its index, is its own,
// however many other nodes there are.
func TestLimitedIndexes(t *testing.T) {
	var text strings.Builder
	text.WriteString("name: t\nmgmt: {ipv4-subnet: 172.20.0.0/16}\ntopology:\n  nodes:\n")
	for i := range 900 {
		kind := "linux"
		if i%5 == 0 {
			kind = "cisco_iol"
		}
		fmt.Fprintf(&text, "    n%d: {kind: %s, image: i}\n", i, kind)
	}
	larger := false
	for _, n := range compileClean(t, text.String(), nil, Options{}).Nodes {
		if n.Kind == "cisco_iol" && n.Index > 1022 {
			t.Errorf("%s has index %d", n.Name, n.Index)
		}
		larger = larger || n.Index > 1022
	}
	if !larger {
		t.Error("no node has an index over 1022")
	}
}

// TestGrownManagementSubnet: a lab with more nodes than the default subnet has addresses
// gets the larger one, keeps its addresses, and keeps the subnet when it shrinks.
func TestGrownManagementSubnet(t *testing.T) {
	text := func(mgmt string, nodes int) string {
		var b strings.Builder
		b.WriteString("name: t\n" + mgmt + "topology:\n  defaults: {kind: linux, image: a}\n  nodes:\n")
		for i := range nodes {
			fmt.Fprintf(&b, "    n%d:\n", i)
		}
		return b.String()
	}
	small, diags := compileText(t, text("", 253), nil, Options{})
	if small.Mgmt.IPv4.Subnet.String() != "172.20.20.0/24" || len(diags) > 0 {
		t.Fatalf("253 nodes: %v, %v", small.Mgmt.IPv4, diags)
	}
	large, diags := compileText(t, text("", 400), nil, Options{Previous: &small.Allocations})
	if len(diags) != 1 || diags[0].Code != CodeMgmtGrown || diags[0].Severity != diag.Warning {
		t.Errorf("400 nodes: %v", diags)
	}
	if m := large.Mgmt.IPv4; m.Subnet.String() != "172.20.0.0/16" || m.Gateway.String() != "172.20.0.1" {
		t.Errorf("400 nodes: %v", m)
	}
	for _, n := range small.Nodes {
		if m := large.Node(n.Name); m.MgmtIPv4 != n.MgmtIPv4 || m.MgmtIPv6 != n.MgmtIPv6 {
			t.Errorf("node %s moved from %s, %s to %s, %s", n.Name, n.MgmtIPv4, n.MgmtIPv6, m.MgmtIPv4, m.MgmtIPv6)
		}
	}
	again, _ := compileText(t, text("", 399), nil, Options{Previous: &large.Allocations})
	fewer, _ := compileText(t, text("", 10), nil, Options{Previous: &large.Allocations})
	if again.Mgmt.IPv4.Subnet != large.Mgmt.IPv4.Subnet || again.Node("n398").MgmtIPv4 != large.Node("n398").MgmtIPv4 {
		t.Errorf("after an edit: %v", again.Mgmt.IPv4)
	}
	for _, n := range fewer.Nodes {
		if n.MgmtIPv4 != large.Node(n.Name).MgmtIPv4 {
			t.Errorf("node %s moved to %s", n.Name, n.MgmtIPv4)
		}
	}
	for _, mgmt := range []string{"mgmt: {ipv4-subnet: 172.20.20.0/24}\n", "mgmt: {ipv4_subnet: 172.20.20.0/24}\n", "mgmt: {ipv4-range: 172.20.20.0/25}\n", "mgmt: {ipv4-gw: 172.20.20.5}\n"} {
		_, diags := compileText(t, text(mgmt, 254), nil, Options{})
		if !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }) {
			t.Errorf("%s: the file decides, but: %v", mgmt, diags)
		}
	}
}

// TestUnusableManagementSubnets are subnets with addresses that no node can have.
func TestUnusableManagementSubnets(t *testing.T) {
	for _, subnet := range []string{"0.0.0.0/0", "127.0.0.0/8", "127.1.0.0/16", "224.0.0.0/8", "169.254.1.0/24", "160.0.0.0/4"} {
		_, diags := compileText(t, "name: t\nmgmt: {ipv4-subnet: "+subnet+"}\ntopology:\n  nodes:\n    a: {kind: linux, image: a}\n", nil, Options{})
		if !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && d.Code == CodeBadAddress }) {
			t.Errorf("%s: %v", subnet, diags)
		}
	}
	for _, subnet := range []string{"::/0", "fe80::/64", "ff00::/8", "::/64"} {
		_, diags := compileText(t, "name: t\nmgmt: {ipv6-subnet: '"+subnet+"'}\ntopology:\n  nodes:\n    a: {kind: linux, image: a}\n", nil, Options{})
		if !slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && d.Code == CodeBadAddress }) {
			t.Errorf("%s: %v", subnet, diags)
		}
	}
}

// sharing is a policy that puts the nodes with these names behind the shared load balancer.
type sharing []string

func (s sharing) Segments() []lab.Segment { return nil }

func (s sharing) Apply(l *lab.Lab, _ *diag.List) {
	for _, n := range l.Nodes {
		if slices.Contains(s, n.Name) {
			n.Policy.Expose = &lab.Expose{Type: "LoadBalancer", Shared: true}
		}
	}
}

// TestSharedPorts: each node behind the shared load balancer has a range of ports of its own,
// which other nodes do not change.
func TestSharedPorts(t *testing.T) {
	text := func(names ...string) string {
		out := "name: t\ntopology:\n  nodes:\n"
		for _, n := range names {
			out += "    " + n + ": {kind: linux, image: alpine}\n"
		}
		return out
	}
	ports := func(l *lab.Lab) map[string]uint16 {
		out := map[string]uint16{}
		for _, n := range l.Nodes {
			if n.SharedPort != 0 {
				out[n.Name] = n.SharedPort
			}
		}
		return out
	}
	first := compileClean(t, text("a", "b", "c"), nil, Options{Policy: sharing{"a", "b"}})
	before := ports(first)
	if len(before) != 2 || before["a"] == before["b"] {
		t.Fatalf("ports %v", before)
	}
	second := compileClean(t, text("b", "c", "d"), nil, Options{Policy: sharing{"b", "c", "d"}, Previous: &first.Allocations})
	after := ports(second)
	if len(after) != 3 || after["b"] != before["b"] || after["c"] == before["a"] {
		t.Errorf("ports %v after %v", after, before)
	}
}
