package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T, text string, env ...string) *File {
	t.Helper()
	f, diags := Load(t.Context(), &Source{Name: "t.clab.yml", Base: "t.clab.yml", Data: []byte(text)}, Options{Env: env})
	for _, d := range diags {
		t.Errorf("unexpected: %s", d)
	}
	if f == nil || f.Topology == nil {
		t.Fatal("nothing was read")
	}
	return f
}

func node(t *testing.T, f *File, name string) *NodeDef {
	t.Helper()
	n, ok := f.Topology.Nodes.Get(name)
	if !ok || n == nil {
		t.Fatalf("node %q was not read", name)
	}
	return n
}

func TestScalarsKeepTheirText(t *testing.T) {
	f := load(t, `
name: 0x10
topology:
  nodes:
    r1:
      kind: linux
      image: 1.10
      env: {MODE: 0644, FLAG: ON, EXP: 1e3, NULL_: ~, EMPTY: , YES: yes, DATE: 2024-01-02, INF: .inf, BIN: !!binary aGVsbG8=}
      sysctls:
        net.ipv4.ip_forward: 1
`)
	n := node(t, f, "r1")
	got := map[string]string{}
	for _, kv := range n.Env.Items {
		got[kv.Key] = kv.Value
	}
	want := map[string]string{"MODE": "0644", "FLAG": "ON", "EXP": "1e3", "NULL_": "", "EMPTY": "", "YES": "yes", "DATE": "2024-01-02", "INF": ".inf", "BIN": "hello"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if f.Name.Value != "0x10" || n.Image.Value != "1.10" || n.Sysctls.Items[0].Value != "1" {
		t.Errorf("name %q, image %q, sysctl %q", f.Name.Value, n.Image.Value, n.Sysctls.Items[0].Value)
	}
	if pos := n.Image.Pos.String(); pos != "t.clab.yml:7:14" {
		t.Errorf("the image is at %s", pos)
	}
}

func TestTypedScalars(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "True": true, "yes": true, "on": true, "y": true, "false": false, "no": false, "OFF": false, "n": false} {
		f := load(t, "name: t\ntopology:\n  nodes:\n    r1: {kind: linux, privileged: "+text+"}\n")
		if b := node(t, f, "r1").Privileged; !b.Set || b.Value != want {
			t.Errorf("privileged: %s = %+v", text, b)
		}
	}
	for text, want := range map[string]int{"9000": 9000, "0x10": 16, "0b11": 3, "017": 15, "0o17": 15, "9_000": 9000, "1e3": 1000, "-5": -5} {
		f := load(t, "name: t\nmgmt: {mtu: "+text+"}\ntopology:\n  nodes: {}\n")
		if i := f.Mgmt.MTU; !i.Set || i.Value != want {
			t.Errorf("mtu: %s = %+v, want %d", text, i, want)
		}
	}
}

func TestAnchorsMergesAndNullNodes(t *testing.T) {
	f := load(t, `
name: t
topology:
  kinds:
    linux: &base
      image: alpine:3
      env: {A: "1"}
  nodes:
    r1:
      <<: *base
      image: other
    r2: {<<: [*base, {cmd: sleep, image: never}]}
    r3:
    r4: ~
`)
	r1, r2 := node(t, f, "r1"), node(t, f, "r2")
	if r1.Image.Value != "other" || len(r1.Env.Items) != 1 {
		t.Errorf("r1: image %q, env %v", r1.Image.Value, r1.Env.Items)
	}
	if r2.Image.Value != "alpine:3" || r2.Cmd.Value != "sleep" {
		t.Errorf("r2: image %q, cmd %q", r2.Image.Value, r2.Cmd.Value)
	}
	for _, name := range []string{"r3", "r4"} {
		if n, ok := f.Topology.Nodes.Get(name); !ok || n != nil {
			t.Errorf("%s: %v, %v; want a node with nothing under it", name, n, ok)
		}
	}
}

func TestLinkForms(t *testing.T) {
	f := load(t, `
name: t
topology:
  links:
    - endpoints: ["a:eth1", "b:et:1"]
      mtu: 1500
      vars: {speed: 10, list: [1, two]}
    - type: VETH
      endpoints:
        - {node: a, interface: eth2, mac: "02:00:00:00:00:01", vars: {x: true}}
        - node: b
          interface: eth2
    - {type: dummy, endpoint: {node: a, interface: d0}}
    - {type: vxlan, endpoint: {node: a, interface: v0}, remote: 10.0.0.1, vni: 100, udp-port: 4789}
`)
	links := f.Topology.Links.Items
	if len(links) != 4 {
		t.Fatalf("%d links", len(links))
	}
	if !links[0].Brief() || links[0].Endpoints[1].Node.Value != "b" || links[0].Endpoints[1].Interface.Value != "et:1" {
		t.Errorf("brief: %+v", links[0])
	}
	if diff := cmp.Diff(map[string]any{"speed": 10, "list": []any{1, "two"}}, links[0].Vars.Value); diff != "" {
		t.Error(diff)
	}
	if links[1].Brief() || links[1].Type.Value != "veth" || links[1].Endpoints[0].MAC.Value != "02:00:00:00:00:01" {
		t.Errorf("veth: %+v", links[1])
	}
	if links[2].Endpoint.Interface.Value != "d0" || links[3].OldUDPPort.Value != 4789 {
		t.Errorf("dummy %+v, vxlan %+v", links[2], links[3])
	}
}

func TestExpandEnv(t *testing.T) {
	env := []string{"SET=value", "EMPTY=", "OTHER=o"}
	tests := map[string]string{
		"no reference":           "no reference",
		"$SET and ${SET}":        "value and value",
		"$UNSET and ${UNSET}":    "$UNSET and $UNSET",
		"${UNSET:-d}":            "d",
		"${UNSET:=d}":            "d",
		"${UNSET-d}":             "d",
		"${UNSET=d}":             "d",
		"${EMPTY:-d}":            "d",
		"${SET:-d}":              "value",
		"${UNSET:-$OTHER}":       "o",
		"$1 and P4s$w0rd":        "$1 and P4s$w0rd",
		"$$SET":                  "$SET",
		"a$":                     "a$",
		"${UNSET:-http://x/y:z}": "http://x/y:z",
	}
	for in, want := range tests {
		got, err := ExpandEnv(in, env)
		if err != nil || got != want {
			t.Errorf("ExpandEnv(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	if out, err := ExpandEnv("a: ${SET", env); err == nil {
		t.Errorf("a reference without an end gives %q and no error", out)
	}
}

func TestTemplates(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("lab.clab.gotmpl", `name: {{ .name }}
topology:
  nodes:
{{- range seq 1 .count }}
    {{ $.prefix }}{{ . }}:
      kind: linux
      mgmt-ipv4: {{ net.CIDRHost (add . 10) "10.0.0.0/24" }}
      env: {SUM: "{{ mul . 2 }}", JSON: '{{ ToJSON $.list }}', PARTS: "{{ conv.Join (strings.Split "-" "a-b") "+" }}"}
{{- end }}
{{ template "links.gotmpl" . }}`)
	write("clab_templates/links.gotmpl", "  links:\n    - endpoints: [\"r1:eth1\", \"r2:eth1\"]\n")
	write("lab.clab_vars.yaml", "name: fromvars\ncount: 2\nprefix: x\nlist: [1, 2]\n")
	write("lab.clab_vars.z.json", `{"prefix": "r"}`)
	src, err := Open(t.Context(), filepath.Join(dir, "lab.clab.gotmpl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, diags := Load(t.Context(), src, Options{})
	if len(diags) > 0 || f == nil {
		t.Fatalf("%v", diags)
	}
	r2 := node(t, f, "r2")
	var env []string
	for _, kv := range r2.Env.Items {
		env = append(env, kv.Key+"="+kv.Value)
	}
	if got := strings.Join(env, " "); f.Name.Value != "fromvars" || r2.MgmtIPv4.Value != "10.0.0.12" || got != "SUM=4 JSON=[1,2] PARTS=a+b" || len(f.Topology.Links.Items) != 1 {
		t.Errorf("name %q, address %q, env %q, %d links", f.Name.Value, r2.MgmtIPv4.Value, got, len(f.Topology.Links.Items))
	}
	if _, diags := Load(t.Context(), src, Options{VarsFiles: []string{filepath.Join(dir, "none.yaml")}}); len(diags) != 1 {
		t.Errorf("a variables file that is not there: %v", diags)
	}
}

func TestAliasBombIsRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("name: t\ntopology:\n  defaults:\n    config:\n      vars:\n        a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		prev := strings.Repeat("*a"+string(rune('0'+i-1))+", ", 10)
		b.WriteString("        a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.TrimSuffix(prev, ", ") + "]\n")
	}
	_, diags := Load(t.Context(), &Source{Name: "t", Data: []byte(b.String())}, Options{})
	if len(diags) != 1 || diags[0].Code != CodeTooLarge {
		t.Errorf("diagnostics: %v", diags)
	}
}
