package plan

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

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
		}, "startup-config-partial/error", "over SSH"},
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
			p.Diagnostics = append(p.Diagnostics, CheckLicense(p, n)...)
			if got := codes(p); got != tt.codes {
				t.Fatalf("codes %q, want %q: %v", got, tt.codes, p.Diagnostics)
			}
			for _, d := range p.Diagnostics {
				if d.Code == CodeKindIncomplete {
					continue
				}
				// What the kind ignores is reported once, for all its nodes.
				about := d.Code == CodeLicenseIgnored || d.Code == CodeStartupConfigIgnored || strings.Contains(d.Message, `node "n1"`)
				if !strings.Contains(d.Message, tt.says) || !about || d.Hint == "" || d.Pos != n.Pos {
					t.Errorf("%+v, want %q of node n1 at %s with a hint", d, tt.says, n.Pos)
				}
			}
		})
	}
}

func TestIncompleteKindsAreReportedOnce(t *testing.T) {
	l := testLab("t")
	testNode(l, "a", "nokia_srsim", 1)
	testNode(l, "b", "nokia_srsim", 2)
	b := NewBuiltin(kinds.Builtin())
	var all diag.List
	for _, n := range l.Nodes {
		p, _ := b.Plan(context.Background(), l, n)
		all.Append(p.Diagnostics)
	}
	if list := diag.Collapse(all.All()); len(list) != 1 || list[0].Code != CodeKindIncomplete || list[0].Pos != l.Nodes[0].Pos {
		t.Errorf("%v, want one warning for both nodes, at the first", list)
	}
}
