package podnet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// A device drops everything that is not its own: what carries the lab still passes, and
// the device's rules are as it made them.
func TestFirewall(t *testing.T) {
	c := newCluster(t)
	da, db := mgmtDoc(11), mgmtDoc(12)
	da.Interfaces = []contract.Interface{wired(iface("r1", "eth1", 1), 5, "r2")}
	db.Interfaces = []contract.Interface{wired(iface("r2", "eth1", 2), 5, "r1")}
	a, b := c.newPod("r1", da), c.newPod("r2", db)
	c.startAll()
	wall := filepath.Join(a.dir, "wall.nft")
	rules := "table inet wall {\n"
	for _, hook := range []string{"input", "output", "forward", "prerouting"} {
		rules += fmt.Sprintf("chain %s { type filter hook %s priority 0; policy drop; iifname lo accept; oifname { eth0, eth1 } accept; iifname { eth0, eth1 } accept; }\n", hook, hook)
	}
	if err := os.WriteFile(wall, []byte(rules+"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a.in("nft -f " + wall)
	before := a.in("nft list ruleset")
	a.kill()
	a.start()
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
	if after := a.in("nft list ruleset"); after != before {
		t.Errorf("the device's rules were changed from\n%s\nto\n%s", before, after)
	}
}

// A device sees what it would in containerlab, and nothing of the sidecar's.
func TestDeviceSeesItsOwn(t *testing.T) {
	c := newCluster(t)
	doc := mgmtDoc(11)
	for n := 1; n <= 5; n++ {
		i := wired(iface("r1", fmt.Sprintf("eth%d", n), n), n, "r2")
		i.IPv4 = netip.Prefix{}
		doc.Interfaces = append(doc.Interfaces, i)
	}
	p := c.newPod("r1", doc)
	c.startAll()
	var names []string
	for _, line := range strings.Split(strings.TrimSpace(p.in("ip -o link show")), "\n") {
		names = append(names, strings.SplitN(strings.Fields(line)[1], "@", 2)[0])
	}
	if got := strings.Join(names, " "); got != "lo: eth0 eth1 eth2 eth3 eth4 eth5" && got != "lo eth0 eth1 eth2 eth3 eth4 eth5" {
		t.Errorf("interfaces %s", got)
	}
	for what, want := range map[string]string{
		"ip rule":                  "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n",
		"ip -6 rule":               "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n",
		"nft list ruleset":         "",
		"ip route show table main": "default via 172.20.20.1 dev eth0 \n172.20.20.0/24 dev eth0 proto kernel scope link src 172.20.20.11 \n",
		"ss -Hlntu":                "",
		"cat /proc/net/packet":     "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n",
		"sysctl -n net.ipv4.ip_early_demux net.ipv4.conf.eth0.accept_local net.ipv4.conf.all.src_valid_mark": "1\n0\n0\n",
	} {
		if got := p.in(what); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
		}
	}
	if got := p.in("ip route show table all"); strings.Contains(got, "148") || strings.Contains(got, "10.244") {
		t.Errorf("routes of the sidecar's: %s", got)
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
	time.Sleep(1500 * time.Millisecond) // time in which the others could go on
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
			if out := p.in("ip route show table all") + p.in("ip -6 route show table all"); strings.Contains(out, "10.244") || strings.Contains(out, "fd00:244") {
				t.Errorf("the device has routes of the cluster's: %s", out)
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

// FRR in a router with five links sees what it would see in a containerlab node.
func TestRouterSeesItsOwn(t *testing.T) {
	needFRR(t)
	c := newCluster(t)
	doc := mgmtDoc(11)
	for n := 1; n <= 5; n++ {
		i := wired(iface("r1", fmt.Sprintf("eth%d", n), n), n, "r2")
		i.IPv4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(n), 1}), 24)
		doc.Interfaces = append(doc.Interfaces, i)
	}
	p := c.newPod("r1", doc)
	c.startAll()
	r := p.route("")
	eventually(t, "the interfaces in show interface brief", func() error {
		var names []string
		for line := range strings.Lines(r.show("interface brief")) {
			f := strings.Fields(line)
			if len(f) > 1 && (f[1] == "up" || f[1] == "down") {
				names = append(names, f[0])
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "eth0 eth1 eth2 eth3 eth4 eth5 lo" {
			return fmt.Errorf("they are %s", got)
		}
		return nil
	})
	for _, command := range []string{"evpn vni", "vrf"} {
		if out := strings.TrimSpace(r.show(command)); strings.Contains(out, "vrf ") || strings.Count(out, "\n") > 0 {
			t.Errorf("show %s:\n%s", command, out)
		}
	}
	// What redistribute connected takes along.
	for line := range strings.Lines(r.show("ip route connected")) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "C>") && !strings.HasPrefix(f[1], "10.9.") && f[1] != "172.20.20.0/24" {
			t.Errorf("a connected network: %s", line)
		}
	}
}
