package lab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	netproxy "golang.org/x/net/proxy"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// accessTopology has three hosts whose sshd takes one key: H3 has its management interface in
// another network namespace.
const accessTopology = `name: access
topology:
  defaults:
    kind: linux
    image: ghcr.io/srl-labs/network-multitool:latest
    binds: [authorized_keys:/root/.ssh/authorized_keys]
  nodes:
    H1: {}
    h2: {}
    h3:
      exec:
        - sh -c 'pkill sshd; ip netns add mgmt && ip link set eth0 netns mgmt && ip -n mgmt addr add 172.20.20.13/24 dev eth0 && ip -n mgmt link set eth0 up && ip -n mgmt route add default via 172.20.20.1 && ip netns exec mgmt /usr/sbin/sshd'
      mgmt-ipv4: 172.20.20.13
  links:
    - endpoints: ["H1:eth1", "h2:eth1"]
`

// accessLab deploys it, and returns the lab and the key.
func accessLab(t *testing.T) (*lab, string) {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "id")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"access.clab.yml": []byte(accessTopology), "authorized_keys": public} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := newLab(t, filepath.Join(dir, "access.clab.yml"), "access")
	l.deploy(t)
	l.ready(t)
	return l, key
}

// ssh runs a command in a node by c9s ssh.
func (l *lab) ssh(ctx context.Context, key, node string, command ...string) (string, error) {
	return l.try(ctx, append([]string{"ssh", "-n", l.ns, "-l", "root", "-i", key, "-o", "BatchMode=yes", node}, command...)...)
}

// proxyOptions make ssh's relatives connect by c9s dial.
func (l *lab) proxyOptions(key, node string) []string {
	return []string{
		"-o", fmt.Sprintf("ProxyCommand=env KUBECONFIG=%s %s dial %s -n %s", l.Kubeconfig(), program, node, l.ns),
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-i", key,
	}
}

// From a machine that has nothing but a kubeconfig, every node is reached.
func TestAccess(t *testing.T) {
	l, key := accessLab(t)
	for _, node := range []string{"H1", "h1", "h2", "h3"} {
		testcluster.Eventually(t, patience, "ssh to "+node, func() error {
			out, err := l.ssh(t.Context(), key, node, "hostname")
			if err == nil && !strings.EqualFold(strings.TrimSpace(out), node) {
				err = fmt.Errorf("it is called %q", out)
			}
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	t.Run("exit code", func(t *testing.T) {
		out, err := l.ssh(t.Context(), key, "H1", "exit", "7")
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 7 {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("own client", func(t *testing.T) {
		cmd := l.command(t.Context(), "ssh", "-n", l.ns, "-l", "root", "-i", key, "h3", "cat; hostname; exit 5")
		cmd.Env = append(cmd.Env, "PATH="+t.TempDir(), "SSH_AUTH_SOCK=") // no ssh there
		cmd.Stdin = strings.NewReader("input\n")
		out, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 5 || string(out) != "input\nh3\n" {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("ssh-config", func(t *testing.T) { l.configured(t, key) })
	t.Run("ansible", func(t *testing.T) { l.played(t, key) })
	t.Run("scp", func(t *testing.T) { l.copied(t, key) })
	t.Run("cp", func(t *testing.T) { l.copiedFiles(t) })
	t.Run("rsync", func(t *testing.T) { l.rsynced(t, key) })
	t.Run("docker", func(t *testing.T) { l.asDocker(t) })
	t.Run("containerlab", func(t *testing.T) { l.asContainerlab(t) })
	t.Run("replaced", func(t *testing.T) { l.replacedUnderSessions(t, key) })
	t.Run("proxy", func(t *testing.T) { l.proxied(t) })
	t.Run("UDP", func(t *testing.T) { l.datagrams(t) })
	t.Run("events", func(t *testing.T) { l.followedEvents(t) })
	t.Run("console", func(t *testing.T) { l.consoles(t) })
	t.Run("exec", func(t *testing.T) { l.execs(t) })
	t.Run("logs", func(t *testing.T) { l.followed(t) })
	t.Run("rights", func(t *testing.T) { l.accessRights(t, key) })
	t.Run("stopped", func(t *testing.T) {
		l.c9s(t, "stop", "h2", "-n", l.ns)
		began := time.Now()
		out, err := l.ssh(t.Context(), key, "h2", "true")
		if err == nil || !strings.Contains(out, "node h2 is stopped; start it with 'c9s start h2'") {
			t.Errorf("%v: %s", err, out)
		}
		t.Logf("reported after %s", time.Since(began))
	})
}

// configured installs the entries for ssh, uses them and removes them.
func (l *lab) configured(t *testing.T, key string) {
	home := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := l.command(t.Context(), append([]string{"ssh-config", "-n", l.ns}, args...)...)
		cmd.Env = append(cmd.Env, "HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run("--install")
	// ssh looks for its files in the home of the account, whatever HOME says.
	config, err := os.ReadFile(filepath.Join(home, ".ssh", "config"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "config")
	if err := os.WriteFile(file, []byte(strings.Replace(string(config), "Include ", "Include "+home+"/.ssh/", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"H1", "h1.access", "h2"} {
		out, err := exec.CommandContext(t.Context(), "ssh", "-F", file, "-i", key, "-o", "BatchMode=yes", "-l", "root", name, "hostname").CombinedOutput()
		if err != nil || !strings.EqualFold(strings.TrimSpace(string(out)), strings.TrimSuffix(name, ".access")) {
			t.Errorf("ssh %s: %v: %s", name, err, out)
		}
	}
	run("--remove")
	if left, _ := filepath.Glob(filepath.Join(home, ".ssh", "c9s", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// played has Ansible run a play on all nodes by the inventory.
func (l *lab) played(t *testing.T, key string) {
	program, err := exec.LookPath("ansible-playbook")
	if err != nil {
		t.Skip("needs ansible-core")
	}
	dir := t.TempDir()
	inventory, err := l.output(t, "inventory", "-n", l.ns, "-o", "ansible")
	if err != nil {
		t.Fatal(err)
	}
	const play = `- hosts: linux
  gather_facts: false
  tasks:
    - raw: hostname
      register: answer
    - raw: echo from ansible > /tmp/played
    - debug: {msg: "{{ inventory_hostname }} is {{ answer.stdout | trim }}"}
`
	for name, text := range map[string]string{"hosts.yml": string(inventory), "play.yml": play} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "-i", filepath.Join(dir, "hosts.yml"), "-u", "root", "--private-key", key, filepath.Join(dir, "play.yml"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "HOME="+dir)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("a play of three tasks on three nodes took %s", time.Since(began))
	for _, node := range []string{"H1", "h2", "h3"} {
		if want := node + " is " + node; !strings.Contains(string(out), want) {
			t.Errorf("no %q in %s", want, out)
		}
		if got, err := l.in(t.Context(), node, "cat", "/tmp/played"); err != nil || got != "from ansible\n" {
			t.Errorf("%s: %v: %s", node, err, got)
		}
	}
}

// copied copies 100 MB both ways.
func (l *lab) copied(t *testing.T, key string) {
	dir := t.TempDir()
	data := make([]byte, 100<<20)
	_, _ = rand.Read(data)
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, data, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	scp := func(args ...string) {
		t.Helper()
		began := time.Now()
		cmd := exec.CommandContext(t.Context(), "scp", append(l.proxyOptions(key, "H1"), args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("scp: %v: %s", err, out)
		}
		took := time.Since(began)
		t.Logf("100 MB in %s, %.0f MB/s", took, 100/took.Seconds())
	}
	scp(from, "root@H1:/tmp/copy")
	out, err := l.in(t.Context(), "H1", "sha256sum", "/tmp/copy")
	if err != nil || !strings.HasPrefix(out, hex.EncodeToString(sum[:])) {
		t.Errorf("the copy in the node is another file: %v %s", err, out)
	}
	scp("root@H1:/tmp/copy", to)
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the copy back has %d bytes, %v", len(got), err)
	}
}

// replacedUnderSessions replaces a Pod: sessions to others go on, and new ones to it work at once.
func (l *lab) replacedUnderSessions(t *testing.T, key string) {
	session := l.command(t.Context(), "ssh", "-n", l.ns, "-l", "root", "-i", key, "h3", "sh", "-c", "'for i in $(seq 600); do echo $i; read line && exit; done'")
	input, err := session.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	session.Stdout, session.Stderr = &output, &output
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	l.c9s(t, "restart", "H1", "-n", l.ns)
	began := time.Now()
	testcluster.Eventually(t, patience, "ssh to the new Pod", func() error {
		out, err := l.ssh(t.Context(), key, "H1", "hostname")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	t.Logf("ssh to the new Pod after %s", time.Since(began))
	if _, err := input.Write([]byte("\n")); err != nil {
		t.Error(err)
	}
	if err := session.Wait(); err != nil || !strings.Contains(output.String(), "1") {
		t.Errorf("the session to the other node: %v: %s", err, output.String())
	}
}

// proxied asks web servers by the proxy, by every form of it and name of a node, and keeps 500
// connections at once.
func (l *lab) proxied(t *testing.T) {
	cmd := l.command(t.Context(), "proxy", "-n", l.ns, "--listen", "127.0.0.1:0")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	_, at, found := strings.Cut(line, "http://")
	at, _, _ = strings.Cut(at, ";")
	if err != nil || !found {
		t.Fatalf("%q, %v", line, err)
	}
	h1 := l.status(t).node("H1").IPv4
	for _, args := range [][]string{
		{"-x", "socks5h://" + at, "http://H1/"}, {"-x", "http://" + at, "http://h2.access/"}, {"-p", "-x", "http://" + at, "http://clab-access-h2/"},
		{"-x", "socks5://" + at, "http://" + h1 + "/"},
	} {
		out, err := exec.CommandContext(t.Context(), "curl", append([]string{"-sS", "--max-time", "20"}, args...)...).CombinedOutput()
		if err != nil || string(out) != "c9s test host\n" {
			t.Errorf("curl %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	out, err := exec.CommandContext(t.Context(), "curl", "-sS", "--max-time", "20", "-x", "http://"+at, "http://kubernetes.default/").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "is no node of lab access") {
		t.Errorf("another host: %v: %s", err, out)
	}
	l.called(t, at)
	dialer, err := netproxy.SOCKS5("tcp", at, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	began := time.Now()
	for i := range 500 {
		group.Go(func() {
			c, err := dialer.Dial("tcp", "h2:80")
			if err != nil {
				t.Errorf("connection %d: %v", i, err)
				return
			}
			t.Cleanup(func() { c.Close() })
		})
	}
	group.Wait()
	t.Logf("500 connections at once after %s", time.Since(began))
	worker := l.status(t).node("h2").Worker
	t.Logf("tunnels on worker %s: %s", worker, l.OnNode(t, worker, "sh", "-c",
		"for p in $(pgrep -f 'c9s-sidecar dial'); do grep VmRSS /proc/$p/status; done; true"))
}

// called uses gRPC's library through the proxy, as clients for gNMI do.
func (l *lab) called(t *testing.T, proxy string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "grpc")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "../grpc")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l.c9s(t, "cp", binary, "h2:/tmp/grpc", "-n", l.ns)
	if out, err := l.in(t.Context(), "h2", "sh", "-c", "/tmp/grpc serve :57400 >/tmp/grpc.log 2>&1 &"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	client := exec.CommandContext(t.Context(), binary, "watch", "h2:57400")
	client.Env = append(os.Environ(), "HTTPS_PROXY=http://"+proxy, "https_proxy=http://"+proxy, "NO_PROXY=", "no_proxy=")
	out, err := client.CombinedOutput()
	if err != nil || strings.Count(string(out), "NOT_SERVING\n") != 2 || strings.Count(string(out), "SERVING\n") != 4 {
		t.Errorf("a stream of four states came to %v: %s", err, out)
	}
}

// datagrams exchanges UDP with a program of a node, across a replacement of its Pod.
func (l *lab) datagrams(t *testing.T) {
	serve := func() {
		t.Helper()
		if out, err := l.in(t.Context(), "h2", "sh", "-c", "socat UDP-LISTEN:161,fork EXEC:cat >/dev/null 2>&1 &"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	serve()
	address := l.forward(t, "h2:161/udp")
	ask := func() error {
		c, err := net.Dial("udp", address)
		if err != nil {
			return err
		}
		defer c.Close()
		_, _ = c.Write([]byte("public\n"))
		_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
		got := make([]byte, 100)
		n, err := c.Read(got)
		if err == nil && string(got[:n]) != "public\n" {
			err = fmt.Errorf("the answer is %q", got[:n])
		}
		return err
	}
	testcluster.Eventually(t, patience, "an answer by UDP", ask)
	l.c9s(t, "restart", "h2", "-n", l.ns)
	serve()
	testcluster.Eventually(t, patience, "an answer by UDP of the new Pod", ask)
}

// consoles reads a serial console: a Telnet server of the node's loopback.
func (l *lab) consoles(t *testing.T) {
	const serve = `cat > /tmp/console <<'END'
#!/bin/sh
printf '\377\373\001login: '
read x
echo hello "$x"
END
chmod 755 /tmp/console
socat TCP-LISTEN:5000,bind=127.0.0.1,fork,reuseaddr EXEC:/tmp/console >/dev/null 2>&1 &`
	if out, err := l.in(t.Context(), "h2", "sh", "-c", serve); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testcluster.Eventually(t, patience, "the console", func() error {
		cmd := l.command(t.Context(), "console", "h2", "--port", "5000", "-n", l.ns)
		cmd.Stdin = strings.NewReader("me\n")
		out, err := cmd.Output()
		if err == nil && string(out) != "login: hello me\n" {
			err = fmt.Errorf("it prints %q", out)
		}
		return err
	})
}

// execs are the ways in which a command does not run.
func (l *lab) execs(t *testing.T) {
	for _, c := range []struct {
		argv []string
		code int
		want string
	}{
		{[]string{"nothing-of-that-name"}, 127, "Error: node H1: there is no program \"nothing-of-that-name\"\n"},
		{[]string{"/etc/hostname"}, 126, "Error: node H1: \"/etc/hostname\" is not an executable program\n"},
		{[]string{"sh", "-c", "exit 3"}, 3, ""},
	} {
		out, err := l.in(t.Context(), "H1", c.argv...)
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != c.code || out != c.want {
			t.Errorf("%v: %v: %s", c.argv, err, out)
		}
	}
}

// followed follows a log over a restart of the container, and to the end of the node.
func (l *lab) followed(t *testing.T) {
	cmd := l.command(t.Context(), "logs", "h2", "-f", "-n", l.ns)
	var said, log syncBuffer
	cmd.Stdout, cmd.Stderr = &log, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	time.Sleep(time.Second) // it follows; a restart before that is none that it sees
	_, _ = l.in(t.Context(), "h2", "sh", "-c", "kill 1; sleep 1; kill -9 -1")
	testcluster.Eventually(t, patience, "word of the restart", func() error {
		if text := said.String(); !strings.Contains(text, "h2: the container restarted (restart 1)") {
			return fmt.Errorf("it says %q", text)
		}
		return nil
	})
	l.c9s(t, "stop", "h2", "-n", l.ns)
	select {
	case err := <-ended:
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 || !strings.Contains(said.String(), "node h2 is stopped") {
			t.Errorf("%v: %s", err, said.String())
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Errorf("the log of a stopped node is still followed: %s", said.String())
	}
	l.c9s(t, "start", "h2", "-n", l.ns)
}

// syncBuffer is a buffer that may be read while a program writes to it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// accessRole has the rights that the commands need which connect to nodes.
func accessRole(verbs ...string) rbacv1.Role {
	role := rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "access"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}},
	}}
	if len(verbs) > 0 {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: verbs})
	}
	return role
}

// accessRights tries a user who has just the rights for it, and then lacks the last one.
func (l *lab) accessRights(t *testing.T, key string) {
	least := *l
	least.kubeconfig = l.user(t, accessRole("create"))
	out, err := least.ssh(t.Context(), key, "H1", "hostname")
	if err != nil || strings.TrimSpace(out) != "H1" {
		t.Errorf("with the least rights: %v: %s", err, out)
	}
	role := accessRole()
	if _, err := l.Typed.RbacV1().Roles(l.ns).Update(t.Context(), &role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, patience, "the right to be gone", func() error {
		out, err := least.ssh(t.Context(), key, "H1", "hostname")
		if err == nil || !strings.Contains(out, "you lack the right to create pods/exec in namespace "+l.ns) {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	l.leastRights(t, &least)
}

// rightsOf are the rules of a command's row in docs/reference/rights.md, a rule a resource.
func rightsOf(t *testing.T, command string) []rbacv1.PolicyRule {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repo, "docs", "reference", "rights.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, row, found := strings.Cut(string(page), "\n| "+command+" | ")
	row, _, closed := strings.Cut(row, " |\n")
	if !found || !closed {
		t.Fatalf("docs/reference/rights.md has no row %s", command)
	}
	var rules []rbacv1.PolicyRule
	for text := range strings.SplitSeq(row, "<br>") {
		words := strings.Fields(strings.ReplaceAll(text, ",", ""))
		resource, group, _ := strings.Cut(words[len(words)-1], ".")
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: words[:len(words)-1]})
	}
	return rules
}

// leastRights runs each command with the rights of its row alone, and then without its last one.
func (l *lab) leastRights(t *testing.T, user *lab) {
	file := filepath.Join(t.TempDir(), "f")
	scenario := filepath.Join(filepath.Dir(file), "scenario.yaml")
	text := "apiVersion: c9s.dev/v1\nkind: Scenario\nduration: 500ms\nevents:\n  - {at: 0s, exec: H1, command: [\"true\"]}\n"
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	set := func(rules []rbacv1.PolicyRule) {
		t.Helper()
		role := rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "access"}, Rules: rules}
		if _, err := l.Typed.RbacV1().Roles(l.ns).Update(t.Context(), &role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		row, lacks string
		args       []string
	}{
		{"exec", "pods/exec", []string{"exec", "H1", "-n", l.ns, "--", "true"}},
		{"exec", "pods/exec", []string{"cp", "-q", "-n", l.ns, "H1:/etc/hostname", file}},
		{"inspect", "pods/exec", []string{"inspect", "interfaces", "H1", "-n", l.ns}},
		{"inspect", "deployments", []string{"inspect", "--details", "-n", l.ns}},
		{"ssh", "pods/exec", []string{"dial", "H1:9", "-n", l.ns}},
		{"ssh", "configmaps", []string{"inventory", "-n", l.ns}},
		{"ssh", "deployments", []string{"ssh-config", "-n", l.ns}},
		{"logs", "pods/log", []string{"logs", "H1", "--tail", "1", "-n", l.ns}},
		{"status", "services", []string{"status", "-n", l.ns}},
		{"link", "configmaps", []string{"link", "show", "-n", l.ns}},
		{"run", "configmaps", []string{"run", scenario, "-n", l.ns}},
		{"shim", "pods/exec", []string{"shim", "docker", "exec", "clab-access-H1", "true"}},
		{"shim", "pods", []string{"shim", "docker", "ps"}},
		{"save", "deployments", []string{"save", "H1", "-n", l.ns, "--dir", filepath.Dir(file)}},
		{"events", "pods", []string{"events", "--initial-state", "-n", l.ns}},
		{"console", "pods/attach", []string{"console", "H1", "-n", l.ns}},
		{"ssh", "pods/exec", []string{"console", "h2", "--port", "5000", "-n", l.ns}},
	} {
		// What a command prints that does not end by itself, or not well, when its rights are enough: a
		// connection that the node refuses, the state of a node, what is to be known of its process.
		shows := map[string]string{"dial": "refused", "events": "clab-access-H1", "console": "reads no input"}[c.args[0]]
		if slices.Contains(c.args, "--port") {
			shows = "refused"
		}
		enough := func(out string, err error) bool {
			return err == nil || shows != "" && strings.Contains(out, shows)
		}
		run := func() (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return user.try(ctx, c.args...)
		}
		rules := rightsOf(t, c.row)
		set(rules)
		testcluster.Eventually(t, patience, strings.Join(c.args, " ")+" with its rights", func() error {
			if out, err := run(); !enough(out, err) {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		fewer := slices.DeleteFunc(slices.Clone(rules), func(r rbacv1.PolicyRule) bool { return r.Resources[0] == c.lacks })
		if len(fewer) == len(rules) {
			t.Errorf("the row %s has no %s", c.row, c.lacks)
		}
		set(fewer)
		testcluster.Eventually(t, patience, strings.Join(c.args, " ")+" without "+c.lacks, func() error {
			out, err := run()
			if line := strings.TrimSpace(out); enough(out, err) || strings.Contains(line, "\n") || !strings.Contains(line, "forbidden") && !strings.Contains(line, "lack the right") {
				return fmt.Errorf("%v: %s", err, out)
			}
			return nil
		})
	}
}
