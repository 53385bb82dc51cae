//go:build !nocluster

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	kubectlterm "k8s.io/kubectl/pkg/util/term"

	"github.com/c9s-lab/c9s/pkg/access/sshconfig"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// What ssh is started with: nothing of a password.
func TestSSHArguments(t *testing.T) {
	node := cluster.Node{Name: "R1", Deployment: "r1", Kind: "nokia_srlinux"}
	f := sshFlags{port: 22, password: true, tty: true, identity: []string{"key"}, options: []string{"Compression=yes"}}
	proxy, err := proxyCommand(targetFlags{}, "my context", "demo-ns", node.Deployment, 22, "")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if want := self + " dial r1:22 --pod -n demo-ns --context 'my context'"; proxy != want {
		t.Errorf("got  %s\nwant %s", proxy, want)
	}
	login := kindOf(node).Credentials
	got := f.arguments(node, login.Username, "PROXY", []string{"show", "version"})
	want := []string{"-o", "ProxyCommand=PROXY", "-o", "Compression=yes"}
	for _, o := range sshconfig.Options {
		want = append(want, "-o", o.Key+"="+o.Value)
	}
	want = append(want, "-o", "ControlPath=none", "-o", "PreferredAuthentications=password,keyboard-interactive", "-o", "NumberOfPasswordPrompts=1",
		"-i", "key", "-l", "admin", "-t", "R1", "--", "show", "version")
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	node.Name = "-oProxyCommand=evil"
	if got := f.arguments(node, "", "PROXY", nil); got[len(got)-1] != "r1" {
		t.Errorf("a name that is an option became %q", got[len(got)-1])
	}
	if strings.Contains(strings.Join(got, " "), login.Password) {
		t.Error("the password is on the command line")
	}
}

// Flags may stand before and after the node, as for ssh; those after the command's first word are
// the command's.
func TestSSHFlagsAfterNode(t *testing.T) {
	for line, want := range map[string]string{
		"srl1 --password": `true "" [] []`, "--password srl1": `true "" [] []`,
		"H1 -l root -o X=y uptime": `false "root" [X=y] ["uptime"]`, "-l root H1 -o X=y uptime": `false "root" [X=y] ["uptime"]`,
		"-o A=b H1 -o X=y": `false "" [A=b,X=y] []`, "R1 -- cmd -l": `false "" [] ["cmd" "-l"]`,
		"R1 cmd -l root -- x": `false "" [] ["cmd" "-l" "root" "--" "x"]`, "R1": `false "" [] []`,
	} {
		cmd := newSSH(IO{})
		if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		command, err := afterNode(cmd, cmd.Flags().Args()[1:])
		fs := cmd.Flags()
		if got := fmt.Sprintf("%s %q %s %q", fs.Lookup("password").Value, fs.Lookup("user").Value.String(), fs.Lookup("option").Value, command); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", line, got, err, want)
		}
	}
	if _, err := afterNode(newSSH(IO{}), []string{"--pasword"}); err == nil {
		t.Error("an unknown flag after the node is no error")
	}
}

// ssh's question for the password is answered by c9s, and only that.
func TestPasswordQuestion(t *testing.T) {
	env, err := passwordEnv([]string{"A=b"}, "s3cret!")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		env  []string
		want string
	}{
		{[]string{"admin@R1's password: "}, env, "s3cret!\n"},
		{[]string{"dial", "--help"}, env, ""},
		{[]string{"version", "--help"}, nil, ""},
	} {
		var out, errs bytes.Buffer
		Main(c.args, IO{Out: &out, Err: &errs, Env: c.env})
		if got := out.String(); strings.Contains(got, "s3cret!") != (c.want != "") || c.want != "" && got != c.want {
			t.Errorf("%q: %q", c.args, got)
		}
	}
}

// The shell that ssh runs ProxyCommand in gives c9s the words as they are.
func TestProxyCommandQuotes(t *testing.T) {
	words := []string{"printf", "%s\n", "plain", "with space", "it's", `back\slash`, "$HOME", "`id`", "", "100%", "*"}
	command := strings.ReplaceAll(sshconfig.Command(words...), "%%", "%") // as ssh does
	out, err := exec.Command("/bin/sh", "-c", "cd "+filepath.Clean(t.TempDir())+" && "+command).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), strings.Join(words[2:], "\n")+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nodes do not take the names of hosts outside the lab.
func TestLocalNames(t *testing.T) {
	for _, c := range []struct{ node, lab, want string }{
		{"R1", "demo", "R1 R1.demo"}, {"R1", "demo.2", "R1 R1.demo.2"}, {"R1", "bad lab", "R1"}, {"bad name", "demo", ""},
		{"github.com", "demo", ""}, {"localhost", "demo", "localhost.demo"}, {"LocalHost", "com", ""},
		{"github", "com", "github"}, {"github", "COM", "github"}, {"x", "github.com", "x"}, {"x", "github.io", "x"}, {"printer", "local", "printer"},
	} {
		if got := strings.Join(localNames([]string{c.node, c.node}, c.lab), " "); got != c.want {
			t.Errorf("node %s of lab %s: %q, want %q", c.node, c.lab, got, c.want)
		}
	}
	ports := []*forwarded{{Node: "github", Local: netip.MustParseAddrPort("127.30.0.1:22")}, {Node: "github.com", Local: netip.MustParseAddrPort("127.30.0.2:22")}}
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := writeHosts(file, cluster.Found{Name: "com", Namespace: "ns"}, ports); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, file); strings.Contains(got, "github.com") {
		t.Errorf("github.com leads to a node:\n%s", got)
	}
	nodes := []cluster.Node{{Name: "github.com", Deployment: "github-com", Kind: "linux", Containers: []string{"x"}}, {Name: "localhost", Deployment: "localhost", Kind: "linux", Containers: []string{"x"}}}
	text, err := sshConfigText(targetFlags{}, "ctx", cluster.Found{Name: "com", Namespace: "ns"}, nodes)
	if err != nil || strings.Count(text, "\nHost ") != 1 || !strings.Contains(text, "\nHost github-com\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

// The output of a console need not be a terminal.
func TestConsoleSizes(t *testing.T) {
	if got := sizesOf(kubectlterm.TTY{Raw: true, Out: &bytes.Buffer{}}); got != nil {
		t.Errorf("%#v", got)
	}
}

// A node of a name that is a path is not saved anywhere.
func TestSaveOfAHostileName(t *testing.T) {
	for _, name := range []string{"../../.ssh/x", "a/b", "", ".."} {
		row := (&saveFlags{}).one(t.Context(), &configs{catalogue: kinds.Builtin(), dir: t.TempDir()}, cluster.Node{Name: name, Kind: "linux"})
		if row.State != failedState || row.Reason != "its name cannot be that of a file" {
			t.Errorf("%q: %+v", name, row)
		}
	}
}

// A node is saved once.
func TestEachOnce(t *testing.T) {
	node := func(name string, containers ...string) cluster.Node {
		return cluster.Node{Name: name, Deployment: strings.ToLower(name), Containers: containers}
	}
	got, err := eachOnce([]cluster.Node{node("R1", "r1"), node("R2", "r2"), node("R1", "r1")})
	if err != nil || len(got) != 2 || got[0].Name != "R1" || got[1].Name != "R2" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := eachOnce([]cluster.Node{node("SR1", "sr1-a"), node("SR1", "sr1-b")}); err == nil {
		t.Error("two cards of a node are saved to one file")
	}
	setKinds(got, contract.Directory{Nodes: []contract.DirectoryNode{{Name: "R2", Kind: "linux"}, {Name: "R1"}}})
	if got[0].Kind != "" || got[1].Kind != "linux" {
		t.Errorf("kinds %q, %q", got[0].Kind, got[1].Kind)
	}
}

// A commit that fails does not hide the table.
func TestSaveCommitFails(t *testing.T) {
	dir := t.TempDir() // no repository
	var out bytes.Buffer
	f := saveFlags{git: true}
	err := f.finish(t.Context(), IO{Out: &out, Err: &out}, "demo", dir, []savedNode{
		{Node: "R1", State: savedState, File: filepath.Join(dir, "R1.conf")}, {Node: "R2", State: failedState, Reason: "no route"},
	})
	if got := out.String(); err == nil || !strings.Contains(got, "R2") || !strings.Contains(got, "no route") {
		t.Errorf("%v\n%s", err, got)
	}
}

// Figures are written out.
func TestUnit(t *testing.T) {
	for v, want := range map[float64]string{0: "-", 1e6: "1000000kbit/s", 12345678: "12345678kbit/s", 0.5: "0.5kbit/s", 1e-7: "0.0000001kbit/s"} {
		if got := unit(v, "kbit/s"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The management network of an inventory is read where nodes have IPv6 only.
func TestInventoryIPv6(t *testing.T) {
	configMap := func(name, key string, content any) *corev1.ConfigMap {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Data: map[string]string{key: string(data)}}
	}
	client := &cluster.Client{Typed: fake.NewClientset(
		configMap(contract.DirectoryConfigMap, contract.DirectoryFile, contract.Directory{Nodes: []contract.DirectoryNode{{Name: "R1", Pod: "r1", IPv6: netip.MustParseAddr("3fff::2")}}}),
		configMap(contract.LinksConfigMap("r1"), contract.LinksFile, contract.Links{Mgmt: &contract.Mgmt{IPv6: netip.MustParsePrefix("3fff::2/64")}}),
	)}
	l, err := (&inventoryFlags{via: viaName}).read(t.Context(), client, cluster.Found{Name: "demo", Namespace: "ns"}, []cluster.Node{{Name: "R1", Deployment: "r1", Kind: "linux", Containers: []string{"r1"}}})
	if err != nil || l.IPv6 != netip.MustParsePrefix("3fff::/64") {
		t.Errorf("%+v, %v", l, err)
	}
}

// Names from the cluster write no lines of their own into ssh's configuration.
func TestSSHConfigOfAHostileLab(t *testing.T) {
	nodes := []cluster.Node{
		{Name: "R1", Deployment: "r1", Kind: "nokia_srlinux", Containers: []string{"r1"}},
		{Name: "r1", Deployment: "r1-x", Kind: "linux", Containers: []string{"r1-x"}},
		{Name: "evil\n    ProxyCommand evil", Deployment: "evil", Kind: "linux\nUser evil", Containers: []string{"evil"}},
		{Name: "*", Deployment: "star", Kind: "linux", Containers: []string{"star"}},
		{Name: "br", Deployment: "br", Kind: "bridge"},
	}
	text, err := sshConfigText(targetFlags{}, "ctx", cluster.Found{Name: "lab\nHost *", Namespace: "ns"}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	var hosts, users []string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "Host":
			hosts = append(hosts, value)
		case "User":
			users = append(users, value)
		}
	}
	if want := []string{"R1 R1.ns", "r1 r1-x r1.ns r1-x.ns", "evil evil.ns", "star star.ns"}; !slices.Equal(hosts, want) {
		t.Errorf("got  %q\nwant %q", hosts, want)
	}
	if !slices.Equal(users, []string{"admin"}) || strings.Contains(text, "ProxyCommand evil") || strings.Contains(text, "Host *") {
		t.Errorf("users %q in\n%s", users, text)
	}
}

func TestListenLoopback(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:1080": true, "[::1]:0": true, "localhost:1": true, "127.5.6.7:1": true,
		":1080": false, "0.0.0.0:1080": false, "192.0.2.1:1": false, "127.0.0.1": false, "example.com:1": false,
	} {
		if err := loopback(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The arguments of forward.
func TestForwardArguments(t *testing.T) {
	nodes := []cluster.Node{
		{Name: "srl1", Deployment: "srl1", Kind: "srl", Containers: []string{"srl1"}},
		{Name: "h1", Deployment: "h1", Kind: "linux", Containers: []string{"h1"}},
		{Name: "off", Deployment: "off", Kind: "linux", Containers: []string{"off"}, Stopped: true},
		{Name: "br", Deployment: "br", Kind: "bridge"},
		{Name: "SR1", Deployment: "sr1", Kind: "linux", Containers: []string{"sr1-a", "sr1-1"}},
	}
	for args, want := range map[string]string{
		"":                             "srl1:22/tcp srl1:830/tcp srl1:80/tcp srl1:443/tcp srl1:57400/tcp srl1:57401/tcp srl1:161/udp h1:22/tcp SR1:22/tcp",
		"h1":                           "h1:22/tcp",
		"h1:80 8080=srl1:80":           "h1:80/tcp 8080=srl1:80/tcp",
		"srl1:161/udp 1161=h1:161/udp": "srl1:161/udp 1161=h1:161/udp",
		"SR1/A:22 SR1/1:161/udp":       "SR1:22/tcp SR1:161/udp",
		"SR1/A":                        "SR1:22/tcp",
		"x:1":                          "error: no node x in the lab",
		"off:22":                       "error: node off is stopped",
		"h1:0":                         `error: "h1:0": port "0": use a number`,
		"h1:1/sctp":                    `error: "h1:1/sctp": the protocol is tcp or udp`,
		"8080=h1":                      `error: "8080=h1": give the node's port too`,
		"x=h1:1":                       `error: "x=h1:1": port "x"`,
	} {
		list, err := wantedPorts(nodes, strings.Fields(args))
		var got []string
		for _, w := range list {
			text := fmt.Sprintf("%s:%d/%s", w.node.Name, w.port, w.network)
			if w.local != 0 {
				text = fmt.Sprintf("%d=%s", w.local, text)
			}
			got = append(got, text)
		}
		text := strings.Join(got, " ")
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != want && !(err != nil && strings.HasPrefix(text, want)) {
			t.Errorf("%q: got %s, want %s", args, text, want)
		}
	}
}

// The names by which a proxy knows nodes.
func TestLabNames(t *testing.T) {
	nodes := []cluster.Node{{Name: "R1", Deployment: "r1"}, {Name: "r2", Deployment: "r2"}, {Name: "br", Deployment: "br"}}
	directory := contract.Directory{Nodes: []contract.DirectoryNode{
		{Name: "R1", IPv4: netip.MustParseAddr("172.20.20.2"), IPv6: netip.MustParseAddr("3fff::2"), Names: []string{"clab-demo-R1", "r2"}},
		{Name: "r2", IPv4: netip.MustParseAddr("172.20.20.3"), Names: []string{"core"}},
	}}
	l := &labNames{found: cluster.Found{Name: "demo"}, read: time.Now(), nodes: nameNodes("demo", nodes, directory)}
	for name, want := range map[string]string{
		"R1": "R1", "r1": "R1", "R1.demo": "R1", "r1.demo.": "R1", "clab-demo-r1": "R1", "172.20.20.2": "R1", "3fff::2": "R1",
		"r2": "r2", "core": "r2", "br": "br", "example.com": "", "172.20.20.4": "", "127.0.0.1": "", "": "",
	} {
		n, err := l.lookup(t.Context(), name)
		if n.Name != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v, want %q", name, n.Name, err, want)
		}
	}
}

// Where the web page of a kind is.
func TestWebPort(t *testing.T) {
	for _, c := range []struct {
		kind string
		port uint16
		http bool
		want string
	}{
		{"nokia_srlinux", 0, false, "https 443"}, {"nokia_srlinux", 0, true, "http 80"}, {"nokia_srlinux", 80, false, "http 80"},
		{"linux", 0, false, "https 443"}, {"linux", 0, true, "http 80"}, {"linux", 8443, false, "https 8443"}, {"linux", 8080, true, "http 8080"},
	} {
		scheme, port := webPort(kindOf(cluster.Node{Kind: c.kind}), c.port, c.http)
		if got := fmt.Sprint(scheme, " ", port); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The hosts file has the names until the end of a forward, and nothing else of it changes.
func TestForwardHosts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	const own = "127.0.0.1 localhost\n"
	if err := os.WriteFile(file, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	ports := []*forwarded{
		{Node: "R1", Local: netip.MustParseAddrPort("127.30.0.1:22")}, {Node: "R1", Local: netip.MustParseAddrPort("127.30.0.1:80")},
		{Node: "bad name\n1.2.3.4 bank", Local: netip.MustParseAddrPort("127.30.0.2:22")},
	}
	undo, err := writeHosts(file, cluster.Found{Name: "demo", Namespace: "ns"}, ports)
	if err != nil {
		t.Fatal(err)
	}
	block := func(process int) string {
		name := hostsBlock("ns", process)
		return "# BEGIN " + name + "\n127.30.0.1 R1 R1.demo\n# END " + name + "\n"
	}
	if got, want := readFile(t, file), own+block(os.Getpid()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// Another forward of the lab, which ends first or later, and one that was killed.
	const other, killed = 1, 1 << 30
	if err := os.WriteFile(file, []byte(own+block(killed)+block(os.Getpid())+block(other)), 0o644); err != nil {
		t.Fatal(err)
	}
	undo()
	if got, want := readFile(t, file), own+block(other); got != want {
		t.Errorf("beside another forward: got %q, want %q", got, want)
	}
	if err := os.WriteFile(file, []byte(own+block(os.Getpid())), 0o644); err != nil {
		t.Fatal(err)
	}
	undo()
	if got := readFile(t, file); got != own {
		t.Errorf("afterwards it is %q", got)
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The login of a node is its kind's, or what the topology gives it instead.
func TestLoginOf(t *testing.T) {
	for _, c := range []struct {
		node cluster.Node
		want lab.Credentials
	}{
		{cluster.Node{Kind: "nokia_srlinux"}, lab.Credentials{Username: "admin", Password: "NokiaSrl1!"}},
		{cluster.Node{Kind: "nokia_srlinux", Login: &contract.Login{Username: "me"}}, lab.Credentials{Username: "me", Password: "NokiaSrl1!"}},
		{cluster.Node{Kind: "nokia_srlinux", Login: &contract.Login{Username: "me", Password: true}}, lab.Credentials{Username: "me"}},
		{cluster.Node{Kind: "juniper_vsrx", Login: &contract.Login{Username: "me", Password: true}, Given: lab.Credentials{Username: "me", Password: "own"}}, lab.Credentials{Username: "me", Password: "own"}},
		// The topology's env decides what a launcher makes, not the kind's credentials.
		{cluster.Node{Kind: "juniper_vsrx", Given: lab.Credentials{Username: "env", Password: "other"}}, lab.Credentials{Username: "env", Password: "other"}},
		{cluster.Node{Kind: "own", Launcher: true, Login: &contract.Login{Username: "me", Password: true}, Given: lab.Credentials{Username: "env", Password: "other"}}, lab.Credentials{Username: "env", Password: "other"}},
		{cluster.Node{Kind: "linux", Given: lab.Credentials{Username: "env", Password: "other"}}, lab.Credentials{}},
		{cluster.Node{Kind: "linux"}, lab.Credentials{}},
	} {
		if got := loginOf(c.node); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.node, got, c.want)
		}
	}
}

// What the topology gives is in the cluster: the user in an annotation, the password only where
// the device gets it.
func TestLoginsAreRendered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logins.clab.yml")
	const topo = `name: logins
topology:
  nodes:
    usual: {kind: juniper_vsrx, image: vrnetlab/vsrx:1}
    own: {kind: juniper_vsrx, image: vrnetlab/vsrx:1, credentials: {username: me, password: secret1}}
    user: {kind: nokia_srlinux, image: srl:1, credentials: {username: operator}}
`
	if err := os.WriteFile(file, []byte(topo), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "render", file, "--planner", "builtin")
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{`c9s.dev/logins: "{\"own\":{\"username\":\"me\",\"password\":true}}"`, `c9s.dev/logins: "{\"user\":{\"username\":\"operator\"}}"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s", want)
		}
	}
	if n := strings.Count(out, "c9s.dev/logins"); n != 2 {
		t.Errorf("%d nodes have a login of their own, want 2", n)
	}
}
