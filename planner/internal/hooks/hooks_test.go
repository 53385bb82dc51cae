package hooks_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/c9s-lab/c9s/planner/internal/hooks"
	"github.com/c9s-lab/c9s/planner/internal/program"
	"github.com/google/go-cmp/cmp"
)

// TestMain is the planner program when it is started under its name, as the link that
// program makes and as c9s-planner's own copy in its sandbox.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == plan.ProgramName {
		os.Exit(program.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// programPath is a link to this test program that makes it the planner program.
func programPath(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), plan.ProgramName)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// raw plans with the hooks alone, all their steps included.
func raw(t testing.TB) *plan.Hooks {
	t.Helper()
	h := plan.NewHooks(programPath(t), plan.WithFull())
	t.Cleanup(func() { h.Close() })
	return h
}

// planner plans as c9s does.
func planner(t testing.TB) *plan.Auto {
	t.Helper()
	h := plan.NewHooks(programPath(t))
	t.Cleanup(func() { h.Close() })
	return plan.NewAuto(h, plan.NewBuiltin(kinds.Builtin(), plan.WithTemplateFuncs(topology.TemplateFuncs())), "")
}

// compileLab compiles a topology with files beside it.
func compileLab(t *testing.T, text string, files map[string]string) *lab.Lab {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, diags := topology.Load(t.Context(), &topology.Source{Name: "t.clab.yml", Dir: dir, Data: []byte(text)}, topology.Options{})
	if f == nil {
		t.Fatal(diags)
	}
	l, diags := compile.Compile(context.Background(), f, compile.Options{AllowMissing: true})
	for _, d := range diags {
		if d.Severity == diag.Error {
			t.Fatal(d)
		}
	}
	return l
}

func planOf(t *testing.T, l *lab.Lab, node string) *plan.Plan {
	t.Helper()
	return planWith(t, planner(t), l, node)
}

func planWith(t *testing.T, p plan.Planner, l *lab.Lab, node string) *plan.Plan {
	t.Helper()
	out, err := p.Plan(context.Background(), l, l.Node(node))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func one(kind, fields string) string {
	return "name: t\ntopology:\n  nodes:\n    n1: {kind: " + kind + ", image: 'registry.example/img:1.2.3'" + fields + "}\n"
}

func file(p *plan.Plan, name string) *plan.File {
	for i := range p.Files {
		if p.Files[i].Path == name {
			return &p.Files[i]
		}
	}
	return nil
}

// TestTrapLostIOLConfig (T1): without an eth0 in the namespace that it is given,
// IOL's hook leaves its configuration empty and says nothing.
func TestTrapLostIOLConfig(t *testing.T) {
	p := planOf(t, compileLab(t, one("cisco_iol", ""), nil), "n1")
	f := file(p, "boot_config.txt")
	if f == nil || !strings.Contains(string(f.Content), "hostname n1") {
		t.Fatalf("boot_config.txt: %+v", f)
	}
	// T6: the file that is written after the start has the allocated address.
	if !strings.Contains(string(f.Content), "172.20.20.") {
		t.Errorf("the configuration has no management address:\n%s", f.Content)
	}
}

// TestTrapCommandLine (T2, T3): the drivers' sessions are answered by this program,
// and what they type becomes a step.
func TestTrapCommandLine(t *testing.T) {
	l := compileLab(t, "name: t\ntopology:\n  defaults: {image: img}\n  nodes:\n    n1: {kind: ceos}\n    n2: {kind: linux}\n  links:\n    - endpoints: [\"n1:eth1\", \"n2:eth1\"]\n      ipv4: [10.0.0.1/30]\n", nil)
	p := planWith(t, raw(t), l, "n1")
	var typed []string
	for _, s := range p.Steps {
		if s.CLI != nil {
			typed = append(typed, s.CLI.Argv[0])
			typed = append(typed, s.CLI.Lines...)
		}
	}
	for _, want := range []string{"Cli", "interface Management0", "interface eth1", "ip address 10.0.0.1/30", "wr"} {
		if !slices.Contains(typed, want) {
			t.Errorf("%q was not typed: %q", want, typed)
		}
	}
	// cEOS' hook writes the environment in the order of a map (section 4).
	cmd := strings.Join(p.Containers[0].Cmd, " ")
	if first, second := strings.Index(cmd, "CEOS=1"), strings.Index(cmd, "ETBA=1"); first < 0 || second < first {
		t.Errorf("the command line is not sorted: %s", cmd)
	}
	for name, what := range map[string]string{"ssl/node.key": "tls.key", "ssl/node.crt": "tls.crt", "ssl/ca.crt": "ca.crt"} {
		if f := file(p, name); f == nil || f.Certificate != what || len(f.Content) != 0 {
			t.Errorf("%s: %+v: a certificate must be named, and never be in a plan", name, f)
		}
	}
}

// TestTrapGatesEnd (T3): loops that poll a device end, since they are answered.
func TestTrapGatesEnd(t *testing.T) {
	p := planWith(t, raw(t), compileLab(t, one("nokia_srlinux", ""), nil), "n1")
	var waits []string
	for _, s := range p.Steps {
		if s.Wait != nil {
			waits = append(waits, s.Wait.Contains)
		}
	}
	if diff := cmp.Diff([]string{"running", "loaded initial configuration"}, waits); diff != "" {
		t.Error(diff)
	}
}

// TestTrapChassis (T4, T14): cards are containers of their own; what one planned
// node leaves behind does not reach the next.
func TestTrapChassis(t *testing.T) {
	text := "name: t\ntopology:\n  defaults: {kind: nokia_srsim, image: 'srsim:25.7.R1', license: lic}\n  nodes:\n    a: {type: sr-7, components: [{slot: A}, {slot: B}, {slot: 1, type: iom4-e-b, mda: [{slot: 1, type: me6-100gb-qsfp28}]}]}\n    b: {type: sr-1}\n"
	l := compileLab(t, text, map[string]string{"lic": "a licence"})
	var names []string
	a := planOf(t, l, "a")
	for _, c := range a.Containers {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"1", "a", "b"}, names); diff != "" {
		t.Error(diff)
	}
	b := planOf(t, l, "b")
	if got := b.Containers[0].Env["NOKIA_SROS_CHASSIS"]; !strings.EqualFold(got, "sr-1") {
		t.Errorf("the chassis of b is %q", got)
	}
	if a.Containers[0].Env["NOKIA_SROS_SYSTEM_BASE_MAC"] == b.Containers[0].Env["NOKIA_SROS_SYSTEM_BASE_MAC"] {
		t.Error("two chassis have one base MAC address")
	}
}

// TestTrapOtherNodes (T5): another node changes no plan.
func TestTrapOtherNodes(t *testing.T) {
	for _, kind := range []string{"nokia_srlinux", "cisco_iol", "linux"} {
		before := compileLab(t, one(kind, ""), nil)
		after := compileLab(t, one(kind, "")+"    a0: {kind: linux, image: a, mgmt-ipv4: 172.20.20.99}\n", nil)
		if diff := cmp.Diff(planOf(t, before, "n1"), planOf(t, after, "n1")); diff != "" {
			t.Errorf("%s: another node changes the plan:\n%s", kind, diff)
		}
	}
}

// TestTrapUmask (T8): modes are those that hooks ask for.
func TestTrapUmask(t *testing.T) {
	p := planOf(t, compileLab(t, one("6wind_vsr", ""), nil), "n1")
	for name, mode := range map[string]uint32{"if-wait.sh": 0o777, "init-config.cli": 0o644} {
		if f := file(p, name); f == nil || f.Mode != mode {
			t.Errorf("%s: %+v, want mode %o", name, f, mode)
		}
	}
}

// TestTrapSwallowedErrors (T9): configurations that hooks cannot make, and do not tell
// of, are warned of; those that they can are not.
func TestTrapSwallowedErrors(t *testing.T) {
	for _, c := range []struct{ kind, config, want string }{
		{"cisco_iol", "hostname {{ .ShortName }}\nip domain name lab.example\n", "startup-config-lost"},
		{"cisco_iol", "hostname {{ .Hostname }}\nip domain name lab.example\n", ""},
		{"vr-vmx", "system { host-name {{ .NoSuchField }}; }\nsnmp { community public; }\n", "startup-config-template"},
		{"vr-vmx", "system { host-name vmx; }\nsnmp { community public; }\n", ""},
	} {
		p := planOf(t, compileLab(t, one(c.kind, ", startup-config: cfg"), map[string]string{"cfg": c.config}), "n1")
		var codes []string
		for _, d := range p.Diagnostics {
			if d.Code == "startup-config-lost" || d.Code == "startup-config-template" {
				codes = append(codes, string(d.Code))
			}
		}
		if c.want == "" && len(codes) > 0 || c.want != "" && !slices.Contains(codes, c.want) {
			t.Errorf("%s, %q: %v, want %q", c.kind, c.config, p.Diagnostics, c.want)
		}
	}
}

// TestTrapOldConfig (T10): hooks keep a configuration that is there already; in a
// workspace of its own there is none.
func TestTrapOldConfig(t *testing.T) {
	for _, config := range []string{"snmp { community old; }\n", "snmp { community new; }\n"} {
		p := planOf(t, compileLab(t, one("vr-vmx", ", startup-config: cfg"), map[string]string{"cfg": config}), "n1")
		found := false
		for _, f := range p.Files {
			found = found || strings.Contains(string(f.Content), config) || f.Ref != nil && f.Ref.Size == int64(len(config))
		}
		if !found {
			t.Errorf("the plan has no %q", config)
		}
	}
}

// TestTrapFirstError (T15): with several faults the same one is told, and only those
// of the node itself.
func TestTrapFirstError(t *testing.T) {
	l := compileLab(t, "name: t\ntopology:\n  defaults: {image: img}\n  nodes:\n    n1: {kind: linux}\n    n2: {kind: linux}\n    n3: {kind: linux}\n    n4: {kind: linux}\n", nil)
	for _, n := range l.Nodes[1:] {
		n.Kind, n.WrittenKind = "ciena_saos", "ciena_saos" // which needs a type
	}
	h := raw(t)
	if p := planWith(t, h, l, "n1"); len(p.Diagnostics) > 0 {
		t.Errorf("n1 is blamed for others: %v", p.Diagnostics)
	}
	for range 5 {
		p := planWith(t, h, l, "n3")
		if len(p.Diagnostics) != 1 || !strings.Contains(p.Diagnostics[0].Message, `node "n3"`) || strings.Contains(p.Diagnostics[0].Message, "n2") {
			t.Errorf("%v", p.Diagnostics)
		}
	}
}

// TestTrapInlineConfig (T11, T12): text of the topology is not executed or
// expanded a second time.
func TestTrapInlineConfig(t *testing.T) {
	p := planOf(t, compileLab(t, one("linux", ", env: {A: '$$HOME ${X} $$1', B: '{{\"{{\"}} .x }}'}"), nil), "n1")
	if env := p.Containers[0].Env; env["A"] != "$HOME $X $1" || env["B"] != "{{ .x }}" {
		t.Errorf("A is %q, B is %q", env["A"], env["B"])
	}
}

// TestTrapShortName (T13): a node of one letter plans.
func TestTrapShortName(t *testing.T) {
	l := compileLab(t, "name: t\nprefix: ''\ntopology:\n  nodes:\n    r: {kind: linux, image: a}\n", nil)
	if p := planOf(t, l, "r"); len(p.Containers) != 1 || len(p.Diagnostics) != 0 {
		t.Errorf("%+v", p)
	}
}

// TestTrapMachine (T7 and section 4): nothing of this machine is in a plan.
func TestTrapMachine(t *testing.T) {
	p := planOf(t, compileLab(t, one("ceos", ""), nil), "n1")
	host, _ := os.Hostname()
	for _, c := range p.Containers {
		for k, v := range c.Env {
			if strings.Contains(v, os.TempDir()) || (len(host) > 3 && strings.Contains(v, host)) || strings.Contains(k, "OWNER") || strings.Contains(k, "LAB_DIR") {
				t.Errorf("%s=%s tells of the machine", k, v)
			}
		}
	}
}

// TestSameBytes plans twice.
func TestSameBytes(t *testing.T) {
	for _, kind := range []string{"ceos", "nokia_srlinux", "vyosnetworks_vyos", "cisco_iol", "sonic-vm"} {
		l := compileLab(t, one(kind, ""), nil)
		if diff := cmp.Diff(planOf(t, l, "n1"), planOf(t, l, "n1")); diff != "" {
			t.Errorf("%s: two plans differ:\n%s", kind, diff)
		}
	}
}

// TestBridgeInContainer: the hook makes a bridge in the namespace of another node, which
// the program must be able to do in its own.
func TestBridgeInContainer(t *testing.T) {
	l := compileLab(t, "name: t\ntopology:\n  nodes:\n    host: {kind: linux, image: img}\n    \"br1|host\": {kind: bridge, network-mode: 'container:host'}\n", nil)
	p := planOf(t, l, "br1|host")
	for _, d := range p.Diagnostics {
		if d.Severity == diag.Error {
			t.Error(d)
		}
	}
}

// TestRefusedKinds: k8s-kind drives Docker itself; compile refuses it, and so does
// the program.
func TestRefusedKinds(t *testing.T) {
	l := compileLab(t, one("linux", ""), nil)
	l.Nodes[0].Kind, l.Nodes[0].WrittenKind = "k8s-kind", "k8s-kind"
	p := planWith(t, raw(t), l, "n1")
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Code != "kind-refused" {
		t.Errorf("%v", p.Diagnostics)
	}
}

// TestHookThatFails: what a hook complains of is a diagnostic of the node.
func TestHookThatFails(t *testing.T) {
	l := compileLab(t, one("linux", ""), nil)
	l.Nodes[0].Kind, l.Nodes[0].WrittenKind = "ciena_saos", "ciena_saos" // which needs a type
	p := planWith(t, raw(t), l, "n1")
	if len(p.Diagnostics) != 1 || p.Diagnostics[0].Code != "hook-failed" || !strings.Contains(p.Diagnostics[0].Message, `node "n1"`) {
		t.Errorf("%v", p.Diagnostics)
	}
}

// TestHostileNode: names that lead out of the workspace lead nowhere.
func TestHostileNode(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	l := compileLab(t, one("nokia_srlinux", ", startup-config: cfg"), map[string]string{"cfg": "set / system"})
	n := l.Nodes[0]
	n.StartupConfig.Name = "../../../../" + outside
	n.Env = map[string]string{"X": "'; touch " + outside + " #", "Y": "`touch " + outside + "`", "Z": "$(touch " + outside + ")"}
	n.Cmd = []string{"sh", "-c", "touch " + outside}
	n.Labels = map[string]string{"a": strings.Repeat("{{ range . }}", 1000)}
	p := planOf(t, l, "n1")
	if _, err := os.Stat(outside); err == nil {
		t.Error("the node wrote outside the workspace")
	}
	for _, f := range p.Files {
		if strings.HasPrefix(f.Path, "/") || strings.Contains(f.Path, "..") {
			t.Errorf("file %s", f.Path)
		}
	}
}

// TestNothingIsLeft: no process and no folder of the planner is left behind.
func TestNothingIsLeft(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	l := compileLab(t, one("ceos", ""), nil)
	h := raw(t)
	planWith(t, h, l, "n1")
	h.Close()
	left, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), "c9s-planner-") {
			t.Errorf("%s is still there", e.Name())
		}
	}
	if runtime.GOOS == "linux" {
		out, _ := exec.Command("sh", "-c", "ps -eo args | grep -c '[d]evice-cli' || true").Output()
		if strings.TrimSpace(string(out)) != "0" {
			t.Errorf("%s command lines still run", strings.TrimSpace(string(out)))
		}
	}
}

func TestKindsAreRegistered(t *testing.T) {
	names := hooks.Kinds()
	for _, want := range []string{"linux", "nokia_srlinux", "srl", "arista_ceos", "ceos", "k8s-kind"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not registered: %v", want, names)
		}
	}
	if len(names) != 96 {
		t.Errorf("%d names are registered, want 96", len(names))
	}
}
