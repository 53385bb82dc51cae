package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// testLab builds labs the way compile does, with plans next to them.
type testLab struct {
	*lab.Lab
	plans map[string]*plan.Plan
	opts  Options
}

func newTestLab(name string) *testLab {
	return &testLab{
		Lab: &lab.Lab{
			Version: lab.Version, Name: name, Prefix: "clab", Namespace: contract.Slug(name, 63), Source: "topo.clab.yml",
			Mgmt: lab.Mgmt{
				Network: "clab", MTU: 1500, ExternalAccess: true,
				IPv4: lab.MgmtFamily{Subnet: netip.MustParsePrefix("172.20.0.0/16"), Gateway: netip.MustParseAddr("172.20.0.1")},
				IPv6: lab.MgmtFamily{Subnet: netip.MustParsePrefix("3fff:172:20:20::/64"), Gateway: netip.MustParseAddr("3fff:172:20:20::1")},
			},
			Allocations: lab.Allocations{Version: lab.AllocationsVersion, Pools: map[string]map[string]string{}},
			Files:       map[lab.Digest][]byte{},
		},
		plans: map[string]*plan.Plan{},
		opts:  Options{Image: "ghcr.io/c9s-lab/c9s:1.0.0", Version: "1.0.0"},
	}
}

// node adds a node in a Pod of its own, with a plan of one plain container.
func (l *testLab) node(name, kind string) (*lab.Node, *plan.Plan) {
	i := len(l.Nodes) + 1
	id := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	n := &lab.Node{
		Name: name, ID: id, Kind: kind, WrittenKind: kind, Hostname: name, Index: i,
		Pos:      diag.Pos{File: l.Source, Line: 10 * i, Column: 5},
		LongName: "clab-" + l.Name + "-" + name, FQDN: name + "." + l.Name + ".io",
		MgmtIPv4: nth(l.Mgmt.IPv4.Subnet, i+1), MgmtIPv6: nth(l.Mgmt.IPv6.Subnet, i+1),
	}
	l.Nodes = append(l.Nodes, n)
	l.Pods = append(l.Pods, lab.Pod{Name: id, Nodes: []string{name}})
	l.claim("mgmt-ipv4", name, n.MgmtIPv4.String())
	l.claim("mgmt-ipv6", name, n.MgmtIPv6.String())
	p := &plan.Plan{
		Version: plan.Version, Node: name, Kind: kind, Planner: "builtin/0.79.0",
		Containers: []plan.Container{{Image: "example.com/" + kind + ":1", Privileged: true, TTY: true, Stdin: true}},
	}
	l.plans[name] = p
	return n, p
}

func nth(p netip.Prefix, n int) netip.Addr {
	b := p.Addr().AsSlice()
	for i := len(b) - 1; n > 0; i-- {
		n += int(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// bridge adds a bridge node.
func (l *testLab) bridge(name string) *lab.Node {
	n, p := l.node(name, "bridge")
	n.RootNamespace, n.MgmtIPv4, n.MgmtIPv6 = true, netip.Addr{}, netip.Addr{}
	p.Containers = nil
	return n
}

// join moves a node into another's Pod (network-mode: container:<primary>).
func (l *testLab) join(name, primary string) {
	node := l.byName(name)
	node.NetworkMode, node.NetworkNode = lab.NetworkContainer, primary
	node.MgmtIPv4, node.MgmtIPv6 = netip.Addr{}, netip.Addr{}
	pods := l.Pods[:0]
	for _, pod := range l.Pods {
		if pod.Nodes[0] == name {
			continue
		}
		if pod.Nodes[0] == primary {
			pod.Nodes = append(pod.Nodes, name)
		}
		pods = append(pods, pod)
	}
	l.Pods = pods
}

// byName does not use Lab.Node, which remembers the nodes that it first saw.
func (l *testLab) byName(name string) *lab.Node {
	for _, n := range l.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// link joins "a:eth1" and "b:eth1"; one end makes a link of another type.
func (l *testLab) link(kind lab.LinkType, ends ...string) *lab.Link {
	link := &lab.Link{Type: kind, MTU: 9500, Pos: diag.Pos{File: l.Source, Line: 1000 + len(l.Links), Column: 7}}
	if len(ends) == 2 {
		link.WireID = lab.WireID(len(l.Links) + 1)
		l.claim("wire", strings.Join(ends, " "), fmt.Sprint(link.WireID))
	}
	for _, end := range ends {
		name, iface, _ := strings.Cut(end, ":")
		n := l.byName(name)
		sum := sha256.Sum256([]byte(end))
		ep := &lab.Endpoint{
			Node: name, Interface: iface, MAC: fmt.Sprintf("aa:c1:ab:%02x:%02x:%02x", sum[0], sum[1], sum[2]),
			Pos: link.Pos, Bridge: n.RootNamespace, Link: len(l.Links),
		}
		l.claim("mac", end, ep.MAC)
		link.Endpoints = append(link.Endpoints, ep)
		n.Endpoints = append(n.Endpoints, ep)
	}
	l.Links = append(l.Links, link)
	return link
}

func (l *testLab) claim(pool, owner, text string) {
	if l.Allocations.Pools[pool] == nil {
		l.Allocations.Pools[pool] = map[string]string{}
	}
	l.Allocations.Pools[pool][owner] = text
}

// file puts bytes into the lab.
func (l *testLab) file(data []byte, secret bool) *lab.FileRef {
	sum := sha256.Sum256(data)
	digest := lab.Digest("sha256:" + hex.EncodeToString(sum[:]))
	l.Files[digest] = data
	return &lab.FileRef{Digest: digest, Size: int64(len(data)), Mode: 0o644, Secret: secret}
}

func (l *testLab) render(t testing.TB) (*Output, []diag.Diagnostic) {
	t.Helper()
	return Render(l.Lab, l.plans, l.opts)
}

// mustRender fails the test on any error.
func (l *testLab) mustRender(t testing.TB) *Output {
	t.Helper()
	out, diags := l.render(t)
	if out == nil {
		t.Fatalf("not rendered: %s", diagText(diags))
	}
	return out
}

func diagText(diags []diag.Diagnostic) string {
	var b strings.Builder
	for _, d := range diags {
		b.WriteString(d.String() + "\n")
		if d.Hint != "" {
			b.WriteString("    " + d.Hint + "\n")
		}
	}
	return b.String()
}

func stream(t testing.TB, objs []manifest.Object, format manifest.Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := manifest.WriteStream(&b, objs, format); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// golden compares with testdata/<name>, or rewrites it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (make it with -update)", err)
	}
	if bytes.Equal(want, got) {
		return
	}
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range max(len(wantLines), len(gotLines)) {
		w, g := "<end>", "<end>"
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if w != g {
			t.Fatalf("%s differs at line %d:\nwant %s\ngot  %s", file, i+1, w, g)
		}
	}
}
