package plan

import "strings"

// srlinuxPrepare boots the 6e and 10e chassis with second-generation cards, as
// containerlab does, unless the user chooses.
func srlinuxPrepare(d *draft) {
	x := d.data
	if (x.NodeType == "ixr-6e" || x.NodeType == "ixr-10e") && x.Env["SRL_CHASSIS_MODE"] == "" {
		x.Env["SRL_CHASSIS_MODE"] = "GEN2CP_ONLY"
	}
}

// srlinuxStartup tells the two formats apart: JSON is the whole configuration and
// takes the place of the saved one, anything else is CLI, which is typed over the
// default configuration once the device is up.
func srlinuxStartup(d *draft) {
	target, cfg := d.kind.Startup.File, d.node.StartupConfig
	if !d.startupWanted(target) || cfg == nil {
		return
	}
	f := d.startupFile(target)
	f.Secret = cfg.File.Secret
	raw := string(d.lab.Files[cfg.File.Digest])
	text, ok := d.render(raw)
	switch {
	case !ok:
	case !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{"):
		d.data.PartialCfg = text
	case text == raw:
		f.Ref = &cfg.File
		d.addFile(f)
	default:
		f.Content = []byte(text)
		d.addFile(f)
	}
}
