package compile

import (
	"path"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// capabilityNames are Linux's capabilities (capabilities(7)), and ALL for all of
// them.
var capabilityNames = strings.Fields(`
	ALL AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN
	DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE
	LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE
	NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN
	SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO
	SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM`)

// compileCapabilities takes names in any spelling that Docker knows: "net_admin",
// "CAP_NET_ADMIN". A capability in two spellings is added once.
func (c *compiler) compileCapabilities(items []topology.Str) []string {
	var out []string
	for _, s := range items {
		name := strings.TrimPrefix(strings.ToUpper(s.Value), "CAP_")
		switch {
		case !slices.Contains(capabilityNames, name):
			hint := "use a name of capabilities(7), such as NET_ADMIN"
			if near := strictyaml.Nearest(name, capabilityNames); near != "" {
				hint = "did you mean \"" + near + "\"?"
			}
			c.diags.Errorf(topology.CodeBadValue, s.Pos, hint, "unknown capability %q", s.Value)
		case !slices.Contains(out, name):
			out = append(out, name)
		}
	}
	return out
}

// compileDevices checks Docker's syntax of a device: source[:target][:rwm]. The paths
// come out clean, and the source is below /dev: anything else of the worker is no
// device, whatever it is called.
func (c *compiler) compileDevices(items []topology.Str) []string {
	var out []string
	for _, s := range items {
		device, ok := parseDevice(s.Value)
		if !ok {
			c.diags.Errorf(topology.CodeBadValue, s.Pos, "write /dev/NAME", "device %q is not the absolute path of a device", s.Value)
			continue
		}
		if engine := givesEngineSocket(device.source); engine || process.MatchString(device.source) || !strings.HasPrefix(device.source, "/dev/") {
			c.diags.Errorf(topology.CodeBadValue, s.Pos, "write /dev/NAME", "device %q is %s, which is no device below /dev", s.Value, device.source)
			continue
		}
		out = append(out, device.String())
	}
	return out
}

// device is one entry of devices, split; target and permissions are "" where the entry
// has none.
type device struct{ source, target, permissions string }

func (d device) String() string {
	text := d.source
	for _, part := range []string{d.target, d.permissions} {
		if part != "" {
			text += ":" + part
		}
	}
	return text
}

func parseDevice(text string) (device, bool) {
	parts := strings.Split(text, ":")
	if len(parts) > 3 || !path.IsAbs(parts[0]) {
		return device{}, false
	}
	d := device{source: path.Clean(parts[0])}
	rest := parts[1:]
	if len(rest) > 0 && path.IsAbs(rest[0]) {
		d.target, rest = path.Clean(rest[0]), rest[1:]
	}
	if len(rest) > 0 && devicePermissions(rest[0]) {
		d.permissions, rest = rest[0], rest[1:]
	}
	return d, len(rest) == 0
}

// devicePermissions says r, w and m in any order.
func devicePermissions(text string) bool {
	return text != "" && strings.Trim(text, "rwm") == ""
}
