package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// countCards is the Linux name of a port slot/[x<xiom>/]mda/[c<connector>/]port.
// Without components only 1/1/P is known. With components, ports are counted over
// the line cards in slot order, and within a card over its MDAs.
func (m *mapper) countCards(groups []string, n *lab.Node) (string, error) {
	number := func(group string) int {
		v, _ := strconv.Atoi(groups[m.groups[group]])
		return v
	}
	slot, xiom, mda, port := number("slot"), number("xiom"), number("mda"), number("port")
	if port < 1 {
		return "", fmt.Errorf("ports are numbered from 1")
	}
	if groups[m.groups["conn"]] != "" {
		if port != 1 {
			return "", fmt.Errorf("only the first port of a breakout connector has an interface of its own; use its ethX name")
		}
		port = number("conn")
	}
	base := 0
	if n == nil || len(n.Components) == 0 {
		if slot != 1 || mda != 1 {
			return "", fmt.Errorf("a node without components has only slot 1, MDA 1; list its cards under components")
		}
	} else {
		var err error
		if base, err = portsBefore(n.Components, slot, xiom, mda); err != nil {
			return "", err
		}
	}
	index := base + port
	if index < m.rules.First {
		return "", fmt.Errorf("ports are numbered from 1")
	}
	return m.rules.Prefix + strconv.Itoa(index), nil
}

// portsBefore counts the ports of everything that comes before an MDA.
func portsBefore(components []lab.Component, slot, xiom, mda int) (int, error) {
	var cards []lab.Component
	for _, c := range components {
		if !IsCPMSlot(c.Slot) {
			cards = append(cards, c)
		}
	}
	if len(cards) == 0 {
		if slot != 1 {
			return 0, fmt.Errorf("an integrated chassis has its ports on slot 1")
		}
		return portsWithin(&components[0], xiom, mda)
	}
	slices.SortStableFunc(cards, func(a, b lab.Component) int { return cmp.Compare(slotNumber(a), slotNumber(b)) })
	before := 0
	for i := range cards {
		if slotNumber(cards[i]) == slot {
			within, err := portsWithin(&cards[i], xiom, mda)
			return before + within, err
		}
		before += MaxPorts(&cards[i])
	}
	return 0, fmt.Errorf("no line card is in slot %d", slot)
}

// portsWithin counts the ports of a card before one of its MDAs. A card that
// lists no MDA is one row of ports.
func portsWithin(c *lab.Component, xiom, mda int) (int, error) {
	if len(c.MDA) == 0 && len(c.XIOM) == 0 {
		return 0, nil
	}
	count := 0
	for _, m := range sortedMDA(c.MDA) {
		if xiom == 0 && m.Slot == mda {
			return count, nil
		}
		count += portsOfMDA(m.Type)
	}
	xioms := slices.SortedStableFunc(slices.Values(c.XIOM), func(a, b lab.XIOM) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, x := range xioms {
		for _, m := range sortedMDA(x.MDA) {
			if m.Slot == mda && (xiom == 0 || x.Slot == xiom) {
				return count, nil
			}
			count += portsOfMDA(m.Type)
		}
	}
	return 0, fmt.Errorf("the card in slot %s has no such MDA", c.Slot)
}

func sortedMDA(list []lab.MDA) []lab.MDA {
	return slices.SortedStableFunc(slices.Values(list), func(a, b lab.MDA) int { return cmp.Compare(a.Slot, b.Slot) })
}

// MaxPorts is how many ports a card has: its env max_nics, else what its MDAs add
// up to.
func MaxPorts(c *lab.Component) int {
	if n, err := strconv.Atoi(strings.TrimSpace(c.Env["max_nics"])); err == nil {
		return n
	}
	total := 0
	for _, m := range c.MDA {
		total += portsOfMDA(m.Type)
	}
	for _, x := range c.XIOM {
		for _, m := range x.MDA {
			total += portsOfMDA(m.Type)
		}
	}
	return total
}

// portsOfMDA reads the number of ports out of an MDA type's name: "m12-10gb-sfp+"
// has 12, "me6-100gb-qsfp28" 6, "iom-s-1.5t" none; joined types add up.
func portsOfMDA(mdaType string) int {
	total := 0
	for group := range strings.SplitSeq(mdaType, "+") {
		digits := strings.TrimLeft(group, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
		end := 0
		for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
			end++
		}
		n, _ := strconv.Atoi(digits[:end])
		total += n
	}
	return total
}

func slotNumber(c lab.Component) int {
	n, _ := strconv.Atoi(strings.TrimSpace(c.Slot))
	return n
}

// IsCPMSlot reports whether a slot holds a control card: A, B, or none named, which
// is an integrated chassis.
func IsCPMSlot(slot string) bool {
	switch strings.ToUpper(strings.TrimSpace(slot)) {
	case "", "A", "B":
		return true
	}
	return false
}
