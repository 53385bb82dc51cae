package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guideLab writes the lab of the guide to fabrics to a folder and returns its topology.
func guideLab(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/fabric.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, block := range regexp.MustCompile("(?s)```yaml\n# (\\S+)\n(.*?)```").FindAllSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(dir, string(block[1])), block[2], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "dc.clab.yml")
}

func runs(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(args, IO{Out: &out, Err: &errs})
	return out.String(), errs.String(), code
}

// TestFabricShow runs the example of the guide.
func TestFabricShow(t *testing.T) {
	topo := guideLab(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "leaf2   frr   vtep    10.0.0.2   65002  10.0.1.2  eth1=spine1, eth2=spine2  10, 20  generated\n"},
		{[]string{"leaf1"}, "\nrouter bgp 65001\n"},
		{[]string{"-o", "json"}, `"vlan": 10`},
		{[]string{"spine1", "-o", "yaml"}, "\nrouterID: 10.0.0.3\n"},
	} {
		out, errs, code := runs(t, append([]string{"fabric", "show", "-t", topo}, c.args...)...)
		if code != ExitOK || !strings.Contains(out, c.says) || errs != "" {
			t.Errorf("%v: exit code %d, %s\n%s", c.args, code, errs, out)
		}
	}
	if out, errs, code := runs(t, "render", topo); code != ExitOK || !strings.Contains(out, "router bgp 65001") || !strings.Contains(out, "vxlan10 type vxlan id 10010 local 10.0.1.1") {
		t.Errorf("render: exit code %d, %s", code, errs)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"host1"}, "node host1 is no member of the fabric"},
		{[]string{"x"}, `no node "x"`},
		{[]string{"-o", "csv"}, "use json or yaml"},
		{[]string{"--fabric", "none.yaml"}, "reading the fabric file none.yaml"},
	} {
		if _, errs, code := runs(t, append([]string{"fabric", "show", "-t", topo}, c.args...)...); code == ExitOK || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit code %d, %s", c.args, code, errs)
		}
	}
	file := filepath.Join(filepath.Dir(topo), "fabric.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: c9s.dev/v1\nkind: Fabric\npool: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := runs(t, "validate", topo); code != ExitFailure || !strings.Contains(errs, "fabric.yaml:3:1: error: unknown key \"pool\" in the fabric file") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := runs(t, "fabric", "show", "-t", topo); code != ExitFailure || !strings.Contains(errs, "has no fabric: write fabric.yaml next to it") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// TestPools lists the pools of a topology; one that is nearly full is a warning.
func TestPools(t *testing.T) {
	topo := guideLab(t)
	file := filepath.Join(filepath.Dir(topo), "fabric.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("10.0.0.0/24"), []byte("10.0.0.0/31, 10.0.0.2/31"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs, code := runs(t, "pools", topo)
	if code != ExitOK || !strings.Contains(out, "fabric/loopback   4         4     0     100 %\n") || !strings.Contains(out, "fabric/vtep       254       2     0     0 %\n") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if want := "warning: pool fabric/loopback is 100 % full: 4 of 4 values are allocated\n"; errs != want {
		t.Errorf("it reports %s", errs)
	}
	out, _, code = runs(t, "pools", topo, "-o", "wide")
	if code != ExitOK || !strings.Contains(out, "fabric/asn        group spine             65003               used") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	out, _, code = runs(t, "pools", topo, "-o", "json")
	var pools []pool
	if err := json.Unmarshal([]byte(out), &pools); code != ExitOK || err != nil || len(pools) < 8 || pools[0].Name != "fabric/asn" || pools[0].Size != 534 || pools[0].Owners["leaf1"] != "65001" {
		t.Errorf("exit code %d, %v, %v", code, err, pools)
	}
	if _, errs, code := runs(t, "pools", topo, "-o", "csv"); code != ExitUsage || !strings.Contains(errs, "use wide, json or yaml") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
