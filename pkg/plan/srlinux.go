package plan

import "strings"

// srlinuxPrepare fills the slots of the chassis, and boots a modular one in the mode
// of its cards unless the user chooses.
func srlinuxPrepare(d *draft) {
	d.srlComponents()
	x := d.data
	if mode := x.TypeData["mode"]; mode != "" && x.Env["SRL_CHASSIS_MODE"] == "" {
		x.Env["SRL_CHASSIS_MODE"] = mode
	}
}

// srlinuxStartup handles two formats. JSON is a complete configuration and replaces the
// saved one. Everything else is CLI input, which is entered on top of the default
// configuration when the device is up.
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
