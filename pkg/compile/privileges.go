package compile

import (
	"path"
	"slices"
	"strings"

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
// "CAP_NET_ADMIN". The same capability in two spellings is there once.
func (c *compiler) compileCapabilities(items []topology.Str) []string {
	var out []string
	for _, s := range items {
		name := strings.TrimPrefix(strings.ToUpper(s.Value), "CAP_")
		switch {
		case !slices.Contains(capabilityNames, name):
			hint := "use a name of capabilities(7), such as NET_ADMIN"
			if near := topology.Nearest(name, capabilityNames); near != "" {
				hint = "did you mean \"" + near + "\"?"
			}
			c.diags.Errorf(topology.CodeBadValue, s.Pos, hint, "capability %q is not known", s.Value)
		case !slices.Contains(out, name):
			out = append(out, name)
		}
	}
	return out
}

// compileDevices checks Docker's syntax of a device: source[:target][:rwm].
func (c *compiler) compileDevices(items []topology.Str) []string {
	for _, s := range items {
		parts := strings.Split(s.Value, ":")
		ok := len(parts) <= 3 && path.IsAbs(parts[0])
		if len(parts) == 3 {
			ok = ok && path.IsAbs(parts[1]) && devicePermissions(parts[2])
		} else if len(parts) == 2 {
			ok = ok && (path.IsAbs(parts[1]) || devicePermissions(parts[1]))
		}
		if !ok {
			c.diags.Errorf(topology.CodeBadValue, s.Pos, "write /dev/NAME", "device %q is not the absolute path of a device", s.Value)
		}
	}
	return values(items)
}

// devicePermissions tells r, w and m in any order.
func devicePermissions(text string) bool {
	return text != "" && strings.Trim(text, "rwm") == ""
}
