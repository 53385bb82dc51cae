package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// srosPrepare rejects what the SR OS virtual machine does not support.
func srosPrepare(d *draft) {
	control := 0
	for _, c := range d.node.Components {
		if kinds.IsCPMSlot(c.Slot) {
			control++
		}
	}
	if control > 1 {
		d.problems.Errorf(kinds.CodeComponents, d.node.Pos, "leave one of slots A and B, or use kind nokia_srsim",
			"node %q: kind %s runs with one control card, not %d", d.node.Name, d.kind.Name, control)
	}
}

// SROSVariant returns the variant for the SR OS image: the node's type, or a line that
// describes its cards.
func (x *NodeData) SROSVariant() string {
	cards := x.Components
	if len(cards) == 0 {
		return x.NodeType
	}
	if len(cards) == 1 && kinds.IsCPMSlot(cards[0].Slot) {
		return x.timosLine(&cards[0])
	}
	var parts []string
	for i := range cards {
		if kinds.IsCPMSlot(cards[i].Slot) {
			parts = append(parts, "cp: "+x.timosLine(&cards[i]))
		}
	}
	for i := range cards {
		if !kinds.IsCPMSlot(cards[i].Slot) {
			parts = append(parts, "lc: "+x.timosLine(&cards[i]))
		}
	}
	return strings.Join(parts, " ___ ")
}

// timosLine describes a card in key=value form, as TiMOS reads it.
func (x *NodeData) timosLine(c *lab.Component) string {
	var line []string
	add := func(key, value string) {
		if value = strings.TrimSpace(value); value != "" {
			line = append(line, key+"="+value)
		}
	}
	add("cpu", c.Env["cpu"])
	add("ram", c.Env["ram"])
	if ports := kinds.MaxPorts(c); ports > 0 {
		add("max_nics", strconv.Itoa(ports))
	}
	add("chassis", x.NodeType)
	slot := strings.TrimSpace(c.Slot)
	if slot == "" {
		slot = "A"
	}
	add("slot", slot)
	if c.SFM != "" {
		add("sfm", c.SFM)
	} else {
		add("sfm", x.Env["NOKIA_SROS_SFM"])
	}
	add("card", c.Type)
	for _, xiom := range c.XIOM {
		add(fmt.Sprintf("xiom/x%d", xiom.Slot), xiom.Type)
		for _, m := range xiom.MDA {
			add(fmt.Sprintf("mda/x%d/%d", xiom.Slot, m.Slot), m.Type)
		}
	}
	for _, m := range c.MDA {
		add(fmt.Sprintf("mda/%d", m.Slot), m.Type)
	}
	return strings.Join(line, " ")
}
