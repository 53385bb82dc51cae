package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// rewrite rewrites a topology and returns the new text and the codes of the diagnostics.
func rewrite(t *testing.T, text, release string) (string, []string) {
	t.Helper()
	f, diags := topology.Load(context.Background(), &topology.Source{Name: "t", Data: []byte(text)}, topology.Options{})
	if f == nil {
		t.Fatal(diags)
	}
	out, said, err := Rewrite(text, f, kinds.Builtin(), release)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, d := range said {
		codes = append(codes, string(d.Code))
	}
	return out, codes
}

// rewriteCases are topologies with what they must become, "" for the same.
var rewriteCases = []struct {
	name, text, want string
	codes            []string
}{
	{"nothing old", `name: t # a lab
topology:
  nodes:

    r1: {kind: ceos,   image: "a"}   # odd spaces stay
`, "", nil},
	{"extras in blocks", `name: t
topology:
  nodes:
    r1:
      kind: ceos
      # files of the switch
      extras: # for the flash
        ceos-copy-to-flash: # two of them
          - cfg/a.txt # the first
          - "cfg/b c.txt"

      image: ceos:4 # after a blank line
    # the other one
    r2:
      kind: linux
      image: a
`, `name: t
topology:
  nodes:
    r1:
      kind: ceos
      # files of the switch
      # for the flash
      copy-to-flash: # two of them
        - cfg/a.txt # the first
        - "cfg/b c.txt"

      image: ceos:4 # after a blank line
    # the other one
    r2:
      kind: linux
      image: a
`, nil},
	{"extras in braces", `name: t
topology:
  kinds:
    ceos: {extras: {ceos-copy-to-flash: [a.txt, 'b, c.txt']}, image: a} # comment
  nodes:
    r1: {kind: ceos, extras: {ceos-copy-to-flash: [b.txt]}}
    r2: {kind: ceos, extras: {srl-agents: [x]}}
    r3: {kind: ceos}
`, `name: t
topology:
  kinds:
    ceos: {copy-to-flash: [a.txt, 'b, c.txt'], image: a} # comment
  nodes:
    r1: {kind: ceos, copy-to-flash: [b.txt]}
    r2: {kind: ceos, copy-to-flash: []}
    r3: {kind: ceos}
`, []string{"convert-dropped"}},
	{"extras that hide others", `name: t
topology:
  kinds:
    ceos:
      extras: {ceos-copy-to-flash: [a.txt]}
  nodes:
    r1: {kind: ceos, extras: {srl-agents: []}, image: a}
    r2:
      kind: ceos
      extras:
        mysocket-proxy: x # nothing
    h: {kind: linux, extras: {srl-agents: []}}
`, `name: t
topology:
  kinds:
    ceos:
      copy-to-flash: [a.txt]
  nodes:
    r1: {kind: ceos, copy-to-flash: [], image: a}
    r2:
      kind: ceos
      copy-to-flash: []
    h: {kind: linux}
`, []string{"convert-dropped", "convert-dropped", "convert-dropped"}},
	{"extras of FRR, two deep, at the end of the file", `name: t
topology:
  nodes:
    r1:
      kind: frr
      image: a
      extras:
        frr:
          daemons:
          - bgpd
          - bfdd`, `name: t
topology:
  nodes:
    r1:
      kind: frr
      image: a
      daemons:
      - bgpd
      - bfdd`, nil},
	{"extras and the key", `name: t
topology:
  nodes:
    r1:
      kind: frr
      extras: {frr: {daemons: [ospfd]}}
      daemons: [bgpd]
`, `name: t
topology:
  nodes:
    r1:
      kind: frr
      daemons: [bgpd]
`, nil},
	{"extras that several kinds inherit", `name: t
topology:
  defaults:
    extras:
      ceos-copy-to-flash: [a.txt]
    image: a
  nodes:
    r1:
      kind: ceos
    r2: {kind: ceos}
    h: {kind: linux}
`, `name: t
topology:
  defaults:
    image: a
  nodes:
    r1:
      copy-to-flash: [a.txt]
      kind: ceos
    r2: {copy-to-flash: [a.txt], kind: ceos}
    h: {kind: linux}
`, nil},
	{"variables", `name: t
topology:
  nodes:
    a:
      kind: nokia_srsim
      env:
        # the old way
        CLAB_SROS_CONFIG_MODE: "classic" # for the class
        OTHER: x
    b:
      kind: nokia_srsim
      env:
        CLAB_SROS_DISABLE_COMPONENT_CONFIG: 1
      license: lic
    c: {kind: nokia_srsim, env: {CLAB_SROS_CONFIG_MODE: mixed}, license: lic}
    d: {kind: nokia_srsim, license: lic, env: {CLAB_SROS_CONFIG_MODE: mixed}}
    e: {kind: nokia_srsim, env: {A: b, CLAB_SROS_CONFIG_MODE: mixed}}
    f: {env: {CLAB_SROS_CONFIG_MODE: mixed}, kind: nokia_srsim, config-mode: classic}
    g: {kind: linux, env: {CLAB_SROS_CONFIG_MODE: mixed}}
`, `name: t
topology:
  nodes:
    a:
      kind: nokia_srsim
      config-mode: "classic" # for the class
      env:
        # the old way
        OTHER: x
    b:
      kind: nokia_srsim
      gen-component-config: false
      license: lic
    c: {kind: nokia_srsim, config-mode: mixed, license: lic}
    d: {kind: nokia_srsim, license: lic, config-mode: mixed}
    e: {kind: nokia_srsim, config-mode: mixed, env: {A: b}}
    f: {kind: nokia_srsim, config-mode: classic}
    g: {kind: linux, env: {CLAB_SROS_CONFIG_MODE: mixed}}
`, nil},
	{"variables behind anchors", `name: t
topology:
  groups:
    sim: &sim
      kind: nokia_srsim
      env: &env
        CLAB_SROS_CONFIG_MODE: classic
  nodes:
    a: {group: sim}
    b:
      <<: *sim
      image: x
    c:
      kind: nokia_srsim
      env: *env
`, `name: t
topology:
  groups:
    sim: &sim
      kind: nokia_srsim
      config-mode: classic
      env: &env
  nodes:
    a: {group: sim}
    b:
      <<: *sim
      image: x
    c:
      kind: nokia_srsim
      config-mode: classic
      env: *env
`, nil},
	{"variables that other nodes merge stay", `name: t
topology:
  nodes:
    sim:
      kind: nokia_srsim
      env: &e {CLAB_SROS_CONFIG_MODE: classic}
    h:
      kind: linux
      env:
        <<: *e
        A: b
`, `name: t
topology:
  nodes:
    sim:
      kind: nokia_srsim
      config-mode: classic
      env: &e {CLAB_SROS_CONFIG_MODE: classic}
    h:
      kind: linux
      env:
        <<: *e
        A: b
`, nil},
	{"extras behind aliases", `name: t
topology:
  nodes:
    a:
      kind: frr
      extras:
        frr: &f
          daemons: &d
            - bgpd # b
    b:
      kind: frr
      extras: {frr: *f}
    c:
      kind: frr
      extras:
        frr:
          daemons: *d
`, `name: t
topology:
  nodes:
    a:
      kind: frr
      daemons: &d
        - bgpd # b
    b:
      kind: frr
      daemons: [bgpd]
    c:
      kind: frr
      daemons: *d
`, nil},
	{"JSON", `{"name": "t", "topology": {"nodes": {
  "a": {"kind": "nokia_srsim", "env": {"CLAB_SROS_CONFIG_MODE": "classic"}},
  "c": {"kind": "ceos", "extras": {"ceos-copy-to-flash": ["a", "b"]}}
}}}
`, `{"name": "t", "topology": {"nodes": {
  "a": {"kind": "nokia_srsim", "config-mode": "classic"},
  "c": {"kind": "ceos", "copy-to-flash": ["a", "b"]}
}}}
`, nil},
	{"variables that several kinds inherit stay", `name: t
topology:
  defaults:
    env:
      CLAB_SROS_CONFIG_MODE: classic
  nodes:
    b: {kind: nokia_srsim, config-mode: mixed}
    a:
      kind: nokia_srsim
    h:
      kind: linux
`, `name: t
topology:
  defaults:
    env:
      CLAB_SROS_CONFIG_MODE: classic
  nodes:
    b: {kind: nokia_srsim, config-mode: mixed}
    a:
      config-mode: classic
      kind: nokia_srsim
    h:
      kind: linux
`, nil},
	{"cards", `name: t
topology:
  nodes:
    sim:
      kind: nokia_srsim
      components:
        - slot: A
          sfm: m-sfm6 # fabric
          type: cpm
        - sfm: m-sfm6
          slot: 1
    vm:
      kind: nokia_sros
      components:
        - {slot: A, env: {cpu: 2, ram: 4, max_nics: 6}, type: cpm}
        - slot: 1
          env:
            cpu: 4
            NOTHING: x
          type: iom
    host: {kind: linux, components: [{slot: A}], image: x}
`, `name: t
topology:
  nodes:
    sim:
      kind: nokia_srsim
      sfm: m-sfm6 # fabric
      components:
        - slot: A
          type: cpm
        - slot: 1
    vm:
      kind: nokia_sros
      components:
        - {slot: A, cpu: 2, ram: 4, max-nics: 6, type: cpm}
        - slot: 1
          cpu: 4
          type: iom
    host: {kind: linux, image: x}
`, []string{"convert-dropped", "convert-dropped"}},
	{"cards with several fabrics", `name: t
topology:
  nodes:
    sim: {kind: nokia_srsim, components: [{slot: A, sfm: a}, {slot: B, sfm: b}]}
`, "", []string{"convert-by-hand"}},
	{"old names", `name: t
mgmt:
  ipv4_subnet: 10.0.0.0/24 # v4
  ipv6_subnet: 3fff::/64
  ipv6-subnet: 3fff::/64
topology:
  nodes: {a: {kind: linux}}
  links:
    - type: vxlan
      endpoint: {node: a, interface: eth1}
      udp-port: 4789
`, `name: t
mgmt:
  ipv4-subnet: 10.0.0.0/24 # v4
  ipv6-subnet: 3fff::/64
topology:
  nodes: {a: {kind: linux}}
  links:
    - type: vxlan
      endpoint: {node: a, interface: eth1}
      dst-port: 4789
`, nil},
}

func TestRewrite(t *testing.T) {
	for _, c := range rewriteCases {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			if want == "" {
				want = c.text
			}
			got, codes := rewrite(t, c.text, "0.81")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if !slices.Equal(codes, c.codes) {
				t.Errorf("it says %v, want %v", codes, c.codes)
			}
			if again, _ := rewrite(t, got, "0.81"); again != got {
				t.Errorf("a second time changes it again:\n%s", cmp.Diff(got, again))
			}
			windows := strings.ReplaceAll(c.text, "\n", "\r\n")
			if got, _ := rewrite(t, windows, "0.81"); strings.ReplaceAll(got, "\r\n", "\n") != want {
				t.Errorf("with CR LF: -want +got:\n%s", cmp.Diff(want, strings.ReplaceAll(got, "\r\n", "\n")))
			}
		})
	}
}

// TestLineBreaks: YAML counts more characters as the end of a line than most programs do.
func TestLineBreaks(t *testing.T) {
	for _, text := range []string{
		"name: t\rtopology:\r  nodes:\r    a: {kind: ceos}\r",
		"name: t\ntopology:\n  nodes:\n    a: {kind: ceos, exec: [\"x\u2028y\u2028z\"]}\n",
		"name: t\u0085topology: {nodes: {a: {kind: ceos}}}\n",
		"name: t\r\ntopology:\n  nodes:\r\n    a: {kind: ceos}\n",
	} {
		f, _ := topology.Load(context.Background(), &topology.Source{Name: "t", Data: []byte(text)}, topology.Options{})
		if out, _, err := Rewrite(text, f, kinds.Builtin(), "0.81"); err == nil || out != text {
			t.Errorf("%q becomes %q, %v", text, out, err)
		}
	}
	const windows = "name: t\r\ntopology:\r\n  nodes:\r\n    a:\r\n      kind: ceos\r\n      extras:\r\n        ceos-copy-to-flash: [a.txt]\r\n"
	const want = "name: t\r\ntopology:\r\n  nodes:\r\n    a:\r\n      kind: ceos\r\n      copy-to-flash: [a.txt]\r\n"
	if got, _ := rewrite(t, windows, "0.81"); got != want {
		t.Errorf("%q", got)
	}
}

// TestRewriteFor080 leaves extras, which 0.80 has.
func TestRewriteFor080(t *testing.T) {
	const text = "name: t\ntopology:\n  nodes:\n    r1: {kind: ceos, extras: {ceos-copy-to-flash: [a.txt]}}\n"
	if got, _ := rewrite(t, text, "0.80"); got != text {
		t.Errorf("the text is\n%s", got)
	}
}

// TestRewriteEndless has definitions that merge themselves.
func TestRewriteEndless(t *testing.T) {
	bomb := "name: t\ntopology:\n  groups:\n    g0: &g0 {kind: ceos}\n"
	for i := range 60 {
		bomb += fmt.Sprintf("    g%d: &g%d {<<: [*g%d, *g%d]}\n", i+1, i+1, i, i)
	}
	for _, text := range []string{
		bomb,
		"name: t\ntopology:\n  nodes:\n    a: &a {<<: *a, kind: ceos, extras: {srl-agents: []}}\n",
		"name: t\ntopology:\n  nodes:\n    a: &a {<<: &b {<<: *a, kind: ceos}, extras: {srl-agents: []}}\n",
		"name: t\ntopology:\n  nodes:\n    a: {kind: ceos, extras: &e {frr: *e}, env: &v {A: *v}, components: &c [*c]}\n",
		"name: t\ntopology:\n  nodes:\n    a: {kind: ceos, extras: {ceos-copy-to-flash: &d [*d]}}\n",
	} {
		if got, _ := rewrite(t, text, "0.81"); !strings.Contains(got, "kind: ceos") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
