//go:build linux

package wire

import "os"

// writeSysctl sets a value below /proc/sys/net, in the thread's namespace. What
// cannot be set is left: all of them only tidy up.
func writeSysctl(name, value string) {
	os.WriteFile("/proc/sys/net/"+name, []byte(value), 0)
}
