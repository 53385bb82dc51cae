package compile

import (
	"strings"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// compileNetworkModes decides which nodes share a namespace.
func (c *compiler) compileNetworkModes() {
	modes := map[*node]topology.Str{}
	for n := range c.eachNode() {
		s := n.res.str(func(d *topology.NodeDef) topology.Str { return d.NetworkMode })
		modes[n] = s
		mode, target, _ := strings.Cut(s.Value, ":")
		switch strings.ToLower(strings.TrimSpace(mode)) {
		case "none":
			n.NetworkMode = lab.NetworkNone
		case "host":
			n.NetworkMode = lab.NetworkHost
			if !n.RootNamespace {
				c.diags.Warnf(CodeNetworkMode, s.Pos, "select the worker with nodeSelector in c9s.yaml", "node %q uses the network of its worker and sees the worker's interfaces", n.Name)
			}
		case "container":
			n.NetworkMode, n.NetworkNode = lab.NetworkContainer, c.networkTarget(target)
		case "", "bridge", "default":
		default:
			c.diags.Warnf(CodeNetworkMode, s.Pos, "use none, host or container:NODE, or remove it", "unknown network-mode %q of node %q; the node uses the management network, as in containerlab", s.Value, n.Name)
		}
		if n.RootNamespace && n.NetworkMode != lab.NetworkContainer {
			n.NetworkMode = lab.NetworkMgmt
		}
		if n.NetworkMode == lab.NetworkHost && n.RootNamespace {
			n.NetworkMode = lab.NetworkMgmt
		}
	}
	for n := range c.eachNode() {
		if n.NetworkMode != lab.NetworkContainer {
			continue
		}
		s := modes[n]
		primary, loop := c.primary(n)
		switch {
		case n.NetworkNode == "":
			c.diags.Errorf(CodeNetworkMode, s.Pos, "write container:NODE", "network-mode of node %q names no node", n.Name)
		case loop != nil:
			c.diags.Errorf(CodeCycle, s.Pos, "give one of the nodes its own network", "network-mode of node %q leads to no network of its own: %s", n.Name, strings.Join(loop, " -> "))
		case primary == nil:
			c.diags.Errorf(CodeUnknownNode, s.Pos, c.nodeHint(n.NetworkNode), "network-mode of node %q names %q, which is not a node of this topology: a Pod cannot join a container that runs outside the lab", n.Name, n.NetworkNode)
		case primary.RootNamespace:
			c.diags.Errorf(CodeNetworkMode, s.Pos, "name a node with a container", "network-mode of node %q names %q, which has no container", n.Name, primary.Name)
		case primary.NetworkMode == lab.NetworkHost:
			n.NetworkMode, n.NetworkNode = lab.NetworkHost, ""
		default:
			n.NetworkNode = primary.Name
			continue
		}
		if n.NetworkMode == lab.NetworkContainer {
			n.NetworkMode, n.NetworkNode = lab.NetworkMgmt, ""
		}
	}
}

// networkTarget is the node that container:X means: a node's name, or its long
// name.
func (c *compiler) networkTarget(target string) string {
	if c.nodes[target] != nil {
		return target
	}
	for _, n := range c.order {
		if n.LongName == target {
			return n.Name
		}
	}
	return target
}

// primary follows network-mode to the node that owns the namespace. If there is none
// since it runs in a cycle, loop is the way.
func (c *compiler) primary(n *node) (p *node, loop []string) {
	seen := map[*node]bool{}
	for n != nil && n.NetworkMode == lab.NetworkContainer {
		loop = append(loop, n.Name)
		if seen[n] {
			return nil, loop
		}
		seen[n] = true
		n = c.nodes[n.NetworkNode]
	}
	return n, nil
}

// nodeHint suggests a node for a name that does not exist.
func (c *compiler) nodeHint(name string) string {
	names := c.nodeNames()
	if near := strictyaml.Nearest(name, names); near != "" {
		return "did you mean \"" + near + "\"?"
	}
	if len(names) > 12 {
		return "name a node of topology.nodes"
	}
	return "name a node of topology.nodes: " + strings.Join(names, ", ")
}

func (c *compiler) nodeNames() []string {
	names := make([]string, 0, len(c.order))
	for _, n := range c.order {
		names = append(names, n.Name)
	}
	return names
}
