package podnet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// firewalled are two Pods with a wire; the device of the first gets a firewall.
func firewalled(t *testing.T) (c *cluster, a, b *pod) {
	t.Helper()
	c = newCluster(t)
	da, db := mgmtDoc(11), mgmtDoc(12)
	da.Interfaces = []contract.Interface{wired(iface("r1", "eth1", 1), 5, "r2")}
	db.Interfaces = []contract.Interface{wired(iface("r2", "eth1", 2), 5, "r1")}
	a, b = c.newPod("r1", da), c.newPod("r2", db)
	c.startAll()
	return c, a, b
}

// onlyTransports checks that what carries the lab passes the firewall, the kubelet's
// probes with it, and that nothing else does.
func onlyTransports(t *testing.T, c *cluster, a, b *pod) {
	t.Helper()
	a.waitStarted()
	for _, to := range []string{"172.20.20.12", "3fff:172:20:20::c", gateway4, gateway6} {
		if err := ping(a.ns, to, sure); err != nil {
			t.Errorf("by eth0: %v", err)
		}
	}
	if err := pingFrom(a.ns, "eth1", "10.9.0.2", sure); err != nil {
		t.Errorf("by the wire: %v", err)
	}
	if err := ping(b.ns, "172.20.20.11", sure); err != nil {
		t.Errorf("from a peer: %v", err)
	}
	if ping(c.name, a.ip4, 500*time.Millisecond) == nil {
		t.Error("ping of the Pod address, which the device forbids, is answered")
	}
}

// A device drops everything; what carries the lab still passes.
func TestFirewall(t *testing.T) {
	if _, err := run("nft", "--version"); err != nil {
		t.Skip("needs the nft program")
	}
	c, a, b := firewalled(t)
	wall := filepath.Join(a.dir, "wall.nft")
	rules := "table inet wall {\n"
	for _, hook := range []string{"input", "output", "forward", "prerouting"} {
		rules += fmt.Sprintf("chain %s { type filter hook %s priority 0; policy drop; iifname lo accept; oifname { eth0, eth1 } accept; iifname { eth0, eth1 } accept; }\n", hook, hook)
	}
	if err := os.WriteFile(wall, []byte(rules+"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		a.in("nft -f " + wall)
		time.Sleep(150 * time.Millisecond)
	}
	onlyTransports(t, c, a, b)
	// Once each, also after a restart and a device that puts its own rule first.
	a.in("nft insert rule inet wall input counter drop")
	a.kill()
	a.start()
	a.waitStarted()
	out := a.in("nft list chain inet wall input")
	if n := strings.Count(out, "udp dport 14800 accept"); n != 1 {
		t.Errorf("the accept rule is there %d times:\n%s", n, out)
	}
	if strings.Index(out, "14800") > strings.Index(out, "counter") {
		t.Errorf("the accept rules are not at the top:\n%s", out)
	}
}

// The same by the old iptables, which cEOS has: all chains drop, rules are counted, a
// chain of the device's own is jumped to.
func TestOldFirewall(t *testing.T) {
	if _, err := run("iptables-legacy", "--version"); err != nil {
		t.Skip("needs the iptables-legacy program")
	}
	c, a, b := firewalled(t)
	if _, err := run("ip", "netns", "exec", a.ns, "iptables-legacy", "-L"); err != nil {
		t.Skip("this kernel has no old iptables")
	}
	devices := func(program string) {
		for _, rule := range []string{
			"-N DEVICE", "-A DEVICE -i lo -j ACCEPT", "-A DEVICE -i eth0 -j ACCEPT", "-A DEVICE -i eth1 -j ACCEPT",
			"-A DEVICE -o eth0 -j ACCEPT", "-A DEVICE -o eth1 -j ACCEPT",
			"-A INPUT -j DEVICE", "-A OUTPUT -j DEVICE", "-A FORWARD -j DEVICE",
			"-P INPUT DROP", "-P OUTPUT DROP", "-P FORWARD DROP",
		} {
			eventually(t, program+" "+rule, func() error { // the sidecar may be faster
				_, err := run("ip", append([]string{"netns", "exec", a.ns, program}, strings.Fields(rule)...)...)
				return err
			})
		}
	}
	devices("iptables-legacy")
	devices("ip6tables-legacy")
	onlyTransports(t, c, a, b)
	// Once each, also after a restart and a device that puts its own rules first, one
	// of them without a target.
	a.in("iptables-legacy -I INPUT -s 192.0.2.1")
	a.in("iptables-legacy -I INPUT -s 192.0.2.2 -j DROP")
	a.kill()
	a.start()
	onlyTransports(t, c, a, b)
	rules := strings.Split(a.in("iptables-legacy -S INPUT"), "\n")
	var ports, foreign []int
	for i, r := range rules {
		if strings.Contains(r, "--dport 14800 -j ACCEPT") {
			ports = append(ports, i)
		}
		if strings.Contains(r, "192.0.2.") {
			foreign = append(foreign, i)
		}
	}
	if len(ports) != 1 || len(foreign) != 2 || ports[0] > foreign[0] {
		t.Errorf("the accept rules are not once at the top:\n%s", strings.Join(rules, "\n"))
	}
	// What the device has counted is not lost.
	if out := a.in("iptables-legacy -nvxL DEVICE"); !regexp.MustCompile(`(?m)^ +[1-9]\d* +\d+ ACCEPT .* eth1 `).MatchString(out) {
		t.Errorf("the device's counters are gone:\n%s", out)
	}
}

func TestNamesAndSettings(t *testing.T) {
	c := newCluster(t)
	doc := mgmtDoc(11)
	doc.Hostname = "PE_1"
	doc.Sysctls = map[string]string{"net.ipv4.ip_forward": "1", "net.ipv6.conf.default.disable_ipv6": "0", "net.ipv4.conf.eth0/5.forwarding": "1"}
	p := c.newPod("r1", doc)
	directory(p)
	if err := os.WriteFile(p.dir+"/hosts", []byte("127.0.0.1\tlocalhost\n"+p.ip4+"\tr1-abc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.waitStarted()
	uts := func() string {
		out, err := run("nsenter", "--uts=/proc/"+fmt.Sprint(p.cmd.Process.Pid)+"/ns/uts", "hostname")
		if err != nil {
			t.Skipf("needs nsenter and hostname: %v %s", err, out)
		}
		return strings.TrimSpace(out)
	}
	if got := uts(); got != "PE_1" {
		t.Errorf("hostname %q", got)
	}
	if got := strings.TrimSpace(p.in("cat /proc/sys/net/ipv4/ip_forward")); got != "1" {
		t.Errorf("ip_forward %s", got)
	}
	want := "127.0.0.1\tlocalhost\n" + p.ip4 + "\tr1-abc\n# BEGIN c9s: names of the lab\n172.20.20.11\tr1\n"
	hosts := func() error {
		data, err := os.ReadFile(p.dir + "/hosts")
		if err == nil && !strings.HasPrefix(string(data), want) {
			err = fmt.Errorf("%q", data)
		}
		return err
	}
	eventually(t, "names", hosts)
	// The kubelet writes the file anew when a container starts.
	if err := os.WriteFile(p.dir+"/hosts", []byte("127.0.0.1\tlocalhost\n"+p.ip4+"\tr1-abc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "names again", hosts)
	// A setting of the worker's is refused, and told.
	p.doc.Sysctls = map[string]string{"vm.swappiness": "1"}
	p.apply()
	eventually(t, "the refusal is told", func() error {
		s, err := p.status()
		if err == nil && !strings.Contains(s.LastError, "vm.swappiness") {
			err = fmt.Errorf("last error %q", s.LastError)
		}
		return err
	})
}

// A node waits for others: r2 for r1's create, r3's links for r1's configure.
func TestGate(t *testing.T) {
	c := newCluster(t)
	r3 := mgmtDoc(13)
	r3.Interfaces = []contract.Interface{{Name: "eth1", Node: "r3", MAC: "aa:c1:ab:00:00:03", MTU: 9500, Dummy: true}}
	pods := []*pod{c.newPod("r1", mgmtDoc(11)), c.newPod("r2", mgmtDoc(12)), c.newPod("r3", r3)}
	directory(pods...)
	gates := []contract.Gate{
		{},
		{DelaySeconds: 1, Create: []contract.WaitFor{{Node: "r1", Pod: "r1", Stage: "create"}}},
		{CreateLinks: []contract.WaitFor{{Node: "r1", Pod: "r1", Stage: "configure"}}},
	}
	for n, p := range pods {
		node := contract.ManifestNode{Name: p.name, ID: p.name, Gate: gates[n]}
		if n == 0 {
			node.Containers = []contract.Container{{Name: "r1", Program: contract.Program{Steps: []contract.Step{{Over: "create"}, {Over: "create-links"}, {Over: "configure"}}}}}
		}
		p.writeJSON("plan/manifest.json", contract.Manifest{Version: contract.ManifestVersion, Pod: p.name, Nodes: []contract.ManifestNode{node}})
	}
	result := filepath.Join(pods[0].dir, "state", contract.RunDir, "r1")
	if err := os.MkdirAll(result, 0o755); err != nil {
		t.Fatal(err)
	}
	over := func(stages ...string) {
		data, _ := json.Marshal(contract.Result{Version: contract.ResultVersion, Over: stages})
		if err := os.WriteFile(filepath.Join(result, contract.ResultFile), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range pods {
		p.start()
	}
	pods[0].waitStarted()
	pods[2].waitStarted()
	time.Sleep(1500 * time.Millisecond)
	if code, body, err := pods[1].get(api.PathStartup); err != nil || code != http.StatusServiceUnavailable || !strings.Contains(string(body), "r1") {
		t.Errorf("r2 does not wait: %d %s %v", code, body, err)
	}
	if err := pods[2].hasNot("eth1"); err != nil {
		t.Errorf("r3's links do not wait: %v", err)
	}
	over("create")
	pods[1].waitStarted()
	if err := pods[2].hasNot("eth1"); err != nil {
		t.Errorf("r3's links do not wait for configure: %v", err)
	}
	over("create", "create-links", "configure")
	eventually(t, "r3's links", func() error { return pods[2].has("eth1") })
	// Open stays open, over a restart and without the others.
	pods[0].kill()
	pods[1].kill()
	pods[1].start()
	pods[1].waitStarted()
	// What the device writes there is not trusted.
	if err := os.Remove(filepath.Join(result, contract.ResultFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(result, contract.ResultFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := readResult(filepath.Join(pods[0].dir, "state"), contract.Container{Name: "r1"}); err == nil {
		t.Error("a symbolic link was followed")
	}
}

// CNI plugins that route by link scope, as Calico does; and one family alone.
func TestClusterNetworks(t *testing.T) {
	for _, kind := range []string{"link scope", "IPv4 only", "IPv6 only"} {
		t.Run(kind, func(t *testing.T) {
			c := newCluster(t)
			p, q := c.newPod("r1", mgmtDoc(11)), c.newPod("r2", mgmtDoc(12))
			var probe func() error
			for _, p := range c.pods {
				switch kind {
				case "link scope":
					p.in("ip addr flush dev eth0 scope global")
					p.in("ip route flush table main")
					p.in("ip -6 route flush table main")
					p.in("ip addr add " + p.ip4 + "/32 dev eth0")
					p.in("ip addr add " + p.ip6 + "/128 dev eth0 nodad")
					p.in("ip route add 169.254.1.1 dev eth0 scope link")
					p.in("ip route add default via 169.254.1.1 dev eth0")
					p.in("ip -6 route add " + gateway6 + " dev eth0")
					p.in("ip -6 route add default via " + gateway6 + " dev eth0")
				case "IPv4 only":
					p.in("ip -6 addr flush dev eth0 scope global")
					p.in("ip -6 route flush table main")
				case "IPv6 only":
					p.in("ip -4 addr flush dev eth0 scope global")
					p.in("ip -6 route replace default via " + gateway6)
				}
			}
			if kind == "link scope" {
				c.in("ip addr add 169.254.1.1/32 dev br0")
				for _, f := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
					if err := withNS(c.name, func() error { return os.WriteFile("/proc/sys/net/"+f, []byte("1"), 0) }); err != nil {
						t.Fatal(err)
					}
				}
				probe = func() error { return ping(p.ns, gateway6, time.Second) }
			}
			if kind != "link scope" {
				p.only, q.only = kind, kind
			}
			directory(p, q)
			p.start()
			q.start()
			at := p.ip4
			if kind == "IPv6 only" {
				at = p.ip6
			}
			eventually(t, "probe", func() error { return p.probe(at) })
			for _, to := range []string{"172.20.20.12", "3fff:172:20:20::c"} {
				if err := ping(p.ns, to, sure); err != nil {
					t.Errorf("a peer: %v", err)
				}
			}
			if probe != nil {
				eventually(t, "out by IPv6", probe)
			}
			if kind != "IPv6 only" {
				if err := ping(p.ns, gateway4, sure); err != nil {
					t.Errorf("out: %v", err)
				}
			}
			if out, _ := run("ip", "-n", p.ns, "route", "show", "table", "main"); strings.Contains(out, "c9s0") {
				t.Errorf("the cluster's routes are still in the main table: %s", out)
			}
		})
	}
}

// probe asks for startup at one of the addresses.
func (p *pod) probe(at string) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialIn(p.c.name)}}
	resp, err := client.Get("http://" + netip.AddrPortFrom(netip.MustParseAddr(at), contract.StatusPort).String() + api.PathStartup)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := readAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return nil
}
