package compile

import (
	"maps"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Releases are the releases of containerlab whose topology files differ, oldest first.
// Compile reads files of all of them.
var Releases = []string{"0.79", "0.80", "0.81"}

// before reports whether the topology must suit a release older than since.
func (c *compiler) before(since string) bool { return c.o.For != "" && c.o.For < since }

// from reports whether the topology must suit a release, and that release is since or
// newer.
func (c *compiler) from(since string) bool { return c.o.For != "" && c.o.For >= since }

// lacks reports something that the release in Options.For does not accept, once for each
// place. The message continues "containerlab 0.79".
func (c *compiler) lacks(pos diag.Pos, hint, format string, args ...any) {
	if c.keys.first(pos) {
		c.diags.Errorf(CodeRelease, pos, hint, "containerlab "+c.o.For+" "+format, args...)
	}
}

// replaced reports an old form that containerlab no longer reads since a release: a
// warning, an error if the topology must suit such a release, and nothing if it must suit
// an older one.
func (c *compiler) replaced(since string, pos diag.Pos, hint, format string, args ...any) {
	switch {
	case c.before(since) || !c.keys.first(pos):
	case c.o.For == "":
		c.diags.Warnf(CodeDeprecated, pos, hint, format, args...)
	default:
		c.diags.Errorf(CodeRelease, pos, hint, format, args...)
	}
}

// checkRelease reports what the release in Options.For does not accept, as far as it was
// not reported where the parts of the topology are compiled.
func (c *compiler) checkRelease() {
	if c.o.For == "" {
		return
	}
	for _, u := range c.f.Newer {
		found, _ := topology.Lookup(u.Field)
		if len(found) > 0 && c.before(found[0].Since()) {
			c.lacks(u.Pos, "remove it", "does not have the key %s (since %s)", lastPart(u.Field), found[0].Since())
		}
	}
	if m := c.f.Mgmt; m != nil && m.List && c.before("0.80") {
		c.lacks(m.Pos, "write one mapping under mgmt", "reads no list under mgmt (since 0.80)")
	}
	t := c.f.Topology
	defs := slices.Concat(t.Kinds.Items, t.Groups.Items, t.Nodes.Items, []topology.Def{{Node: t.Defaults}})
	for _, def := range defs {
		if def.Node != nil {
			c.checkReleaseKeys(def.Node)
			c.checkReleaseExtras(def.Node.Extras)
		}
	}
	for n := range c.eachNode() {
		if n.kind != nil {
			c.checkReleaseNode(n)
		}
	}
}

// checkReleaseKeys reports keys of kinds that are newer than the release.
func (c *compiler) checkReleaseKeys(d *topology.NodeDef) {
	for _, key := range d.Keys {
		oldest := ""
		for _, name := range c.o.Kinds.KindsWithKey(key.Name) {
			k, _ := c.o.Kinds.Lookup(name)
			if since := k.Keys[key.Name].Since; since != "" && (oldest == "" || since < oldest) {
				oldest = since
			}
		}
		if oldest != "" && c.before(oldest) {
			c.lacks(key.Pos, "remove it, or see `c9s explain "+key.Name+"` for its old form", "does not have the key %s (since %s)", key.Name, oldest)
		}
	}
}

// checkReleaseExtras reports extras, which containerlab 0.81 rejects. Those with a new
// form have been reported already.
func (c *compiler) checkReleaseExtras(e *topology.Extras) {
	if e == nil || !c.from("0.81") {
		return
	}
	places := map[string]diag.Pos{
		"srl-agents": e.SRLAgents.Pos, "mysocket-proxy": e.MysocketProxy.Pos, "ceos-copy-to-flash": e.CEOSCopyToFlash.Pos,
	}
	if e.K8sKind != nil {
		places["k8s_kind"] = e.K8sKind.Pos
	}
	if e.FRR != nil && e.FRR.Daemons != nil {
		places["frr"] = e.FRR.Daemons.Pos
	}
	for _, name := range slices.Sorted(maps.Keys(places)) {
		if places[name].Line > 0 {
			c.lacks(places[name], "remove it", "rejects extras, here extras.%s", name)
		}
	}
}

// checkReleaseNode reports what a node has that the release does not know.
func (c *compiler) checkReleaseNode(n *node) {
	k := n.kind
	kind := n.res.str(func(d *topology.NodeDef) topology.Str { return d.Kind })
	if c.before(k.Since) {
		c.lacks(kind.Pos, "use kind linux, or a newer containerlab", "does not have the kind %s (since %s)", n.WrittenKind, k.Since)
		return
	}
	if _, block, ok := kindBlock(c.f.Topology, n.res.kind); ok && block.Name != n.res.kind && c.before("0.80") {
		c.lacks(block.Pos, "write "+n.res.kind, "does not apply topology.kinds.%s to nodes of kind %s, since the case differs", block.Name, n.res.kind)
	}
	typ := n.res.str(func(d *topology.NodeDef) topology.Str { return d.Type })
	name := n.Type
	if k.Types.IgnoreCase {
		name = strings.ToLower(name)
	}
	if since := k.Types.Values[name]["since"]; name != "" && c.before(since) {
		c.lacks(typ.Pos, "choose another type", "does not have the type %s of kind %s (since %s)", n.Type, k.Name, since)
	}
	if found := k.Types.FromImage(n.Image); n.Type == "" && found != "" && c.before("0.80") {
		c.lacks(n.Pos, "write type: "+found, "does not take the type of node %q from its image", n.Name)
	}
	for _, e := range n.Endpoints {
		if e.Alias != "" && c.before(k.Interfaces.Since) {
			c.lacks(e.Pos, "write "+e.Interface, "does not have the interface name %s of kind %s (since %s)", e.Alias, k.Name, k.Interfaces.Since)
		}
	}
	c.checkReleaseComponents(n)
}

// checkReleaseComponents reports cards of kinds that have none.
func (c *compiler) checkReleaseComponents(n *node) {
	list := first(&n.res, func(d *topology.NodeDef) *topology.ComponentList { return d.Components })
	if list == nil || len(list.Items) == 0 {
		return
	}
	switch pos := list.Items[0].Pos; {
	case n.kind.Name == "nokia_srlinux" && c.before("0.80"):
		c.lacks(pos, "remove components", "ignores components of kind %s", n.WrittenKind)
	case !n.kind.Components && c.from("0.80"):
		c.lacks(pos, "set components only where nodes of a kind with cards inherit them", "rejects components of kind %s", n.WrittenKind)
	case n.kind.Name != "nokia_srsim" && c.from("0.80"):
		for _, comp := range list.Items {
			if comp.Env.Set {
				c.lacks(comp.Env.Pos, "remove it", "rejects env of a component of kind %s", n.WrittenKind)
			}
		}
	}
}

// checkComponents warns of cards of a kind that has none. Containerlab ignores them
// until 0.79 and rejects them since 0.80.
func (c *compiler) checkComponents(n *node, list *topology.ComponentList) {
	if c.o.For == "" && n.kind != nil && !n.kind.Components && len(list.Items) > 0 && c.keys.first(list.Items[0].Pos) {
		c.diags.Warnf(CodeFieldIgnored, list.Items[0].Pos, "remove components, or set them only where nodes of a kind with cards inherit them",
			"components have no effect, since kind %q of node %q has no cards; containerlab rejects them from 0.80 on", n.WrittenKind, n.Name)
	}
}
