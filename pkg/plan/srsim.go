package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// An SR-SIM node is one of three: integrated (no card, or one that overrides what
// the chassis comes with), a chassis (a container per card), or a card by itself,
// which says so with NOKIA_SROS_SLOT and shares the namespace of another node.

// srsimChassis reports whether the node is a chassis: one of modular type, or of an
// integrated type that takes two control cards and has both.
func (d *draft) srsimChassis() bool {
	cards := d.node.Components
	if len(cards) < 2 || d.data.TypeData["card"] == "" {
		return len(cards) > 1
	}
	slots := make([]string, 0, len(cards))
	for _, c := range cards {
		slots = append(slots, strings.ToUpper(strings.TrimSpace(c.Slot)))
	}
	slices.Sort(slots)
	return strings.Join(slots, " ") == d.data.TypeData["slots"]
}

// srsimPrepare sets the node's slot and the environment of its cards.
func srsimPrepare(d *draft) {
	x, n := d.data, d.node
	x.TypeData = maps.Clone(x.TypeData)
	if x.TypeData == nil {
		x.TypeData = map[string]string{}
	}
	x.Components = slices.Clone(n.Components)
	for i := range x.Components {
		x.Components[i].Slot = strings.ToUpper(strings.TrimSpace(x.Components[i].Slot))
	}
	d.srsimDuplicateSlots()
	env := map[string]string{}
	if !d.srsimChassis() {
		env = d.srsimOverride()
	}
	for k, v := range env {
		if _, ok := x.Env[k]; !ok {
			x.Env[k] = v
		}
	}
	slot := cmp.Or(x.Env["NOKIA_SROS_SLOT"], "A")
	_, notControl := strconv.Atoi(slot)
	if notControl != nil && !d.srsimChassis() {
		x.TypeData["control"] = slot
	}
	if d.srsimChassis() {
		x.TypeData["chassis"] = "yes"
	}
	if strings.Contains(strings.ToLower(x.NodeType), "sar-hm") {
		if mode := strings.ToLower(x.Env["CLAB_SROS_CONFIG_MODE"]); mode != "classic" && mode != "mixed" {
			x.Env["CLAB_SROS_CONFIG_MODE"] = "classic"
		}
	}
}

func (d *draft) srsimDuplicateSlots() {
	seen := map[string]bool{}
	for _, c := range d.data.Components {
		if seen[c.Slot] {
			d.problems.Errorf(kinds.CodeComponents, d.node.Pos, "give each card its own slot", "node %q: slot %q is there twice", d.node.Name, c.Slot)
		}
		seen[c.Slot] = true
	}
}

// srsimOverride returns the environment of the one card that an integrated node lists.
func (d *draft) srsimOverride() map[string]string {
	x, n := d.data, d.node
	switch {
	case len(x.Components) == 0:
		return nil
	case len(x.Components) > 1:
		d.problems.Errorf(kinds.CodeComponents, n.Pos, "leave one component, or choose a modular type",
			"node %q: type %s is integrated and takes one component", n.Name, x.NodeType)
		return nil
	}
	c := x.Components[0]
	slot := cmp.Or(c.Slot, "A")
	allowed := strings.Fields(cmp.Or(x.TypeData["slots"], "A"))
	if !slices.Contains(allowed, slot) {
		d.problems.Errorf(kinds.CodeComponents, n.Pos, "use slot "+strings.Join(allowed, " or ")+", or leave slot out",
			"node %q: type %s has no slot %s by itself", n.Name, x.NodeType, slot)
	}
	env := map[string]string{"NOKIA_SROS_SLOT": slot}
	if c.Type != "" {
		if x.TypeData["card"] != "" && len(allowed) == 1 {
			d.problems.Errorf(kinds.CodeComponents, n.Pos, "leave out the component's type",
				"node %q: the card of type %s cannot be changed", n.Name, x.NodeType)
		}
		env["NOKIA_SROS_CARD"] = c.Type
	}
	for _, m := range c.MDA {
		env[fmt.Sprintf("NOKIA_SROS_MDA_%d", m.Slot)] = m.Type
	}
	maps.Copy(env, c.Env)
	return env
}

// srsimCards replaces the node's container with one per card, line cards first.
func srsimCards(d *draft) {
	if !d.srsimChassis() {
		return
	}
	base := d.plan.Containers[0]
	wait := d.plan.Steps
	d.plan.Containers, d.plan.Steps = nil, nil
	for i, c := range srsimSorted(d.data.Components) {
		card := base
		card.Name = strings.ToLower(c.Slot)
		card.Env = maps.Clone(base.Env)
		srsimCardEnv(card.Env, &c, d.data)
		if i > 0 {
			card.MgmtMAC = ""
		}
		card.Mounts = slices.Clone(base.Mounts)
		if kinds.IsCPMSlot(c.Slot) {
			card.Mounts = append(card.Mounts, srsimFlash(c.Slot, d.node.License != nil)...)
			slices.SortFunc(card.Mounts, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
		}
		d.plan.Containers = append(d.plan.Containers, card)
		for _, s := range wait {
			s.Container = card.Name
			d.plan.Steps = append(d.plan.Steps, s)
		}
	}
}

// srsimCardEnv returns the environment of a card.
func srsimCardEnv(env map[string]string, c *lab.Component, x *NodeData) {
	maps.Copy(env, c.Env)
	set := func(key, value string) {
		if value != "" {
			env[key] = value
		}
	}
	set("NOKIA_SROS_CARD", c.Type)
	set("NOKIA_SROS_SFM", c.SFM)
	for _, xiom := range c.XIOM {
		env[fmt.Sprintf("NOKIA_SROS_XIOM_X%d", xiom.Slot)] = xiom.Type
		for _, m := range xiom.MDA {
			env[fmt.Sprintf("NOKIA_SROS_MDA_X%d_%d", xiom.Slot, m.Slot)] = m.Type
		}
	}
	for _, m := range c.MDA {
		env[fmt.Sprintf("NOKIA_SROS_MDA_%d", m.Slot)] = m.Type
	}
	env["NOKIA_SROS_SLOT"] = c.Slot
	suffix := "-" + strings.ToLower(c.Slot)
	env["CLAB_LABEL_CLAB_NODE_NAME"] = x.ShortName + suffix
	env["CLAB_LABEL_CLAB_NODE_LONGNAME"] = x.LongName + suffix
	env["CLAB_INTFS"] = "0"
}

// srsimFinish tells the control cards of a chassis the management address, as
// containerlab does since 0.80.
func srsimFinish(d *draft, p *Plan) {
	if !d.srsimChassis() {
		return
	}
	for i := range p.Containers {
		if env := p.Containers[i].Env; kinds.IsCPMSlot(env["NOKIA_SROS_SLOT"]) {
			srsimMgmtEnv(env, d.data)
		}
	}
}

// srsimMgmtEnv adds the address and the default routes of the management interface to
// the environment of a control card, unless the user sets any of them or another
// interface.
func srsimMgmtEnv(env map[string]string, x *NodeData) {
	const active4, active6 = "NOKIA_SROS_ADDRESS_IPV4_ACTIVE", "NOKIA_SROS_ADDRESS_IPV6_ACTIVE"
	const route = "NOKIA_SROS_STATIC_ROUTE_"
	if port := env["NOKIA_SROS_MGMT_IF"]; port != "" && port != "eth0" || env[active4] != "" || env[active6] != "" {
		return
	}
	for name := range env {
		if strings.HasPrefix(name, route) {
			return
		}
	}
	for _, f := range []struct {
		active, address string
		bits            int
		route, gateway  string
	}{
		{active4, x.MgmtIPv4Address, x.MgmtIPv4PrefixLength, route + "1=0.0.0.0/0", x.MgmtIPv4Gateway},
		{active6, x.MgmtIPv6Address, x.MgmtIPv6PrefixLength, route + "2=::/0", x.MgmtIPv6Gateway},
	} {
		if f.address == "" {
			continue
		}
		env[f.active] = fmt.Sprintf("%s/%d", f.address, f.bits)
		if name, prefix, _ := strings.Cut(f.route, "="); f.gateway != "" {
			env[name] = prefix + "@" + f.gateway
		}
	}
}

// srsimSorted returns line cards by number, then B, then A: in containerlab, the first one
// owns the network namespace.
func srsimSorted(cards []lab.Component) []lab.Component {
	rank := func(c lab.Component) int {
		switch n, err := strconv.Atoi(c.Slot); {
		case err == nil:
			return n
		case c.Slot == "A":
			return 1 << 20
		default:
			return 1<<20 - 1
		}
	}
	return slices.SortedStableFunc(slices.Values(cards), func(a, b lab.Component) int { return cmp.Compare(rank(a), rank(b)) })
}

// srsimFlash returns the mounts of a control card.
func srsimFlash(slot string, license bool) []Mount {
	var out []Mount
	for i := 1; i <= 3; i++ {
		out = append(out, Mount{Path: fmt.Sprintf("%s/config/cf%d", slot, i), Target: fmt.Sprintf("/home/sros/flash%d/", i)})
	}
	if license {
		out = append(out, Mount{Path: "license.key", Target: "/nokia/license/license.txt", ReadOnly: true})
	}
	return out
}
