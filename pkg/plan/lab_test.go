package plan

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

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

// connect gives the node ends with these Linux names; "eth1@10.0.0.1/24" has an
// address.
func connect(l *lab.Lab, n *lab.Node, names ...string) {
	for _, name := range names {
		name, addr, _ := strings.Cut(name, "@")
		e := &lab.Endpoint{Node: n.Name, Interface: name, Link: len(l.Links), MAC: fmt.Sprintf("aa:c1:ab:00:00:%02x", len(l.Links)+1)}
		if addr != "" {
			e.IPv4 = netip.MustParsePrefix(addr)
		}
		n.Endpoints = append(n.Endpoints, e)
		l.Links = append(l.Links, &lab.Link{Type: lab.LinkVeth, MTU: 9500, Endpoints: []*lab.Endpoint{e}})
	}
}

// planOf plans the lab's first node.
func planOf(t *testing.T, l *lab.Lab, options ...Option) *Plan {
	t.Helper()
	p, err := NewBuiltin(kinds.Builtin(), options...).Plan(context.Background(), l, l.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fileOf finds a file of a plan.
func fileOf(p *Plan, path string) *File {
	for i := range p.Files {
		if p.Files[i].Path == path {
			return &p.Files[i]
		}
	}
	return nil
}
