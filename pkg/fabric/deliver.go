package fabric

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// origin is where generated files come from, for messages.
const origin = "fabric"

// configure writes the configuration of each member.
func (s *stage) configure() {
	for _, n := range s.plan.Nodes {
		if err := s.configureNode(n); err != nil {
			s.diags.Errorf(CodeUnsupported, n.node.Pos, "report this as a bug of c9s", "%v", err)
		}
	}
}

func (s *stage) configureNode(n *Node) (err error) {
	if n.Config, err = n.render(n.kind.template); err != nil {
		return err
	}
	if n.kind.addresses {
		n.dropAddresses()
	}
	if n.kind.exec {
		n.node.Exec = append([]lab.Exec{{Argv: []string{"bash", "-c", n.Config}, Raw: "fabric: addresses and routing"}}, n.node.Exec...)
		return nil
	}
	if n.kind.mounts == nil {
		s.startupConfig(n)
	} else if err := s.mount(n); err != nil {
		return err
	}
	if n.OwnConfig || n.kind.script == "" || len(n.Services) == 0 {
		return nil
	}
	script, err := n.render(n.kind.script)
	if err != nil {
		return err
	}
	n.node.Exec = append([]lab.Exec{{Argv: []string{"sh", "-c", script}, Raw: fmt.Sprintf("fabric: bridges and tunnels of VLAN %s", n.VLANs())}}, n.node.Exec...)
	return nil
}

// dropAddresses leaves the addresses of links to the configuration: the Linux interface is only
// the wire of the device's port.
func (n *Node) dropAddresses() {
	for _, e := range n.node.Endpoints {
		link := slices.ContainsFunc(n.Links, func(l Link) bool { return l.Interface == e.Interface })
		if link || slices.ContainsFunc(n.Access, func(p AccessPort) bool { return p.Interface == e.Interface }) {
			e.IPv4 = netip.Prefix{}
		}
	}
}

// startupConfig sets the startup-config of a node, or appends to its own.
func (s *stage) startupConfig(n *Node) {
	own := n.node.StartupConfig
	switch {
	case own == nil:
		ref := s.lab.AddFile([]byte(n.Config), 0o644, origin)
		n.node.StartupConfig = &lab.Config{File: ref, Name: n.Name + ".cfg", Verbatim: true}
	case s.merges(n):
		own.File = s.merged(n, own.File)
	default:
		s.keep(n)
	}
}

// mount mounts the files of a node whose kind reads no startup-config.
func (s *stage) mount(n *Node) error {
	for _, target := range slices.Sorted(maps.Keys(n.kind.mounts)) {
		at := slices.IndexFunc(n.node.Mounts, func(m lab.Mount) bool {
			return m.Target == target || strings.HasPrefix(target, strings.TrimSuffix(m.Target, "/")+"/")
		})
		text := n.Config
		if name := n.kind.mounts[target]; name != "" {
			if at >= 0 {
				continue // the topology's own
			}
			var err error
			if text, err = n.render(name); err != nil {
				return err
			}
		} else if at >= 0 {
			if own := &n.node.Mounts[at]; own.File != nil && s.merges(n) {
				ref := s.merged(n, *own.File)
				own.File = &ref
				continue
			}
			s.keep(n)
			continue
		}
		ref := s.lab.AddFile([]byte(text), 0o644, origin)
		n.node.Mounts = append(n.node.Mounts, lab.Mount{Target: target, Pos: n.node.Pos, File: &ref})
	}
	slices.SortFunc(n.node.Mounts, func(a, b lab.Mount) int { return strings.Compare(a.Target, b.Target) })
	if n.node.Sysctls["net.ipv4.ip_forward"] == "" {
		if n.node.Sysctls == nil {
			n.node.Sysctls = map[string]string{}
		}
		n.node.Sysctls["net.ipv4.ip_forward"] = "1"
	}
	return nil
}

// merges reports whether the configuration is appended to the node's own.
func (s *stage) merges(n *Node) bool { return s.file.Merge.Value && n.kind.merge }

// merged is the node's own configuration with the generated one after it.
func (s *stage) merged(n *Node, own lab.FileRef) lab.FileRef {
	text := string(s.lab.Files[own.Digest])
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	ref := s.lab.AddFile([]byte(text+n.Config), own.Mode, own.Origin)
	ref.Secret = own.Secret
	return ref
}

// keep leaves a node its own configuration.
func (s *stage) keep(n *Node) {
	n.OwnConfig = true
	hint := "remove it to use the configuration of the fabric"
	if n.kind.merge {
		hint += ", or set \"merge: true\" in the fabric file to append that"
	}
	s.diags.Warnf(CodeOwnConfig, n.node.Pos, hint, "node %q keeps its own startup-config; the fabric sets only the addresses of its links", n.Name)
}

func command(argv []string) lab.Exec {
	return lab.Exec{Argv: argv, Raw: strings.Join(argv, " ")}
}
