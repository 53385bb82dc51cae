// Package link creates the data interfaces of a Pod and keeps them as links.json describes:
// one file for each kernel object. Everything is level-triggered: each round reads the
// kernel, compares it with the desired state and applies only the difference.
package link

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Prefix begins the name of every helper interface, which is not the device's.
const Prefix = "c9s"

// maxName is IFNAMSIZ without its end (linux/if.h); maxAltName is ALTIFNAMSIZ.
const (
	maxName    = 15
	maxAltName = 127
)

// Legal reports whether Linux accepts name as the name of an interface.
func Legal(name string) bool {
	if name == "" || len(name) > maxName || name == "." || name == ".." {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r == '/' || r == ':' || unicode.IsSpace(r) || unicode.IsControl(r)
	})
}

// LinuxName returns the name of the interface in the kernel: its own if it is legal, else
// one made of a digest.
func LinuxName(node, name string) string {
	if Legal(name) {
		return name
	}
	return "clab-" + digest(node, name)[:8]
}

// AltName returns name as an altname: up to 127 bytes without "/" and space, as
// containerlab writes it.
func AltName(name string) string {
	alt := strings.Map(func(r rune) rune {
		if r == '/' || r == ':' || unicode.IsSpace(r) || unicode.IsControl(r) {
			return '-'
		}
		return r
	}, name)
	return alt[:min(len(alt), maxAltName)]
}

// ownerAlt returns the altname that identifies a device's interface even after it was
// renamed or moved. containerlab uses the same one.
func ownerAlt(k Key) string { return ownerAltPrefix + digest(k.Node, k.Name)[:16] }

const ownerAltPrefix = "clab-o-"

// LegName returns the name of the leg of a wire. If both ends are in this Pod, suffix
// distinguishes them: "a" or "b".
func LegName(id contract.WireID, suffix string) string {
	return fmt.Sprintf("%sl%d%s", Prefix, id, suffix)
}

// helper is the name of a helper interface that has no wire id: 'd' dummy leg,
// 'g' leg on the management network, 'x' stitched leg, 'w' stitched VXLAN.
func helper(letter byte, k Key) string {
	return Prefix + string(letter) + digest(k.Node, k.Name)[:8]
}

func digest(node, name string) string {
	sum := sha1.Sum([]byte(node + "\x00" + name))
	return hex.EncodeToString(sum[:])
}

// Key names an interface of the Pod: node as written and links.json's name.
type Key struct{ Node, Name string }

// KeyOf is the key of an interface.
func KeyOf(i *contract.Interface) Key { return Key{Node: i.Node, Name: i.Name} }

// String is also the ifalias of the interface's leg.
func (k Key) String() string {
	alias := aliasPrefix + k.Node + ":" + k.Name
	if len(alias) <= maxAlias {
		return alias
	}
	return aliasPrefix + "sha1:" + digest(k.Node, k.Name)
}

// aliasPrefix begins the ifalias of everything that the sidecar made for one
// interface; maxAlias is IFALIASZ without its end.
const (
	aliasPrefix = "c9s:"
	maxAlias    = 255
)
