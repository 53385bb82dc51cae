package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// TestSnapshot: a lab that is stored, destroyed, restored elsewhere and deployed is the same, to
// the letter of its configurations and with its addresses.
func TestSnapshot(t *testing.T) {
	l := written(t, "shot", map[string]string{
		"lab.clab.yml": `name: shot
topology:
  nodes:
    R1:
      kind: juniper_crpd
      image: ghcr.io/srl-labs/network-multitool:latest
      entrypoint: sleep infinity
      startup-config: seed.conf
      binds: ["cli:/usr/bin/cli"]
    F1:
      kind: linux
      image: quay.io/frrouting/frr:10.2.1
      binds: ["daemons:/etc/frr/daemons", "F1.conf:/etc/frr/frr.conf"]
  links:
    - endpoints: ["R1:eth1", "F1:eth1"]
`,
		"daemons":   "zebra=yes\nmgmtd=yes\nvtysh_enable=yes\n",
		"F1.conf":   "hostname F1\n",
		"seed.conf": "host-name seed;\n",
		"cli":       junosCLI,
		"notes.txt": "not a part of the lab\n",
	})
	dir := filepath.Dir(l.topo)
	l.deploy(t)
	const edited = "host-name edited; # {{ .ShortName }} ${HOME}\n"
	for node, line := range map[string]string{
		"R1": "cat >/config/juniper.conf <<'END'\n" + edited + "END",
		"F1": `until vtysh -c 'show version' >/dev/null 2>&1; do sleep 1; done; vtysh -c 'configure terminal' -c 'interface lo' -c 'ip address 10.9.9.9/32'`,
	} {
		if out, err := l.in(t.Context(), node, "sh", "-c", line); err != nil {
			t.Fatalf("%s: %v\n%s", node, err, out)
		}
	}
	before := files(t, dir)
	addresses := func() (out []string) {
		for _, n := range l.status(t, "--fresh").Nodes {
			out = append(out, n.Name+" "+n.IPv4+" "+n.IPv6)
		}
		return out
	}
	want := addresses()
	archive := filepath.Join(t.TempDir(), "before.tar.gz")
	user := *l
	user.kubeconfig = l.user(t, roleOf("snapshot", rightsOf(t, "snapshot")))
	if out := user.c9s(t, "snapshot", archive, "--topo", l.topo, "-n", l.ns); strings.Count(out, "running") != 2 {
		t.Errorf("snapshot prints\n%s", out)
	}
	if after := files(t, dir); !slices.Equal(after, before) {
		t.Errorf("files next to the topology: %v, want %v", after, before)
	}
	l.c9s(t, "destroy", l.name, "-n", l.ns, "--yes") // the user stays in the namespace

	to := filepath.Join(t.TempDir(), "restored")
	out, err := l.output(t, "restore", archive, to, "-o", "json")
	var restored struct{ Deploy, Lab string }
	if err != nil || json.Unmarshal(out, &restored) != nil || restored.Lab != "shot" {
		t.Fatalf("c9s restore: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(to, "notes.txt")); err == nil {
		t.Error("a file that the topology does not read was stored")
	}
	// The command that restore prints, with what the tests need.
	words := strings.Fields(restored.Deploy)
	if len(words) < 3 || words[0] != "c9s" {
		t.Fatalf("restore prints %q", restored.Deploy)
	}
	l.c9s(t, append(words[1:], "--image", c9sImage, "--planner", planner, "--yes")...)
	if out, err := l.in(t.Context(), "R1", "cat", "/config/juniper.conf"); err != nil || out != edited {
		t.Errorf("R1 starts with %q, %v", out, err)
	}
	l.eventually(t, "F1", "10.9.9.9/32", "ip", "-4", "addr", "show", "lo")
	if got := addresses(); !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
}

// roleOf is a Role with some rules.
func roleOf(name string, rules []rbacv1.PolicyRule) rbacv1.Role {
	return rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// actingAs returns a kubeconfig with which the administrator acts as another user.
func (l *lab) actingAs(t *testing.T, name string) string {
	t.Helper()
	admin, err := os.ReadFile(l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(admin, &config); err != nil {
		t.Fatal(err)
	}
	users, _ := config["users"].([]any)
	for _, u := range users {
		user := u.(map[string]any)["user"].(map[string]any)
		user["as"], user["as-groups"] = name, []string{"system:masters"}
	}
	text, err := yaml.Marshal(config)
	if err != nil || len(users) == 0 {
		t.Fatalf("the administrator's kubeconfig: %v", err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// own lists the namespaces of the labs of which a user is the owner.
func (l *lab) own(t *testing.T) (out []string) {
	t.Helper()
	text, err := l.output(t, "labs", "--mine", "-o", "json")
	var labs []struct{ Namespace string }
	if err != nil || json.Unmarshal(text, &labs) != nil {
		t.Fatalf("c9s labs: %v\n%s", err, text)
	}
	for _, one := range labs {
		out = append(out, one.Namespace)
	}
	return out
}

// TestClass: copies of the demo for a class, all deployed at once. Each passes its tests, and all
// go by one command, which asks for their number.
func TestClass(t *testing.T) {
	long(t)
	const count = 10
	name := fmt.Sprintf("class%d", time.Now().Unix()%1e6)
	l := newLab(t, filepath.Join(repo, "testdata/demo/demo.clab.yml"), name)
	other := smallLab(t, "other", goodImage)
	other.deploy(t) // of somebody else
	l.kubeconfig = l.actingAs(t, "teacher")
	dir := filepath.Join(t.TempDir(), "copies")
	t.Cleanup(func() {
		l.kubeconfig = ""
		for i := range count {
			one := fmt.Sprintf("%s-%02d", name, i+1)
			if _, err := l.Typed.CoreV1().Namespaces().Get(context.Background(), one, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				l.RemoveNamespace(t, one)
			}
		}
	})
	began := time.Now()
	out, err := l.output(t, "clone", name, "--count", fmt.Sprint(count), "--topo", l.topo, "--dir", dir, "--deploy", "--ttl", "1h", "--image", c9sImage, "--planner", planner, "-o", "json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%d copies ready after %s", count, time.Since(began).Round(time.Second))
	var copies []struct{ Name, Namespace, Topology, State, IPv4 string }
	if err := json.Unmarshal(out, &copies); err != nil || len(copies) != count {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	networks := map[string]bool{}
	for _, one := range copies {
		networks[one.IPv4] = true
		if one.State != "ready" || one.Namespace != one.Name {
			t.Errorf("copy %+v", one)
		}
	}
	if len(networks) != count {
		t.Errorf("the networks are %v", networks)
	}
	began = time.Now()
	for _, one := range copies {
		cmd := l.command(t.Context(), "test", "--topo", one.Topology, "-n", one.Namespace)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), ", 0 failed, 0 warnings") {
			t.Errorf("%s: %v\n%s", one.Name, err, out)
		}
	}
	t.Logf("%d copies tested in %s", count, time.Since(began).Round(time.Second))
	// The file leads a student to a node.
	page, err := os.ReadFile(filepath.Join(dir, "ACCESS.md"))
	command := fmt.Sprintf("c9s shell R1 --lab %s -n %s", copies[1].Name, copies[1].Namespace)
	if err != nil || !strings.Contains(string(page), "    "+command) {
		t.Fatalf("ACCESS.md has no %q, %v:\n%s", command, err, page)
	}
	shell := l.command(t.Context(), strings.Fields(command)[1:]...)
	shell.Stdin = strings.NewReader("hostname\n")
	if out, err := shell.Output(); err != nil || strings.TrimSpace(string(out)) != "R1" {
		t.Errorf("%s: %q, %v", command, out, err)
	}
	// A student with a token for one namespace, as the file gives it.
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Log("left out: kubectl is not in PATH")
	} else {
		l.studentOf(t, filepath.Join(dir, "students.yaml"), copies[0].Name, copies[0].Namespace, copies[1].Namespace)
	}

	if got := l.own(t); len(got) != count {
		t.Errorf("labs --mine: %v", got)
	}
	if out, err := l.atTerminal(t, "y\n", "destroy", "--all", "--mine"); err == nil || !strings.Contains(out, "nothing was changed") {
		t.Errorf("destroy --all --mine takes y for an answer: %v\n%s", err, out)
	}
	if out, err := l.try(t.Context(), "destroy", "--all", "--mine"); err == nil || !strings.Contains(out, "--yes") {
		t.Errorf("destroy --all --mine does not ask: %v\n%s", err, out)
	}
	began = time.Now()
	if out, err := l.atTerminal(t, fmt.Sprintln(count), "destroy", "--all", "--mine"); err != nil {
		t.Errorf("destroy --all --mine: %v\n%s", err, out)
	}
	t.Logf("%d copies destroyed in %s", count, time.Since(began).Round(time.Second))
	if got := l.own(t); len(got) != 0 {
		t.Errorf("labs --mine after destroy: %v", got)
	}
	testcluster.Eventually(t, patience, "the end of their namespaces", func() error {
		list, err := l.Typed.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, ns := range list.Items {
			if strings.HasPrefix(ns.Name, name+"-") {
				return fmt.Errorf("namespace %s is left", ns.Name)
			}
		}
		return nil
	})
	other.ready(t)
}

// studentOf follows the commands of ACCESS.md for a student, who gets into one namespace and no
// other.
func (l *lab) studentOf(t *testing.T, accounts, lab, namespace, other string) {
	t.Helper()
	one := *l
	one.ns, one.kubeconfig = namespace, ""
	one.kubeconfig = one.student(t, accounts)
	if out, err := one.try(t.Context(), "exec", "R1", "--lab", lab, "-n", namespace, "--", "hostname"); err != nil || strings.TrimSpace(out) != "R1" {
		t.Errorf("the student in the own lab: %v\n%s", err, out)
	}
	if out, err := one.try(t.Context(), "exec", "R1", "-n", other, "--", "hostname"); err == nil {
		t.Errorf("the student gets into another lab:\n%s", out)
	}
}

// TestSaveMany logs how long 50 routers take to be saved.
func TestSaveMany(t *testing.T) {
	long(t)
	const count = 50
	var nodes strings.Builder
	for i := range count {
		fmt.Fprintf(&nodes, "    R%d: {kind: linux, image: \"quay.io/frrouting/frr:10.2.1\", binds: [\"daemons:/etc/frr/daemons\", \"frr.conf:/etc/frr/frr.conf\"]}\n", i)
	}
	l := written(t, "many", map[string]string{
		"lab.clab.yml": "name: many\ntopology:\n  nodes:\n" + nodes.String(),
		"daemons":      "zebra=yes\nmgmtd=yes\nvtysh_enable=yes\n",
		"frr.conf":     "interface lo\n ip address 10.9.9.9/32\n",
	})
	l.deploy(t)
	for i := range count {
		l.eventually(t, fmt.Sprintf("R%d", i), "10.9.9.9", "vtysh", "-c", "show running-config")
	}
	for _, want := range []string{"saved", "unchanged", "unchanged"} {
		began := time.Now()
		out, err := l.output(t, "save", "--topo", l.topo, "-n", l.ns, "-o", "json")
		took := time.Since(began)
		var rows []saved
		if err != nil || json.Unmarshal(out, &rows) != nil || len(rows) != count || slices.ContainsFunc(rows, func(r saved) bool { return r.State != want }) {
			t.Fatalf("c9s save: %v\n%s", err, out)
		}
		t.Logf("%d nodes %s in %s", count, want, took.Round(10*time.Millisecond))
	}
}

// TestSaveOwnKind: a kind of the user's own for BIRD is saved, and comes back as it was.
func TestSaveOwnKind(t *testing.T) {
	long(t)
	l := written(t, "own", map[string]string{
		"lab.clab.yml": `name: own
topology:
  nodes:
    B1:
      kind: bird
      image: ghcr.io/srl-labs/bird:latest
      binds: ["bird.conf:/etc/bird/bird.conf"]
`,
		"bird.conf": "router id 10.1.0.1;\nprotocol device {}\nprotocol kernel { ipv4 { export all; }; }\n",
	})
	l.Load(t, "bird")
	kinds := filepath.Join(filepath.Dir(l.topo), "kinds")
	if err := os.Mkdir(kinds, 0o755); err != nil {
		t.Fatal(err)
	}
	const kind = "name: bird\nextends: linux\ndescription: BIRD\nsave: {probe: null, without: null, argv: null, ignore: ['^ *#'], blocks: null, fetch: /etc/bird/bird.conf, target: /etc/bird/bird.conf}\n" +
		"reset: {probe: null, put: /tmp/reset.conf, argv: [sh, -c, cat /tmp/reset.conf >/etc/bird/bird.conf && birdc configure]}\n"
	if err := os.WriteFile(filepath.Join(kinds, "bird.yaml"), []byte(kind), 0o644); err != nil {
		t.Fatal(err)
	}
	l.deploy(t, "--kinds", kinds)
	const edit = "echo 'protocol static { ipv4; route 10.9.9.0/24 blackhole; }' >>/etc/bird/bird.conf && birdc configure"
	change := func() {
		t.Helper()
		if out, err := l.in(t.Context(), "B1", "sh", "-c", edit); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		l.eventually(t, "B1", "blackhole 10.9.9.0/24", "ip", "route")
	}
	change()
	l.c9s(t, "save", "--topo", l.topo, "-n", l.ns, "--kinds", kinds)
	l.c9s(t, "reset", "B1", "--topo", l.topo, "-n", l.ns, "--kinds", kinds)
	if out, err := l.in(t.Context(), "B1", "ip", "route"); err != nil || strings.Contains(out, "10.9.9.0/24") {
		t.Errorf("after reset: %v\n%s", err, out)
	}
	l.destroyed(t)
	l.deploy(t, "--kinds", kinds, "--saved")
	l.eventually(t, "B1", "blackhole 10.9.9.0/24", "ip", "route")
}

// TestSaveMachine: the configuration of a virtual machine is saved over ssh, with the login that the
// topology's environment gives it, and comes back in a new machine.
func TestSaveMachine(t *testing.T) {
	long(t)
	l := written(t, "vm", map[string]string{
		"lab.clab.yml": `name: vm
topology:
  nodes:
    V1:
      kind: smallvm
      image: ` + machineImage + `
      startup-config: V1.cfg
      env: {QEMU_MEMORY: "128", USERNAME: somebody, PASSWORD: own}
    H1: {kind: linux, image: "ghcr.io/srl-labs/network-multitool:latest"}
  links:
    - endpoints: ["V1:eth1", "H1:eth1"]
`,
		"V1.cfg":   "ip address add 10.1.0.1/24 dev eth1\n",
		"c9s.yaml": "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: machines\n    match: {names: [V1]}\n    set: {kvm: optional}\n",
	})
	kinds := filepath.Join(filepath.Dir(l.topo), "kinds")
	if err := os.Mkdir(kinds, 0o755); err != nil {
		t.Fatal(err)
	}
	const kind = "name: smallvm\nextends: _vrnetlab\ndescription: a small Linux\ncredentials: {username: admin, password: admin}\n" +
		"save: {ssh: {exec: true, lines: [cat /run/config]}, drop: ['^hostname ', '^account ', 'dev eth0$', '^ip route add default'], extension: cfg}\n"
	if err := os.WriteFile(filepath.Join(kinds, "smallvm.yaml"), []byte(kind), 0o644); err != nil {
		t.Fatal(err)
	}
	l.deploy(t, "--kinds", kinds)
	const edit = "echo 'ip address add 10.9.9.9/32 dev lo' >>/run/config && ip address add 10.9.9.9/32 dev lo"
	testcluster.Eventually(t, patience, "an edit of the machine", func() error {
		out, err := l.try(t.Context(), "ssh", "-n", l.ns, "--password", "V1", edit)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	if out := l.c9s(t, "save", "--topo", l.topo, "-n", l.ns, "--kinds", kinds); !strings.Contains(out, "V1    smallvm  saved") {
		t.Errorf("save prints\n%s", out)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(l.topo), "configs", "V1.cfg"))
	if err != nil || string(text) != "ip address add 10.1.0.1/24 dev eth1\nip address add 10.9.9.9/32 dev lo\n" {
		t.Errorf("saved is %q, %v", text, err)
	}
	l.destroyed(t)
	l.deploy(t, "--kinds", kinds, "--saved")
	if got := l.guest(t, "V1", "ip -4 address show dev lo"); !strings.Contains(got, "10.9.9.9/32") {
		t.Errorf("the new machine has\n%s", got)
	}
}

// student follows ACCESS.md to make a kubeconfig for a student, with kubectl.
func (l *lab) student(t *testing.T, accounts string) string {
	t.Helper()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "kubectl", args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig())
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("kubectl %v: %v", args, err)
		}
		return string(out)
	}
	run("apply", "-f", accounts)
	token := strings.TrimSpace(run("-n", l.ns, "create", "token", "student", "--duration=8h"))
	file := filepath.Join(t.TempDir(), "student.kubeconfig")
	if err := os.WriteFile(file, []byte(run("config", "view", "--minify", "--flatten")), 0o600); err != nil {
		t.Fatal(err)
	}
	run("--kubeconfig", file, "config", "unset", "users")
	run("--kubeconfig", file, "config", "set-credentials", "student", "--token="+token)
	run("--kubeconfig", file, "config", "set-context", "--current", "--user=student", "--namespace="+l.ns)
	return file
}
