package lab

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	junit "github.com/joshdk/go-junit"
)

// report is what the tests read of c9s test -o json.
type report struct {
	Passed, Failed, Warnings int
	Results                  []struct{ Group, Name, State, Detail string }
}

// test runs c9s test and returns its report and exit code.
func (l *lab) test(t *testing.T, args ...string) (r report, code int) {
	t.Helper()
	cmd := l.command(t.Context(), append([]string{"test", "--topo", l.topo, "-n", l.ns, "-o", "json"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("c9s test: %v, exit code %d\n%s%s", err, code, out, stderr.String())
	}
	return r, code
}

// TestDemoPasses: the demo's own file of tests, from deploy --test to convergence after a
// link has failed.
func TestDemoPasses(t *testing.T) {
	l := newLab(t, filepath.Join(repo, "testdata/demo/demo.clab.yml"), "demo")
	file := filepath.Join(t.TempDir(), "report.xml")
	out := l.deploy(t, "--test", "--junit", file)
	if !strings.Contains(out, "unreachable for") || !strings.Contains(out, ", 0 failed, 0 warnings") {
		t.Errorf("deploy --test prints\n%s", out)
	}
	suites, err := junit.IngestFile(file)
	if err != nil || len(suites) < 6 {
		t.Fatalf("%d suites, %v", len(suites), err)
	}
	for _, s := range suites {
		if s.Totals.Tests == 0 || s.Totals.Passed != s.Totals.Tests {
			t.Errorf("suite %s: %+v", s.Name, s.Totals)
		}
	}
	// Without a file, the lab has what any lab should have.
	cmd := l.command(t.Context(), "test", "--lab", "demo", "-n", l.ns)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "9500 bytes both ways") || !strings.Contains(string(out), "answers its gateway, reaches ") {
		t.Errorf("%v\n%s", err, out)
	}
	l.failsOver(t)
	if _, code := l.test(t, "--label", "none"); code != 2 {
		t.Errorf("no test: exit code %d", code)
	}
}

// failsOver runs the demo's scenario: OSPF moves the traffic while the link is down, the report
// has the time without an answer, and nothing is left of it.
func (l *lab) failsOver(t *testing.T) {
	t.Helper()
	out, err := l.output(t, "run", filepath.Join(repo, "testdata/demo/failover.yaml"), "--topo", l.topo, "-n", l.ns, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Failed int
		Events []struct{ Event, State, Detail string }
		Probes []struct {
			Sent, Received int
			State          string
			LongestSeconds float64
		}
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	var meanwhile string
	for _, e := range r.Events {
		if strings.HasPrefix(e.Event, "the way meanwhile") {
			meanwhile = e.Detail
		}
	}
	if r.Failed != 0 || len(r.Events) != 5 || len(r.Probes) != 1 || !strings.Contains(meanwhile, "dev eth2") {
		t.Fatalf("the report is %s", out)
	}
	if p := r.Probes[0]; p.State != "passed" || p.Sent != 750 || p.Received < 500 {
		t.Errorf("the probe: %s", out)
	} else {
		t.Logf("OSPF moved: unreachable for at most %.3f s, %d of %d pings answered", p.LongestSeconds, p.Received, p.Sent)
	}
	if out := l.c9s(t, "link", "show", "--topo", l.topo, "-n", l.ns, "-o", "json"); strings.Contains(out, `"changed": true`) {
		t.Errorf("left of the scenario: %s", out)
	}
}

// TestPlantedFaults: a wrong AS number, a VLAN that is missing and a small MTU are found and
// named, in the table and in the JUnit report.
func TestPlantedFaults(t *testing.T) {
	const (
		router = "\n      kind: linux\n      image: quay.io/frrouting/frr:10.2.1\n      binds: [\"daemons:/etc/frr/daemons\", \"__clabNodeName__.conf:/etc/frr/frr.conf\"]\n"
		host   = "\n      kind: linux\n      image: ghcr.io/srl-labs/network-multitool:latest\n      exec:\n"
		head   = "apiVersion: c9s.dev/v1\nkind: Test\ntimeout: 12s\n"
	)
	for _, tt := range []struct {
		name, topo, tests string
		files             map[string]string
		// failed are the cases that fail, with a part of their reason.
		failed map[string]string
		// node and mend remove the fault; then everything passes.
		node, mend string
	}{
		{"as", `topology:
  nodes:
    R1:` + router + `    R2:` + router + `  links:
    - endpoints: ["R1:eth1", "R2:eth1"]
`, `neighbours:
  - {nodes: [R1, R2], protocol: bgp, count: 1}
reachability:
  - {from: [R1], to: [10.0.12.2]}
`, map[string]string{
			"daemons": "zebra=yes\nmgmtd=yes\nbgpd=yes\nvtysh_enable=yes\n",
			"R1.conf": "hostname R1\ninterface eth1\n ip address 10.0.12.1/30\nrouter bgp 65001\n no bgp ebgp-requires-policy\n neighbor 10.0.12.2 remote-as 65099\n neighbor 10.0.12.2 timers connect 1\n",
			"R2.conf": "hostname R2\ninterface eth1\n ip address 10.0.12.2/30\nrouter bgp 65002\n no bgp ebgp-requires-policy\n neighbor 10.0.12.1 remote-as 65001\n neighbor 10.0.12.1 timers connect 1\n",
		}, map[string]string{"R1 has 1 bgp neighbours": "0 of them are up, want 1: 10.0.12.2", "R2 has 1 bgp neighbours": "0 of them are up"},
			"R1", "vtysh -c 'conf t' -c 'router bgp 65001' -c 'neighbor 10.0.12.2 remote-as 65002'"},
		{"vlan", `topology:
  nodes:
    SW:` + host + `        - ip link add vlan10 type bridge
        - ip link set vlan10 up
        - ip link set eth1 master vlan10
    H1:` + host + `        - ip addr add 10.0.10.1/24 dev eth1
    H2:` + host + `        - ip addr add 10.0.10.2/24 dev eth1
  links:
    - endpoints: ["H1:eth1", "SW:eth1"]
    - endpoints: ["H2:eth1", "SW:eth2"]
`, `basics: [links]
reachability:
  - {from: [H1], to: [10.0.10.2]}
commands:
  - name: VLAN 10 on eth2
    nodes: [SW]
    command: ip -j link show dev eth2
    json: [{path: "{[0].master}", equals: vlan10}]
`, nil, map[string]string{"H1 reaches 10.0.10.2": "no answer", "SW: VLAN 10 on eth2": `"", want "vlan10"`},
			"SW", "ip link set eth2 master vlan10"},
		{"mtu", `topology:
  nodes:
    H1:` + host + `        - ip addr add 10.0.10.1/24 dev eth1
    H2:` + host + `        - ip addr add 10.0.10.2/24 dev eth1
        - ip link set eth1 mtu 1400
  links:
    - endpoints: ["H1:eth1", "H2:eth1"]
`, `basics: [links]
reachability:
  - {from: [H1], to: [10.0.10.2]}
  - {name: large, from: [H1], to: [10.0.10.2], size: 9000}
`, nil, map[string]string{"H1:eth1 - H2:eth1": "the MTUs differ: H1:eth1 has 9500, H2:eth1 has 1400", "large: H1 reaches 10.0.10.2": "no answer"},
			"H2", "ip link set eth1 mtu 9500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"lab.clab.yml": "name: " + tt.name + "\n" + tt.topo, "lab.test.yaml": head + tt.tests}
			for name, text := range tt.files {
				files[name] = text
			}
			l := written(t, tt.name, files)
			l.deploy(t)
			file := filepath.Join(filepath.Dir(l.topo), "report.xml")
			r, code := l.test(t, "--junit", file)
			if code != 1 || r.Failed != len(tt.failed) || r.Passed == 0 {
				t.Errorf("exit code %d, %+v", code, r)
			}
			for _, result := range r.Results {
				if why, fails := tt.failed[result.Name]; fails != (result.State == "failed") || !strings.Contains(result.Detail, why) {
					t.Errorf("%+v, want %q", result, why)
				}
			}
			suites, err := junit.IngestFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, s := range suites {
				for _, c := range s.Tests {
					if c.Status == junit.StatusFailed {
						found++
						if why, known := tt.failed[c.Name]; !known || !strings.Contains(c.Message, why) {
							t.Errorf("JUnit: %s: %s", c.Name, c.Message)
						}
					}
				}
			}
			if found != len(tt.failed) {
				data, _ := os.ReadFile(file)
				t.Errorf("the reader finds %d failures in\n%s", found, data)
			}
			if out, err := l.in(t.Context(), tt.node, "sh", "-c", tt.mend); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if r, code := l.test(t); code != 0 {
				t.Errorf("without the fault: exit code %d, %+v", code, r)
			}
		})
	}
}
