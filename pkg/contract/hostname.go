package contract

import "strings"

// maxHostName is the longest name of a host (RFC 1035, 2.3.4, as text).
const maxHostName = 253

// HostName reports whether a name can stand in a hosts file: letters, digits, "-", "_"
// and ".", beginning with a letter, a digit or "_". Nothing else is written there, since
// a space starts another name and a line break another line.
func HostName(name string) bool {
	if name == "" || len(name) > maxHostName || strings.ContainsRune("-.", rune(name[0])) {
		return false
	}
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		default:
			return false
		}
	}
	return true
}
