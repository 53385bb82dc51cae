package policy

import (
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

const head = "apiVersion: c9s.dev/v1\nkind: Policy\n"

// TestDeclare: the impairment of one interface is written, and the rest of the file stays.
func TestDeclare(t *testing.T) {
	eth1 := End{Node: "R1", Interface: "eth1"}
	delay := &lab.Impairment{DelayMS: 50, Loss: 0.5, RateKbit: 10_000}
	for _, tt := range []struct {
		name, text string
		end        End
		to         *lab.Impairment
		want       string // or wantErr
		wantErr    string
	}{
		{name: "no file", end: eth1, to: delay, want: head + `profiles:
  - name: R1-links
    match: {names: [R1]}
    links:
      - {interface: eth1, impair: {delay: 50ms, loss: 0.5, rate: 10mbit}}
`},
		{name: "no file, nothing to write", end: eth1, want: head + "profiles:\n  []\n"},
		{name: "no profiles", text: head + "# the end", end: eth1, to: &lab.Impairment{Down: true}, want: head + `# the end
profiles:
  - name: R1-links
    match: {names: [R1]}
    links:
      - {interface: eth1, impair: {down: true}}
`},
		{name: "an empty list", text: head + "profiles: []  # none yet\n", end: eth1, to: &lab.Impairment{Down: true}, want: head + `profiles: 
  - name: R1-links
    match: {names: [R1]}
    links:
      - {interface: eth1, impair: {down: true}}  # none yet
`},
		{name: "a rule of exactly this interface, in block style", text: head + `profiles:
- name: slow   # the WAN
  match:
    names: [R1]
  links:
  - interface: eth1
    # one way to Sydney
    impair:
      delay: 140ms   # measured
      jitter: 3ms
      loss: 1

- name: rest
`, end: eth1, to: &lab.Impairment{DelayMS: 50, Loss: 1, RateKbit: 64}, want: head + `profiles:
- name: slow   # the WAN
  match:
    names: [R1]
  links:
  - interface: eth1
    # one way to Sydney
    impair:
      rate: 64kbit
      delay: 50ms   # measured
      loss: 1

- name: rest
`},
		{name: "a rule in braces, by its alias", text: head + `profiles:
  - name: slow
    match: {names: [R1]}
    links:
      - {interface: ethernet-1/1, impair: {delay: 10ms, seed: 7}, datapath: udp} # keep
`, end: End{"R1", "e1-1", "ethernet-1/1"}, to: delay, want: head + `profiles:
  - name: slow
    match: {names: [R1]}
    links:
      - {interface: ethernet-1/1, impair: {loss: 0.5, rate: 10mbit, delay: 50ms, seed: 7}, datapath: udp} # keep
`},
		{name: "a rule without an impairment", text: head + "profiles:\n  - name: p\n    match: {names: [R1]}\n    links:\n      - interface: eth1 # up\n        mtu: 1500\n      - {interface: eth2, mtu: 9000}\n", end: eth1, to: &lab.Impairment{Loss: 2},
			want: head + "profiles:\n  - name: p\n    match: {names: [R1]}\n    links:\n      - interface: eth1 # up\n        mtu: 1500\n        impair: {loss: 2}\n      - {interface: eth2, mtu: 9000}\n"},
		{name: "removed", text: head + "profiles:\n  - name: p\n    match: {names: [R1]}\n    links:\n      - {interface: eth1, impair: {loss: 2}}\n", end: eth1,
			want: head + "profiles:\n  - name: p\n    match: {names: [R1]}\n    links:\n      - {interface: eth1, impair: {}}\n"},
		{name: "another profile comes first", text: head + `profiles:
  - name: all
    priority: 10
    links:
      - impair: {delay: 1ms}
  - name: one
    match: {names: [R1]}
    links:
      - {interface: eth1, impair: {delay: 5ms}}
`, end: eth1, to: &lab.Impairment{DelayMS: 2}, want: head + `profiles:
  - name: all
    priority: 10
    links:
      - impair: {delay: 1ms}
  - name: one
    match: {names: [R1]}
    links:
      - {interface: eth1, impair: {delay: 5ms}}
  - name: R1-links
    priority: 9
    match: {names: [R1]}
    links:
      - {interface: eth1, impair: {delay: 2ms}}
`},
		{name: "a second interface of the same node", text: head + "profiles:\n  - name: R1-links\n    match: {names: [R1]}\n    links:\n      - {interface: eth1, impair: {loss: 2}}\n  - name: other\n    match: {names: [R2]}\n    priority: 1\n    links: [{impair: {loss: 1}}]\n",
			end: End{Node: "R1", Interface: "eth2"}, to: &lab.Impairment{Loss: 3},
			want: head + "profiles:\n  - name: R1-links\n    match: {names: [R1]}\n    links:\n      - {interface: eth1, impair: {loss: 2}}\n      - {interface: eth2, impair: {loss: 3}}\n  - name: other\n    match: {names: [R2]}\n    priority: 1\n    links: [{impair: {loss: 1}}]\n"},
		{name: "a name that YAML reads as a number", end: End{Node: "1", Interface: "eth1"}, to: &lab.Impairment{Loss: 3}, want: head + `profiles:
  - name: 1-links
    match: {names: ["1"]}
    links:
      - {interface: eth1, impair: {loss: 3}}
`},
		{name: "nothing declared, nothing wanted", text: head + "profiles: []\n", end: eth1, want: head + "profiles: []\n"},
		{name: "another rule may impair it", text: head + "profiles:\n  - name: all\n    links: [{impair: {loss: 1}}]\n", end: eth1, wantErr: `profile "all" may impair R1:eth1 too: remove that from the file yourself`},
		{name: "a list in brackets", text: head + "profiles: [{name: a}]\n", end: eth1, to: delay, wantErr: "the list profiles is in brackets: add the rule {interface: eth1, impair: {delay: 50ms, loss: 0.5, rate: 10mbit}} yourself"},
		{name: "a file with an error", text: head + "profile: []\n", end: eth1, to: delay, wantErr: `unknown key "profile"`},
	} {
		got, err := Declare("c9s.yaml", tt.text, tt.end, tt.to)
		switch {
		case tt.wantErr != "":
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.wantErr)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case got != tt.want:
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// TestDeclareAgain: what is written is what the file then declares, whatever was written before.
func TestDeclareAgain(t *testing.T) {
	text := head + "profiles:\n  - name: base\n    links:\n      - impair: {delay: 1ms} # everywhere\n"
	end := End{Node: "R1", Interface: "e1-1", Alias: "ethernet-1/1"}
	for _, to := range []lab.Impairment{{DelayMS: 50}, {Loss: 3, Down: true}, {RateKbit: 2_000_000, JitterMS: 0.5, DelayMS: 1.5}, {Corruption: 1, Duplication: 2, Reordering: 3}} {
		out, err := Declare("c9s.yaml", text, end, &to)
		if err != nil {
			t.Fatal(err)
		}
		p, diags := Load("c9s.yaml", []byte(out))
		if p == nil {
			t.Fatal(diags)
		}
		l := &lab.Lab{Links: []*lab.Link{{Endpoints: []*lab.Endpoint{{Node: "R1", Interface: "e1-1", Alias: "ethernet-1/1"}, {Node: "R2", Interface: "eth1"}}}}}
		l.Nodes = []*lab.Node{{Name: "R1", Endpoints: l.Links[0].Endpoints[:1]}, {Name: "R2", Endpoints: l.Links[0].Endpoints[1:]}}
		list := &diag.List{}
		p.Apply(l, list)
		if got := l.Links[0].Impairment; got == nil || got.AToB != to || got.BToA.DelayMS != 1 {
			t.Errorf("%+v is declared as %+v by\n%s", to, got, out)
		}
		if !strings.Contains(out, "# everywhere") {
			t.Errorf("a comment is lost:\n%s", out)
		}
		text = out
	}
}
