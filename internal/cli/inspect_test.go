package cli

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/doctor"
	"github.com/c9s-lab/c9s/pkg/status"
)

func inspected() []inspectRow {
	return inspectRows(status.Lab{Name: "vlan", Namespace: "team-a", Nodes: []status.Node{
		{Name: "srl1", Kind: "nokia_srlinux", Image: "ghcr.io/nokia/srlinux:24.10.1", State: status.StateReady, PodName: "srl1-abc", Worker: "n1", Exposed: "10.96.0.7",
			ExposedPorts: []status.ExposedPort{{Port: 22, Protocol: "TCP", At: 11000}, {Port: 161, Protocol: "UDP", At: 11000}},
			Source:       "vlan.clab.yml:5", IPv4: netip.MustParseAddr("172.20.20.2"), IPv6: netip.MustParseAddr("3fff:172:20:20::2")},
		{Name: "br1", Kind: "bridge", State: status.StateBooting, Source: "vlan.clab.yml:9"},
	}})
}

func TestInspectTable(t *testing.T) {
	for name, c := range map[string]struct {
		all, wide bool
		want      string
	}{
		"one lab": {false, false, `
╭──────┬───────────────────────────────┬─────────┬───────────────────╮
│ Name │           Kind/Image          │  State  │   IPv4/6 Address  │
├──────┼───────────────────────────────┼─────────┼───────────────────┤
│ srl1 │ nokia_srlinux                 │ ready   │ 172.20.20.2       │
│      │ ghcr.io/nokia/srlinux:24.10.1 │         │ 3fff:172:20:20::2 │
├──────┼───────────────────────────────┼─────────┼───────────────────┤
│ br1  │ bridge                        │ booting │ N/A               │
│      │                               │         │ N/A               │
╰──────┴───────────────────────────────┴─────────┴───────────────────╯
`},
		"all labs": {true, false, `
╭───────────────┬──────────┬──────┬───────────────────────────────┬─────────┬───────────────────╮
│    Topology   │ Lab Name │ Name │           Kind/Image          │  State  │   IPv4/6 Address  │
├───────────────┼──────────┼──────┼───────────────────────────────┼─────────┼───────────────────┤
│ vlan.clab.yml │ vlan     │ srl1 │ nokia_srlinux                 │ ready   │ 172.20.20.2       │
│               │          │      │ ghcr.io/nokia/srlinux:24.10.1 │         │ 3fff:172:20:20::2 │
│               │          ├──────┼───────────────────────────────┼─────────┼───────────────────┤
│               │          │ br1  │ bridge                        │ booting │ N/A               │
│               │          │      │                               │         │ N/A               │
╰───────────────┴──────────┴──────┴───────────────────────────────┴─────────┴───────────────────╯
`},
	} {
		var out bytes.Buffer
		if err := inspectTable(&out, inspected(), c.all, c.wide); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), out.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var out bytes.Buffer
	if err := inspectTable(&out, inspected(), false, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Namespace", "Worker", "team-a", "n1", "srl1-abc", "10.96.0.7", "11000->22/tcp 11000->161/udp"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("--wide lacks %s", want)
		}
	}
}

func TestInspectFormats(t *testing.T) {
	var out bytes.Buffer
	if err := inspectCSV(&out, inspected()[:1]); err != nil {
		t.Fatal(err)
	}
	const csv = `lab_name,labPath,name,container_id,image,kind,state,status,ipv4_address,ipv6_address,namespace,worker,exposed,exposed_ports
vlan,vlan.clab.yml,srl1,srl1-abc,ghcr.io/nokia/srlinux:24.10.1,nokia_srlinux,ready,,172.20.20.2,3fff:172:20:20::2,team-a,n1,10.96.0.7,11000->22/tcp 11000->161/udp
`
	if diff := cmp.Diff(csv, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := inspectJSON(&out, inspected()); err != nil {
		t.Fatal(err)
	}
	var labs map[string][]map[string]any
	if err := json.Unmarshal(out.Bytes(), &labs); err != nil {
		t.Fatal(err)
	}
	if got := labs["vlan"]; len(got) != 2 || got[0]["ipv4_address"] != "172.20.20.2" || got[1]["ipv6_address"] != "N/A" {
		t.Errorf("got %v", labs)
	}
}

// What is wrong with the command line is reported before a cluster is looked for.
func TestUsageOfClusterCommands(t *testing.T) {
	for args, want := range map[string]string{
		"inspect -f xml":                `--format "xml": use table, json or csv`,
		"inspect --all lab":             "--all excludes a lab",
		"inspect a b":                   "accepts at most 1 arg",
		"inspect lab --topo x.clab.yml": "given twice",
		"doctor -o yaml":                `--output "yaml": use json`,
		"doctor --timeout 0s":           "--timeout 0s",
		"doctor x.clab.yml --topo y":    "given twice",
		"doctor a b":                    "accepts at most 1 arg",
		"status -o xml":                 "use wide, json or yaml",
		"save --lab x":                  "no topology here to save next to",
		"link set r1:eth1":              "nothing to set",
		"link set r1:eth1 --loss 101":   "not between 0 and 100 percent",
		"link set r1:eth1 --rate 10x":   "10x",
		"link reset":                    "or use --all",
		"link reset r1:eth1 --all":      "or use --all",
		"save -o yaml":                  "use json",
		"exec r1 ls":                    "missing -- before the command; usage: c9s exec NODE -- COMMAND [ARG...]",
		"exec r1 r2 -- ls":              "name one node",
		"exec r1 --":                    "missing command",
		"exec --all -it -- ls":          "are for one node",
		"exec r1 -o yaml -- ls":         "use json",
		"labs -o yaml":                  "use json",
		"logs":                          "accepts 1 arg",
		"restart":                       "requires at least 1 arg",
		"destroy a b":                   "accepts at most 1 arg",
		"shell":                         "accepts 1 arg",
	} {
		t.Setenv("KUBECONFIG", "/nonexistent")
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		var out, err bytes.Buffer
		if code := Main(strings.Fields(args), IO{In: strings.NewReader(""), Out: &out, Err: &err}); code != ExitUsage {
			t.Errorf("%s: exit code %d\n%s", args, code, err.String())
		}
		if !strings.Contains(err.String(), want) || !strings.Contains(err.String(), "--help' for usage") {
			t.Errorf("%s: %q, want %q", args, err.String(), want)
		}
		if out.Len() > 0 {
			t.Errorf("%s: standard output has %q", args, out.String())
		}
	}
}

func TestPrintDoctor(t *testing.T) {
	r := doctor.Report{Lab: "demo", Checks: []doctor.Check{
		{Name: "API server", Result: doctor.OK, Found: "Kubernetes 1.31.2"},
		{Name: "DNS", Result: doctor.Problem, Found: "there is\nnone", Remedy: "install CoreDNS"},
	}}
	var out bytes.Buffer
	if err := printDoctor(IO{Out: &out}, r, false); err != nil {
		t.Fatal(err)
	}
	const want = `RESULT   CHECK       FOUND
ok       API server  Kubernetes 1.31.2
problem  DNS         there is none
                     → install CoreDNS

lab demo cannot run here: 1 problem (--probe also tests the workers' kernels)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	for text, r := range map[string]doctor.Report{
		"labs can run here":                {},
		"lab demo can run here, 1 warning": {Lab: "demo", Checks: []doctor.Check{{Result: doctor.Warning}}},
	} {
		if got := lastLine(r, true); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	if got := wrap(strings.Repeat("word ", 20), 40); len(got) < 3 || len(got[0]) > 40 {
		t.Errorf("wrapped: %q", got)
	}
}
