package plan

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// srlCard is a line card of a modular SR Linux chassis: the numbers of the hardware
// that go with it, and the mode that the chassis boots in.
type srlCard struct{ cpm, card, mda, mode string }

const (
	srlGen2 = "GEN2CP_ONLY"
	srlGen3 = "GEN3_ONLY"
)

var srlSmall = map[string]srlCard{
	"imm36-400g-qsfpdd":        {"184", "182", "199", srlGen2},
	"imm60-100g-qsfp28":        {"184", "183", "219", srlGen2},
	"imm2-36-400g-sync-qsfpdd": {"41", "43", "199", srlGen2},
	"imm3-36-800g-qsfpdd":      {"184", "52", "11", srlGen3},
	"imm3-36-800g-osfp":        {"184", "53", "14", srlGen3},
}

// srlCards are the cards of each chassis, by the number of its type.
var srlCards = map[string]map[string]srlCard{
	"68": srlSmall,
	"69": srlSmall,
	"70": {
		"imm3-18-800g-qsfpdd":      {"184", "33", "13", srlGen3},
		"imm3-36-800g-sync-qsfpdd": {"25", "46", "11", srlGen3},
		"imm3-36-800g-osfp":        {"184", "53", "14", srlGen3},
	},
}

// SRLCard is a slot of the chassis with the numbers of its card.
type SRLCard struct {
	Slot      int
	Card, MDA string
}

// srlComponents assigns the cards of components to the slots, in order. Without components,
// slot 1 has the card of the type.
func (d *draft) srlComponents() {
	x, n := d.data, d.node
	wrong := func(hint, format string, args ...any) {
		d.problems.Errorf(kinds.CodeComponents, n.Pos, hint, "node %q: "+format, append([]any{n.Name}, args...)...)
	}
	if len(n.Components) == 0 {
		x.SRLCards = []SRLCard{{1, x.TypeData["card"], x.TypeData["mda"]}}
		return
	}
	known := srlCards[x.TypeData["chassis"]]
	if known == nil {
		wrong("remove components, or choose a modular type such as ixr-10e", "type %s of kind %s is not modular", x.NodeType, d.kind.Name)
		return
	}
	var first srlCard
	for i, c := range n.Components {
		slot, err := strconv.Atoi(cmp.Or(strings.TrimSpace(c.Slot), "1"))
		card, ok := known[c.Type]
		switch {
		case err != nil || slot < 1:
			wrong("write a number from 1 on", "slot %q is not the number of a slot", c.Slot)
			return
		case slices.ContainsFunc(x.SRLCards, func(s SRLCard) bool { return s.Slot == slot }):
			wrong("give each card its own slot", "slot %d is used twice", slot)
			return
		case !ok:
			wrong("use one of "+strings.Join(slices.Sorted(maps.Keys(known)), ", "), "type %s has no card %q", x.NodeType, c.Type)
			return
		case i > 0 && (card.cpm != first.cpm || card.mode != first.mode):
			wrong("use cards of one generation", "the cards %s and %s do not fit in one chassis", n.Components[0].Type, c.Type)
			return
		}
		if i == 0 {
			first = card
		}
		x.SRLCards = append(x.SRLCards, SRLCard{slot, card.card, card.mda})
	}
	slices.SortFunc(x.SRLCards, func(a, b SRLCard) int { return cmp.Compare(a.Slot, b.Slot) })
	if len(x.SRLCards) > 1 {
		d.problems.Warnf(CodeKindIncomplete, n.Pos, "use one card if the ports of others do not come up", "node %q: SR Linux in a container may not bring up more than one card", n.Name)
	}
	x.TypeData = maps.Clone(x.TypeData)
	x.TypeData["cpm"], x.TypeData["mode"] = first.cpm, first.mode
}
