//go:build !nocluster

package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// linkRow is what the tests read of link -o json.
type linkRow struct {
	Node, Interface, Peer string
	Impairment            *struct {
		DelayMs, Loss float64
		Down          bool
	}
	Changed bool
	Fault   *struct {
		EndsInSeconds           float64
		LengthMs, EveryMs, OnMs int64
	}
}

// TestLinkCommands: changes are merged, either end brings a link up, faults have an end, and
// --write declares what stays.
func TestLinkCommands(t *testing.T) {
	newFakeCluster(t)
	if err := os.WriteFile("demo.clab.yml", []byte("name: demo\ntopology: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := func(line string) []linkRow {
		t.Helper()
		var rows []linkRow
		if err := json.Unmarshal([]byte(called(t, append([]string{"c9s", "link"}, strings.Fields(line+" --lab demo -n ns -o json")...)...)), &rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	check := func(what string, r linkRow, end string, delay, loss float64, down bool) {
		t.Helper()
		if r.Impairment == nil {
			r.Impairment = &struct {
				DelayMs, Loss float64
				Down          bool
			}{}
		}
		if i := r.Impairment; r.Node+":"+r.Interface != end || i.DelayMs != delay || i.Loss != loss || i.Down != down {
			t.Errorf("%s: %+v of %s:%s", what, i, r.Node, r.Interface)
		}
	}
	rows := link("set R1:ge-0/0/0 --loss 2 --both")
	if len(rows) != 2 || rows[0].Peer != "R2:eth1" {
		t.Fatalf("set --both: %+v", rows)
	}
	check("set", rows[0], "R1:eth1", 5, 2, false)
	check("set --both", rows[1], "R2:eth1", 5, 2, false)
	rows = link("down R1:eth1 --for 1h")
	check("down", rows[0], "R1:eth1", 5, 2, true)
	if f := rows[0].Fault; f == nil || f.LengthMs != 3_600_000 || f.EndsInSeconds < 3500 || !rows[0].Changed {
		t.Errorf("down --for: %+v", f)
	}
	check("set while it is down", link("set R1:eth1 --delay 0")[0], "R1:eth1", 0, 2, true)
	if text := called(t, "c9s", "link", "show", "R1", "--lab", "demo", "-n", "ns"); !strings.Contains(text, "yes") || !strings.Contains(text, "in 3") {
		t.Errorf("show:\n%s", text)
	}
	rows = link("up R2:eth1")
	check("up at the other end", rows[1], "R1:eth1", 0, 2, false)
	if rows[1].Fault != nil {
		t.Errorf("after up: %+v", rows[1].Fault)
	}
	rows = link("flap R1:eth1 R2:eth1 --times 5 --every 4s --down 1s")
	if f := rows[0].Fault; len(rows) != 2 || f == nil || f.LengthMs != 20_000 || f.EveryMs != 4000 || f.OnMs != 1000 {
		t.Errorf("flap: %+v", f)
	}
	rows = link("reset --all")
	if len(rows) != 2 || rows[0].Fault != nil || rows[0].Changed || rows[0].Impairment != nil {
		t.Errorf("reset --all: %+v", rows)
	}
	link("down R1:eth1 --write")
	const want = `apiVersion: c9s.dev/v1
kind: Policy
profiles:
  - name: R1-links
    match: {names: [R1]}
    links:
      - {interface: ge-0/0/0, impair: {down: true}}
`
	if text, err := os.ReadFile("c9s.yaml"); err != nil || string(text) != want {
		t.Errorf("c9s.yaml is %s, %v; want\n%s", text, err, want)
	}
	if out := called(t, "c9s", "tools", "netem", "set", "-n", "R1", "-i", "eth1", "--name", "demo", "--delay", "7ms"); !strings.Contains(out, "eth1 (ge-0/0/0)") || !strings.Contains(out, "7ms") {
		t.Errorf("tools netem set: %s", out)
	}
	if out := called(t, "c9s", "tools", "netem", "show", "-n", "clab-demo-R1", "--format", "json"); !strings.Contains(out, `"delay": "7ms"`) {
		t.Errorf("tools netem show: %s", out)
	}
	for word, want := range map[string]string{"R": ":4\n", "R1:": "R1:ge-0/0/0\n:4\n", "R9:": ":4\n"} { // this lab has no list of its links
		if out, _, code := run(t, "__complete", "link", "down", "--lab", "demo", "-n", "ns", word); code != 0 || out != want {
			t.Errorf("completion of %q: %q, want %q", word, out, want)
		}
	}
	for line, want := range map[string]string{
		"set R1:eth1":                       "nothing to set",
		"set R1 --loss 1":                   "write NODE:INTERFACE",
		"set R1:eth1 --loss 101":            "not between 0 and 100",
		"set R9:eth1 --loss 1":              "no node R9",
		"down R1:eth1 --for 200h":           "use a duration up to 168h0m0s",
		"down R1:eth1 --for 1s --write":     "exclude one another",
		"down R1:eth1 --policy x":           "--policy needs --write",
		"flap R1:eth1 --every 2s --down 2s": "down for 2s is not from",
		"flap R1:eth1 --times 0":            "0 times",
		"reset":                             "or use --all",
		"reset --all R1:eth1":               "or use --all",
		"up R1:eth9":                        "node R1 has no interface eth9; it has eth1",
	} {
		if _, errs, code := run(t, append([]string{"link"}, strings.Fields(line+" --lab demo -n ns")...)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("link %s: exit code %d: %s, want %q", line, code, errs, want)
		}
	}
}
