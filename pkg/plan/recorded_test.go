package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// A recorded plan is what containerlab's own hooks asked of a runtime that
// performs nothing, for a lab of two nodes: n1 of the kind, linked to peer.

type recordedPlan struct {
	Lab   string
	Mgmt  struct{ IPv4Subnet, IPv6Subnet, IPv4Gw, IPv6Gw string }
	Nodes map[string]recordedNode
	Files []struct{ Node, Path, Mode, Phase string }
	Links []struct {
		Endpoints []struct{ Iface, Node string }
	}
	Ops []struct {
		Op, Container string
		Args          struct {
			Cmd []string
			Dst string
		}
	}
	InteractiveCLI []string
}

type recordedNode struct {
	Containers       map[string]recordedContainer
	LinkApplyMode    string
	StopSignal       string
	LicensePolicy    string
	RequiresCert     bool
	HostRequirements struct {
		VirtRequired  bool `json:"virt-required"`
		SSSE3         bool
		MinVCPU       int `json:"min-vcpu"`
		MinFreeMemory int `json:"min-free-memory"`
	}
}

type recordedContainer struct {
	Env, Sysctls, Tmpfs   map[string]string
	Binds, Devices        []string
	CapAdd                []string `json:"cap-add"`
	Cmd, Entrypoint, User string
	Type, License, Labdir string
	Healthcheck           *struct {
		Test                                    []string
		Interval, Timeout, Retries, StartPeriod int
	}
	ShmSize       string `json:"shm-size"`
	Memory        string
	RestartPolicy string `json:"restart-policy"`
	MacAddress    string `json:"mac-address"`
}

// subject is the node of the kind in question: n1, or br0 for bridges.
func (r *recordedPlan) subject() recordedNode {
	for name, node := range r.Nodes {
		if name != "peer" {
			return node
		}
	}
	return recordedNode{}
}

// recordedDir finds the folder of recorded plans beside the repository, or skips.
func recordedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
	plans := filepath.Join(dir, "..", "shared", "reference", "plans")
	if _, err := os.Stat(plans); err != nil {
		t.Skipf("skipped: no recorded plans beside the repository (%s)", plans)
	}
	return plans
}

func readRecorded(t *testing.T, file string) *recordedPlan {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := &recordedPlan{}
	if err := json.Unmarshal(data, r); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var mgmt struct {
		Mgmt map[string]any
	}
	if err := json.Unmarshal(data, &mgmt); err != nil {
		t.Fatal(err)
	}
	text := func(key string) string { s, _ := mgmt.Mgmt[key].(string); return s }
	r.Mgmt.IPv4Subnet, r.Mgmt.IPv6Subnet = text("ipv4-subnet"), text("ipv6-subnet")
	r.Mgmt.IPv4Gw, r.Mgmt.IPv6Gw = text("ipv4-gw"), text("ipv6-gw")
	return r
}

// recordedLab makes the lab model that the recorded plan was made from.
func recordedLab(t *testing.T, r *recordedPlan, kind *kinds.Kind) (*lab.Lab, *lab.Node) {
	t.Helper()
	l := testLab(r.Lab)
	n := testNode(l, "n1", kind.Name, 1)
	n.LongName, n.FQDN = "clab-"+r.Lab+"-n1", "n1."+r.Lab+".io"
	for _, c := range r.subject().Containers {
		n.WrittenKind = c.Env["CLAB_LABEL_CLAB_NODE_KIND"]
		n.Type = c.Env["CLAB_LABEL_CLAB_NODE_TYPE"]
		if c.License != "" {
			n.License = testFile(l, "lic.txt", "a licence")
		}
	}
	for _, link := range r.Links {
		for _, e := range link.Endpoints {
			if e.Node == "n1" {
				n.Endpoints = append(n.Endpoints, &lab.Endpoint{Node: "n1", Interface: e.Iface})
				l.Links = append(l.Links, &lab.Link{MTU: 9500, Endpoints: n.Endpoints})
			}
		}
	}
	return l, n
}

func TestRecordedPlans(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordedDir(t), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var allowed map[string]map[string]string
	raw, err := os.ReadFile("testdata/differences.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &allowed); err != nil {
		t.Fatal(err)
	}
	catalogue := kinds.Builtin()
	found := map[string]map[string]string{}
	compared := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		kind, ok := catalogue.Lookup(name)
		if !ok {
			t.Errorf("no kind for %s", file)
			continue
		}
		r := readRecorded(t, file)
		l, n := recordedLab(t, r, kind)
		p, err := NewBuiltin(catalogue).Plan(context.Background(), l, n)
		if err != nil {
			t.Fatal(err)
		}
		if kind.Refused != "" {
			continue
		}
		compared++
		for _, d := range p.Diagnostics {
			if d.Severity == "error" {
				t.Errorf("%s: %s", name, d)
			}
		}
		found[kind.Name] = differences(r, p)
	}
	if compared != 59 {
		t.Errorf("compared %d kinds, want the 59 that are not refused", compared)
	}
	reportDifferences(t, found, allowed)
}

// reportDifferences prints the table and holds it against the allow-list: what is
// found must be allowed, what is allowed must be found.
func reportDifferences(t *testing.T, found, allowed map[string]map[string]string) {
	used := map[string]bool{}
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		for _, field := range slices.Sorted(maps.Keys(found[kind])) {
			switch {
			case allowed[kind][field] != "":
				used[kind+" "+field] = true
			case allowed["*"][field] != "":
				used["* "+field] = true
				continue
			default:
				t.Errorf("%s: %s differs: %s", kind, field, found[kind][field])
			}
			t.Logf("%-22s %-28s %s", kind, field, allowed[kind][field])
		}
	}
	for kind, fields := range allowed {
		for field := range fields {
			if !used[kind+" "+field] {
				t.Errorf("differences.yaml allows %s of %s, which does not differ", field, kind)
			}
		}
	}
}

// TestRecordedChassis holds the cards of SR-SIM chassis against recorded labs.
func TestRecordedChassis(t *testing.T) {
	for _, name := range []string{"sr-sim__lab-distributed-components", "sr-sim__sr-14s-components"} {
		file := filepath.Join(recordedDir(t), "labs", name+".json")
		r := readRecorded(t, file)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var final struct {
			Nodes map[string]struct {
				FinalConfig struct {
					Components []lab.Component
					Env        map[string]string
					Type       string
				}
			}
		}
		if err := json.Unmarshal(raw, &final); err != nil {
			t.Fatal(err)
		}
		for nodeName, node := range r.Nodes {
			l := testLab(r.Lab)
			n := testNode(l, nodeName, "nokia_srsim", 1)
			n.License = testFile(l, "lic.txt", "a licence")
			config := final.Nodes[nodeName].FinalConfig
			n.Components, n.Type, n.Env = config.Components, config.Type, map[string]string{}
			if mac := config.Env["NOKIA_SROS_SYSTEM_BASE_MAC"]; !strings.HasPrefix(mac, "1c:") {
				n.Env["NOKIA_SROS_SYSTEM_BASE_MAC"] = mac
			}
			p, err := NewBuiltin(kinds.Builtin()).Plan(context.Background(), l, n)
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Containers) != len(node.Containers) || len(p.Containers) < 4 {
				t.Errorf("%s: %d containers, recorded %d", nodeName, len(p.Containers), len(node.Containers))
			}
			for _, c := range p.Containers {
				want, ok := node.Containers["clab-"+r.Lab+"-"+nodeName+"-"+c.Name]
				if !ok {
					t.Errorf("%s: no card %s was recorded", nodeName, c.Name)
					continue
				}
				out := map[string]string{}
				single := *p
				single.Containers = []Container{c}
				// Only the card that owns the namespace has an eth0 of its own.
				if c.MgmtMAC == "" {
					single.Containers[0].MgmtMAC = want.MacAddress
				}
				compareContainer(out, func(field string, a, b any) {
					if fmt.Sprint(a) != fmt.Sprint(b) {
						out[field] = fmt.Sprintf("recorded %v, planned %v", a, b)
					}
				}, &want, &single)
				for field, text := range out {
					switch field {
					case "env NO_PROXY", "env no_proxy", "env CLAB_LABEL_CLAB_NODE_LAB_DIR", "env CLAB_LABEL_CLAB_TOPO_FILE",
						"env CLAB_LABEL_CLAB_OWNER", "healthcheck":
					// Since containerlab 0.80.
					case "env NOKIA_SROS_ADDRESS_IPV4_ACTIVE", "env NOKIA_SROS_ADDRESS_IPV6_ACTIVE",
						"env NOKIA_SROS_STATIC_ROUTE_1", "env NOKIA_SROS_STATIC_ROUTE_2":
					default:
						t.Errorf("%s card %s: %s: %s", nodeName, c.Name, field, text)
					}
				}
			}
		}
	}
}
