package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// SRSIMData is the data of the default configuration template of SR-SIM.
type SRSIMData struct {
	*NodeData
	// Mode is model-driven, classic or mixed.
	Mode string
	// Secure is set if the node has a certificate.
	Secure bool
	// Cards are the lines that provision cards and power.
	Cards []string
}

// srsimStartup stages folders, certificate and configuration of every control
// card.
func srsimStartup(d *draft) {
	slots := []string{}
	if control := d.data.TypeData["control"]; control != "" {
		slots = append(slots, control)
	}
	if d.srsimChassis() {
		for _, c := range d.data.Components {
			if kinds.IsCPMSlot(c.Slot) {
				slots = append(slots, c.Slot)
			}
		}
	}
	wanted := d.startupWanted("")
	var text string
	if wanted {
		var ok bool
		if text, ok = d.srsimConfig(); !ok {
			return
		}
	}
	for _, slot := range slots {
		d.srsimFolders(slot)
		if !wanted {
			continue
		}
		f := d.startupFile(slot + "/config/cf3/config.cfg")
		f.Content = []byte(text)
		f.Secret = d.node.StartupConfig != nil && d.node.StartupConfig.File.Secret
		d.addFile(f)
	}
}

func (d *draft) srsimFolders(slot string) {
	for i := 1; i <= 3; i++ {
		d.addFile(File{Path: fmt.Sprintf("%s/config/cf%d", slot, i), Dir: true, Mode: 0o777})
	}
	d.plan.Persist = append(d.plan.Persist, slot+"/config")
	if !d.data.CertificateIssue || slot == "B" && d.srsimChassis() {
		return
	}
	d.addFile(File{Path: slot + "/config/cf3/node.key", Mode: 0o644, Certificate: "tls.key", Secret: true})
	d.addFile(File{Path: slot + "/config/cf3/node.crt", Mode: 0o644, Certificate: "tls.crt"})
}

// srsimConfig returns the user's full configuration, or the default one followed by the
// user's partial one.
func (d *draft) srsimConfig() (string, bool) {
	cfg := d.node.StartupConfig
	var users string
	if cfg != nil {
		var ok bool
		if users, ok = d.render(string(d.lab.Files[cfg.File.Digest])); !ok || !cfg.Partial {
			return users, ok
		}
	}
	x := &SRSIMData{NodeData: d.data, Mode: strings.ToLower(d.data.Env["CLAB_SROS_CONFIG_MODE"]), Secure: d.data.CertificateIssue}
	name := d.kind.Startup.Default
	if x.Mode == "classic" || x.Mode == "mixed" {
		name = "srsim-classic.cfg"
	} else if _, off := d.data.Env["CLAB_SROS_DISABLE_COMPONENT_CONFIG"]; !off {
		x.Cards = d.srsimProvision()
	}
	if family := strings.ToLower(x.NodeType); strings.HasPrefix(family, "ixr") || strings.HasPrefix(family, "sar") {
		d.problems.Warnf(CodeKindIncomplete, d.node.Pos, "install c9s-planner to use containerlab's hooks, or give a whole startup-config",
			"kind %s: the default configuration of the built-in planner has no parts of its own for the IXR and SAR families", d.kind.Name)
	}
	return joinLines(string(d.templateFile(name, x)), users), true
}

// srsimProvision lists the commands for the node's cards and their power.
func (d *draft) srsimProvision() []string {
	var out []string
	if d.srsimChassis() {
		for _, c := range srsimSorted(d.data.Components) {
			if !kinds.IsCPMSlot(c.Slot) && c.Type != "" {
				out = append(out, provisionCard(&c)...)
			}
		}
	} else if card := d.data.TypeData["card"]; card != "" {
		out = append(out, provisionCard(d.srsimIntegrated(card))...)
	} else {
		return nil
	}
	return append(out, d.srsimPower()...)
}

// srsimIntegrated returns the built-in card of the chassis, as modified by the
// environment.
func (d *draft) srsimIntegrated(card string) *lab.Component {
	x := d.data
	mdas := map[int]string{}
	for key, value := range x.TypeData {
		if n, ok := strings.CutPrefix(key, "mda"); ok {
			i, _ := strconv.Atoi(n)
			mdas[i] = value
		}
	}
	for key, value := range x.Env {
		if n, ok := strings.CutPrefix(key, "NOKIA_SROS_MDA_"); ok && strings.TrimSpace(value) != "" {
			if i, err := strconv.Atoi(n); err == nil && i > 0 {
				mdas[i] = strings.TrimSpace(value)
			}
		}
	}
	if v := strings.TrimSpace(x.Env["NOKIA_SROS_CARD"]); v != "" {
		card = v
	}
	c := &lab.Component{Slot: "1", Type: card}
	for _, i := range slices.Sorted(maps.Keys(mdas)) {
		c.MDA = append(c.MDA, lab.MDA{Slot: i, Type: mdas[i]})
	}
	return c
}

// provisionCard lists the MD-CLI commands that provision a card.
func provisionCard(c *lab.Component) []string {
	var out []string
	add := func(where, what, model string) {
		if model != "" {
			out = append(out, fmt.Sprintf("/configure %s %s-type %s admin-state enable", where, what, model))
		}
	}
	card := "card " + c.Slot
	add(card, "card", c.Type)
	add("sfm "+c.Slot, "sfm", c.SFM)
	for _, x := range c.XIOM {
		xiom := fmt.Sprintf("%s xiom x%d", card, x.Slot)
		add(xiom, "xiom", x.Type)
		for _, m := range x.MDA {
			add(fmt.Sprintf("%s mda %d", xiom, m.Slot), "mda", m.Type)
		}
	}
	for _, m := range c.MDA {
		add(fmt.Sprintf("%s mda %d", card, m.Slot), "mda", m.Type)
	}
	return out
}

// srsimPower lists the commands for the power shelves of the chassis that have
// them: DC shelves, filled.
func (d *draft) srsimPower() []string {
	modules, _ := strconv.Atoi(d.data.TypeData["powerModules"])
	shelves, _ := strconv.Atoi(d.data.TypeData["powerShelves"])
	var out []string
	for s := 1; s <= shelves; s++ {
		shelf := fmt.Sprintf("/configure chassis router chassis-number 1 power-shelf %d", s)
		out = append(out, fmt.Sprintf("%s power-shelf-type ps-a%d-shelf-dc", shelf, modules))
		for m := 1; m <= modules; m++ {
			out = append(out, fmt.Sprintf("%s power-module %d power-module-type ps-a-dc-6000", shelf, m))
		}
	}
	return out
}
