package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// differences gives for each field that differs what was recorded and planned.
func differences(r *recordedPlan, p *Plan) map[string]string {
	out := map[string]string{}
	node := r.subject()
	compare := func(field string, recorded, planned any) {
		a, b := fmt.Sprintf("%v", recorded), fmt.Sprintf("%v", planned)
		if a != b {
			out[field] = fmt.Sprintf("recorded %s, planned %s", a, b)
		}
	}
	compare("link-apply-mode", node.LinkApplyMode, p.LinkApplyMode)
	compare("interfaces", recordedInterfaces(r), p.Interfaces)
	compare("containers", len(node.Containers), len(p.Containers))
	if len(node.Containers) != 1 || len(p.Containers) != 1 {
		return out
	}
	compare("stop-signal", node.StopSignal, p.StopSignal)
	compare("certificate", node.RequiresCert, p.Needs.Certificate)
	compare("needs", node.HostRequirements, struct {
		V, S bool
		C, M int
	}{p.Needs.KVM, p.Needs.SSSE3, p.Needs.MinCPU, int(p.Needs.MinMemory >> 30)})
	compare("license", strings.TrimSuffix(node.LicensePolicy, "none"), p.Needs.License)
	for _, c := range node.Containers {
		compareContainer(out, compare, &c, p)
	}
	compareFiles(out, r, p)
	compare("steps", recordedSteps(r), plannedSteps(p))
	return out
}

func compareContainer(out map[string]string, compare func(string, any, any), c *recordedContainer, p *Plan) {
	got := p.Containers[0]
	compareMaps(out, "env", normalMACs(c.Env), normalMACs(got.Env))
	compareMaps(out, "sysctl", c.Sysctls, got.Sysctls)
	compareMaps(out, "tmpfs", c.Tmpfs, got.Tmpfs)
	compare("cmd", normalCommand(shellWords(c.Cmd)), normalCommand(got.Cmd))
	compare("entrypoint", shellWords(c.Entrypoint), got.Entrypoint)
	compare("user", c.User, got.User)
	compare("cap-add", c.CapAdd, got.CapAdd)
	compare("devices", c.Devices, got.Devices)
	compare("shm-size", humanBytes(c.ShmSize), got.ShmSize)
	compare("memory", humanBytes(c.Memory), got.Memory)
	compare("restart-policy", c.RestartPolicy, got.RestartPolicy)
	compare("mgmt-mac", macShape(c.MacAddress), macShape(got.MgmtMAC))
	var mounts []string
	for _, b := range c.Binds {
		mounts = append(mounts, strings.TrimSuffix(strings.Replace(b, c.Labdir+"/", "", 1), ":rw"))
	}
	var planned []string
	for _, m := range got.Mounts {
		line := m.Path + m.HostPath + ":" + m.Target
		if m.ReadOnly {
			line += ":ro"
		}
		planned = append(planned, line)
	}
	compareLists(out, "mount", mounts, planned)
	var recorded, own any
	if c.Healthcheck != nil {
		recorded = *c.Healthcheck
	}
	if p.Readiness != nil && p.Readiness.Reason != "image" {
		own = p.Readiness.Healthcheck
	}
	compare("healthcheck", recorded, own)
}

func compareFiles(out map[string]string, r *recordedPlan, p *Plan) {
	recorded := map[string]string{}
	for _, f := range r.Files {
		if rest, ok := strings.CutPrefix(f.Path, "clab-"+r.Lab+"/n1/"); ok && f.Node == "n1" {
			recorded[rest] = f.Mode
		}
	}
	planned := map[string]string{}
	for _, f := range p.Files {
		mode := os.FileMode(f.Mode)
		switch {
		case f.Dir:
			mode |= os.ModeDir
		case f.Link != "":
			mode |= os.ModeSymlink
		}
		// What was recorded is cut by umask 022, unless the hook set the mode.
		if cut := mode &^ 0o022; f.Link == "" && recorded[f.Path] == cut.String() {
			mode = cut
		}
		planned[f.Path] = mode.String()
	}
	compareMaps(out, "file", recorded, planned)
}

func compareMaps(out map[string]string, field string, recorded, planned map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(recorded)) {
		if v, ok := planned[k]; !ok {
			out[field+" "+k] = fmt.Sprintf("recorded %q, not planned", recorded[k])
		} else if v != recorded[k] {
			out[field+" "+k] = fmt.Sprintf("recorded %q, planned %q", recorded[k], v)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(planned)) {
		if _, ok := recorded[k]; !ok {
			out[field+" "+k] = fmt.Sprintf("planned %q, not recorded", planned[k])
		}
	}
}

func compareLists(out map[string]string, field string, recorded, planned []string) {
	set := func(list []string) map[string]string {
		m := map[string]string{}
		for _, s := range list {
			m[s] = "there"
		}
		return m
	}
	compareMaps(out, field, set(recorded), set(planned))
}

func recordedInterfaces(r *recordedPlan) []Interface {
	var out []Interface
	for _, link := range r.Links {
		for _, e := range link.Endpoints {
			if e.Node == "n1" {
				out = append(out, Interface{Name: e.Iface})
			}
		}
	}
	return out
}

// recordedSteps are the commands that the hooks ran, then the lines they typed.
func recordedSteps(r *recordedPlan) []string {
	var out []string
	for _, op := range r.Ops {
		if op.Container != "clab-"+r.Lab+"-n1" {
			continue
		}
		switch op.Op {
		case "Exec", "ExecNotWait":
			out = append(out, strings.Join(op.Args.Cmd, " "))
		case "CopyToContainer":
			out = append(out, "write "+op.Args.Dst)
		}
	}
	for _, line := range r.InteractiveCLI {
		if f := strings.SplitN(line, "\t", 4); len(f) == 4 && f[0] == "clab-"+r.Lab+"-n1" {
			out = append(out, "> "+f[3])
		}
	}
	return out
}

func plannedSteps(p *Plan) []string {
	var out []string
	for _, s := range p.Steps {
		switch {
		case s.Run != nil:
			out = append(out, strings.Join(s.Run.Argv, " "))
		case s.Wait != nil:
			out = append(out, strings.Join(s.Wait.Argv, " "))
		case s.Write != nil:
			out = append(out, "write "+s.Write.Path)
		case s.CLI != nil:
			for _, line := range s.CLI.Lines {
				out = append(out, "> "+line)
			}
		}
	}
	return out
}

var macBytes = regexp.MustCompile(`^([0-9a-f]{2}(?::[0-9a-f]{2})?(?::[0-9a-f]{2})?)(?::[0-9a-f]{2}){3,5}$`)

// macShape keeps what of an address is not drawn at random: its first byte, and
// the zeros at its end.
func macShape(mac string) string {
	if !macBytes.MatchString(mac) {
		return mac
	}
	if strings.HasSuffix(mac, ":00:00:00") {
		return mac[:2] + ":*:*:00:00:00"
	}
	return mac[:8] + ":*:*:*"
}

func normalMACs(env map[string]string) map[string]string {
	out := maps.Clone(env)
	for k, v := range out {
		out[k] = macShape(v)
	}
	return out
}

// normalCommand sorts the variables in the command of cEOS and leaves out those
// that differ as variables already.
func normalCommand(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		vars := strings.Split(w, " systemd.setenv=")
		if len(vars) < 2 {
			continue
		}
		kept := []string{}
		for _, v := range vars[1:] {
			v = strings.TrimSpace(v)
			skip := slices.ContainsFunc([]string{"no_proxy", "NO_PROXY", "LAB_DIR", "TOPO_FILE", "OWNER"},
				func(s string) bool { return strings.Contains(v, s) })
			if !skip {
				kept = append(kept, v)
			}
		}
		slices.Sort(kept)
		out[i] = vars[0] + " " + strings.Join(kept, " ")
	}
	return out
}

// shellWords splits as a shell does, for the commands in recorded plans.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, c := range text {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inWord = c, true
		case quote == 0 && c == ' ':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

func humanBytes(text string) int64 {
	text = strings.TrimSuffix(strings.TrimSuffix(text, "B"), "M")
	n, _ := strconv.ParseInt(text, 10, 64)
	return n * 1_000_000
}

// testLab is a lab with the default management network and no nodes.
func testLab(name string) *lab.Lab {
	return &lab.Lab{
		Version: lab.Version, Name: name, Prefix: "clab", Source: name + ".clab.yml",
		Mgmt: lab.Mgmt{
			Network: "clab", MTU: 1500, ExternalAccess: true,
			IPv4: lab.MgmtFamily{Subnet: netip.MustParsePrefix("172.20.20.0/24"), Gateway: netip.MustParseAddr("172.20.20.1")},
			IPv6: lab.MgmtFamily{Subnet: netip.MustParsePrefix("3fff:172:20:20::/64"), Gateway: netip.MustParseAddr("3fff:172:20:20::1")},
		},
		Files: map[lab.Digest][]byte{},
	}
}

// testNode adds a node; its index gives the management addresses too.
func testNode(l *lab.Lab, name, kind string, index int) *lab.Node {
	n := &lab.Node{
		Name: name, ID: name, Kind: kind, WrittenKind: kind, Index: index, Image: "registry.example/" + kind + ":1.2.3",
		LongName: "clab-" + l.Name + "-" + name, FQDN: name + "." + l.Name + ".io", Hostname: name, Privileged: true,
		MgmtIPv4: netip.AddrFrom4([4]byte{172, 20, 20, byte(index + 1)}),
		MgmtIPv6: netip.MustParseAddr(fmt.Sprintf("3fff:172:20:20::%x", index+1)),
	}
	n.Pos.File, n.Pos.Line, n.Pos.Column = l.Source, 10+index, 5
	l.Nodes = append(l.Nodes, n)
	return n
}

// testFile puts bytes into the lab.
func testFile(l *lab.Lab, name, text string) *lab.FileRef {
	digest := lab.Digest(fmt.Sprintf("sha256:%064x", len(l.Files)+1))
	l.Files[digest] = []byte(text)
	return &lab.FileRef{Digest: digest, Size: int64(len(text)), Mode: 0o644, Origin: name}
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
					default:
						t.Errorf("%s card %s: %s: %s", nodeName, c.Name, field, text)
					}
				}
			}
		}
	}
}
