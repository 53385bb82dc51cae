package podnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cniPlugins builds the CNI project's reference plugins, in the versions of the test
// cluster, and returns their folder.
func cniPlugins(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"programs.mod": "go.mod", "programs.sum": "go.sum"} {
		data, err := os.ReadFile(filepath.Join("../../test/cluster/modules", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"build", "-mod=readonly", "-o", "bin/"}
	for _, name := range []string{"main/bridge", "main/ptp", "main/macvlan", "ipam/host-local"} {
		args = append(args, "github.com/containernetworking/plugins/plugins/"+name)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the CNI plugins: %v: %s", err, out)
	}
	return filepath.Join(dir, "bin")
}

// cniNetwork is a network of a plugin's.
type cniNetwork struct {
	t       *testing.T
	plugins string
	conf    map[string]any
	results map[*pod]json.RawMessage
}

// do runs the plugin on the worker, as the container runtime does.
func (n *cniNetwork) do(command string, p *pod) ([]byte, error) {
	conf := map[string]any{}
	for k, v := range n.conf {
		conf[k] = v
	}
	if r, ok := n.results[p]; ok {
		conf["prevResult"] = r
	}
	data, err := json.Marshal(conf)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("ip", "netns", "exec", p.c.name, filepath.Join(n.plugins, n.conf["type"].(string)))
	cmd.Env = []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + p.name, "CNI_NETNS=/run/netns/" + p.ns, "CNI_IFNAME=eth0",
		"CNI_PATH=" + n.plugins, "PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdin = strings.NewReader(string(data))
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("CNI %s for %s: %w: %s", command, p.name, err, out)
	}
	return out, err
}

// plug is a Pod's network as the plugin makes it.
func (n *cniNetwork) plug(p *pod) {
	n.t.Helper()
	p.makeNS()
	out, err := n.do("ADD", p)
	if err != nil {
		n.t.Fatal(err)
	}
	n.results[p] = out
	var result struct {
		IPs []struct{ Address netip.Prefix }
	}
	if err := json.Unmarshal(out, &result); err != nil {
		n.t.Fatal(err)
	}
	p.ip6, p.only = "fd00:245::ffff", "IPv4 only"
	for _, ip := range result.IPs {
		if a := ip.Address.Addr(); a.Is4() {
			p.ip4 = a.String()
		} else {
			p.ip6, p.only = a.String(), ""
		}
	}
}

// plainRoutes are the routes of the main table without what does not say where they lead.
func plainRoutes(text, dev string) (out []string) {
	for line := range strings.Lines(text) {
		var words []string
		for f := strings.Fields(line); len(f) > 0; f = f[1:] {
			switch f[0] {
			case "proto", "scope", "metric", "pref":
				f = f[1:]
			case "onlink":
			default:
				words = append(words, f[0])
			}
		}
		if line := strings.Join(words, " "); line != "" && !strings.HasPrefix(line, "fe80::/64") && !strings.HasPrefix(line, "multicast") {
			out = append(out, strings.ReplaceAll(line, "dev "+dev, "dev c9s0"))
		}
	}
	slices.Sort(out)
	return out
}

// The reference plugins before, beside and after the sidecar: what they set up moves with
// the interface, their CHECK does no harm, and their DEL at the Pod's end leaves nothing.
func TestReferencePlugins(t *testing.T) {
	needRoot(t)
	plugins := cniPlugins(t)
	const v4, v6 = "10.245.0.0/24", "fd00:245::/64"
	type object = map[string]any
	ranges := func(subnets ...string) (out [][]object) {
		for _, s := range subnets {
			out = append(out, []object{{"subnet": s}})
		}
		return out
	}
	routes := func(dst ...string) (out []object) {
		for _, d := range dst {
			out = append(out, object{"dst": d})
		}
		return out
	}
	for name, c := range map[string]struct {
		conf object
		ipam object
		mtu  string
		// setup prepares the worker, out is what devices reach there.
		setup []string
		out   []string
	}{
		"bridge, several routes": {
			conf: object{"type": "bridge", "bridge": "cni0", "isGateway": true, "mtu": 1450}, mtu: "1450",
			ipam: object{"ranges": ranges(v4), "routes": routes("0.0.0.0/0", "10.96.0.0/12", "192.0.2.0/24")},
			out:  []string{"10.245.0.1"},
		},
		"bridge, dual stack, jumbo": {
			conf: object{"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "mtu": 9000, "hairpinMode": true}, mtu: "9000",
			ipam: object{"ranges": ranges(v4, v6)},
			out:  []string{"10.245.0.1", "fd00:245::1"},
		},
		"ptp": {
			conf: object{"type": "ptp", "mtu": 1450}, mtu: "1450",
			ipam: object{"ranges": ranges(v4), "routes": routes("0.0.0.0/0")},
			out:  []string{"10.245.0.1"},
		},
		"ptp, dual stack, jumbo": {
			conf: object{"type": "ptp", "mtu": 9000}, mtu: "9000",
			ipam: object{"ranges": ranges(v4, v6), "routes": routes("0.0.0.0/0", "::/0")},
			out:  []string{"10.245.0.1", "fd00:245::1"},
		},
		"macvlan": {
			conf: object{"type": "macvlan", "master": "v0", "mode": "bridge", "mtu": 1450}, mtu: "1450",
			ipam:  object{"ranges": ranges(v4), "routes": routes("0.0.0.0/0")},
			setup: []string{"ip link add v0 type veth peer name v1", "ip link set v0 up", "ip link set v1 master br0 up", "ip addr add 10.245.0.1/24 dev br0"},
			out:   []string{"10.245.0.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t)
			for _, line := range c.setup {
				cl.in(line)
			}
			leases := t.TempDir()
			c.conf["cniVersion"], c.conf["name"] = "1.0.0", "pods"
			c.ipam["type"], c.ipam["dataDir"] = "host-local", leases
			c.conf["ipam"] = c.ipam
			n := &cniNetwork{t: t, plugins: plugins, conf: c.conf, results: map[*pod]json.RawMessage{}}
			before := links(cl.in("ip -o link"))
			a, b := cl.newPodBy("r1", mgmtDoc(11), n.plug), cl.newPodBy("r2", mgmtDoc(12), n.plug)
			directory(a, b)
			for _, p := range cl.pods {
				if _, err := n.do("CHECK", p); err != nil {
					t.Errorf("before the sidecar: %v", err)
				}
			}
			made := slices.Concat(plainRoutes(a.in("ip route"), "eth0"), plainRoutes(a.in("ip -6 route"), "eth0"))
			cl.startAll()
			works := func() error {
				err := errors.Join(ping(a.ns, "172.20.20.12", sure), ping(b.ns, "3fff:172:20:20::b", sure))
				for _, to := range c.out {
					err = errors.Join(err, ping(a.ns, to, sure), ping(b.ns, to, sure))
				}
				return err
			}
			if err := works(); err != nil {
				t.Error(err)
			}
			if got := slices.Concat(plainRoutes(a.inOwn("ip route"), "c9s0"), plainRoutes(a.inOwn("ip -6 route"), "c9s0")); !slices.Equal(got, made) {
				t.Errorf("the plugin's routes were\n%s\nand are\n%s", strings.Join(made, "\n"), strings.Join(got, "\n"))
			}
			if out := a.inOwn("ip link show c9s0"); !strings.Contains(out, "mtu "+c.mtu+" ") {
				t.Errorf("the MTU is %s: %s", c.mtu, out)
			}
			if got := links(a.in("ip -o link")); !slices.Equal(got, []string{"eth0", "lo"}) {
				t.Errorf("the device has the interfaces %v", got)
			}
			if _, err := n.do("CHECK", a); err == nil {
				t.Error("CHECK finds the plugin's interface in the Pod's namespace")
			}
			if err := works(); err != nil {
				t.Errorf("after CHECK: %v", err)
			}
			for _, p := range cl.pods {
				p.end()
				for range 2 { // the runtime may ask again
					if _, err := n.do("DEL", p); err != nil {
						t.Error(err)
					}
				}
			}
			eventually(t, "the worker is as before", func() error {
				if now := slices.DeleteFunc(links(cl.in("ip -o link")), func(name string) bool { return name == "cni0" }); !slices.Equal(now, before) {
					return fmt.Errorf("it has %v and had %v", now, before)
				}
				return nil
			})
			if left, _ := filepath.Glob(filepath.Join(leases, "pods", "[0-9a-f]*[.:]*")); len(left) > 0 {
				t.Errorf("addresses are still leased: %v", left)
			}
		})
	}
}

// links are the names in what ip -o link prints.
func links(text string) (out []string) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 {
			name, _, _ := strings.Cut(strings.TrimSuffix(f[1], ":"), "@")
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
