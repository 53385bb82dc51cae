package topology

import (
	"errors"
	"strings"
)

// ParseEndpoint splits a brief endpoint "node:interface" at its first colon.
// Both parts must be there; the interface may hold further colons.
func ParseEndpoint(text string) (node, iface string, err error) {
	node, iface, found := strings.Cut(text, ":")
	switch {
	case !found:
		return "", "", errors.New("there is no colon between node and interface")
	case node == "":
		return "", "", errors.New("the node before the colon is missing")
	case iface == "":
		return "", "", errors.New("the interface after the colon is missing")
	case strings.ContainsRune(text, 0):
		return "", "", errors.New("it contains a NUL character")
	case strings.TrimSpace(node) != node || strings.TrimSpace(iface) != iface:
		return "", "", errors.New("there are spaces around a name")
	}
	return node, iface, nil
}
