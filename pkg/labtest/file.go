// Package labtest checks a running lab: reachability, the output of commands, neighbours of
// routing protocols, links at their MTU, paths and convergence, as a file of tests says, and
// what any lab should have without one.
package labtest

import (
	"net/netip"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// APIVersion and Kind head every file of tests.
const (
	APIVersion = "c9s.dev/v1"
	Kind       = "Test"
)

// Suffix ends the name of the file of tests next to LAB.clab.yml: LAB.test.yaml.
const Suffix = ".test.yaml"

// File is a file of tests.
type File struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Timeout is how long a check is retried where it does not say (default 1m).
	Timeout Duration `json:"timeout,omitempty"`
	// Basics are the checks that any lab should pass: links, management, names, lldp.
	Basics       []string       `json:"basics,omitempty"`
	Reachability []Reachability `json:"reachability,omitempty"`
	Commands     []Command      `json:"commands,omitempty"`
	Neighbours   []Neighbours   `json:"neighbours,omitempty"`
	Links        []Links        `json:"links,omitempty"`
	Paths        []Path         `json:"paths,omitempty"`
	Convergence  []Convergence  `json:"convergence,omitempty"`
}

// Common is what every check has.
type Common struct {
	// Name is for the table.
	Name string `json:"name,omitempty"`
	// Labels choose checks on the command line.
	Labels []string `json:"labels,omitempty"`
	// Level is error (the default) or warning.
	Level string `json:"level,omitempty"`
	// Timeout is how long the check is retried.
	Timeout Duration `json:"timeout,omitempty"`
	Pos     diag.Pos `json:"-"`
}

// Reachability checks that nodes reach addresses, each from each.
type Reachability struct {
	Common `json:",inline"`
	// From are nodes, by name or pattern.
	From []string  `json:"from"`
	To   []Address `json:"to"`
	// Except are pairs that must not reach one another.
	Except []Pair `json:"except,omitempty"`
	// Unreachable turns the check round: no node may reach any address.
	Unreachable bool `json:"unreachable,omitempty"`
	// Size is the size of the packets in bytes, which are not fragmented.
	Size int `json:"size,omitempty"`
	// Device is the VRF or interface to send by.
	Device string `json:"device,omitempty"`
}

// Pair is a node and an address.
type Pair struct {
	From string  `json:"from"`
	To   Address `json:"to"`
}

// Command checks the output of a command in nodes.
type Command struct {
	Common  `json:",inline"`
	Nodes   []string `json:"nodes"`
	Command Argv     `json:"command"`
	// Contains are texts that the output has, Excludes those that it must not have.
	Contains []string `json:"contains,omitempty"`
	Excludes []string `json:"excludes,omitempty"`
	// Matches is a regular expression (RE2) that matches the output.
	Matches string `json:"matches,omitempty"`
	// JSON checks values of the output.
	JSON []JSONCheck `json:"json,omitempty"`
	// ExitCode is 0 by default.
	ExitCode int `json:"exitCode,omitempty"`
}

// JSONCheck checks what a JSON path, in kubectl's syntax, finds.
type JSONCheck struct {
	Path string `json:"path"`
	// Equals is compared with the values as text, a space between two.
	Equals *string `json:"equals,omitempty"`
	// Matches is a regular expression that matches that text.
	Matches string `json:"matches,omitempty"`
	// Count is the number of values.
	Count *int     `json:"count,omitempty"`
	Pos   diag.Pos `json:"-"`
}

// Neighbours checks the neighbours of a protocol.
type Neighbours struct {
	Common   `json:",inline"`
	Nodes    []string `json:"nodes"`
	Protocol string   `json:"protocol"`
	// Up are neighbours that must be up, by address, router id, system id or name.
	Up []string `json:"up,omitempty"`
	// Down are neighbours that must not be up.
	Down []string `json:"down,omitempty"`
	// Count is the number of neighbours that are up.
	Count *int `json:"count,omitempty"`
}

// Links checks that links pass packets of a size both ways.
type Links struct {
	Common `json:",inline"`
	// Links are ends, as NODE:INTERFACE or as patterns. Without any, all links are checked.
	Links []string `json:"links,omitempty"`
	// MTU is the size of the packets in bytes; 0 for the MTU of the interfaces.
	MTU int `json:"mtu,omitempty"`
	// Down: the links must not pass packets.
	Down bool `json:"down,omitempty"`
}

// Path checks the way from a node to an address.
type Path struct {
	Common `json:",inline"`
	From   string  `json:"from"`
	To     Address `json:"to"`
	// Through are nodes or addresses that the path visits in this order; others may be
	// between them. Avoid are those that it must not visit.
	Through []string `json:"through,omitempty"`
	Avoid   []string `json:"avoid,omitempty"`
	Device  string   `json:"device,omitempty"`
}

// Convergence checks how long an address is unreachable after an event.
type Convergence struct {
	Common `json:",inline"`
	From   string   `json:"from"`
	To     Address  `json:"to"`
	Event  Event    `json:"event"`
	Within Duration `json:"within"`
}

// Event is a fault, which is undone after the check: a link that loses every frame (Cut, one
// of its ends), or a command in a node, with the command that undoes it.
type Event struct {
	Cut     string   `json:"cut,omitempty"`
	Node    string   `json:"node,omitempty"`
	Command Argv     `json:"command,omitempty"`
	Undo    Argv     `json:"undo,omitempty"`
	Pos     diag.Pos `json:"-"`
}

// Duration is written as 500ms, 10s or 2m.
type Duration time.Duration

// DecodeYAML reads a duration.
func (t *Duration) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	value, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || value <= 0 {
		d.Errorf(CodeTest, n, "write it as 500ms, 10s or 2m", "%s must be a duration, not %s", strictyaml.LastKey(path), strictyaml.Describe(n))
		return
	}
	*t = Duration(value)
}

// Address is an IP address.
type Address struct{ netip.Addr }

// DecodeYAML reads an address.
func (a *Address) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	value, err := netip.ParseAddr(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.Errorf(CodeTest, n, "write an address such as 10.0.0.1 or 2001:db8::1", "%s must be an IP address, not %s", strictyaml.LastKey(path), strictyaml.Describe(n))
		return
	}
	a.Addr = value
}

// Argv is a command: a list of words, or one text for the node's shell.
type Argv []string

// DecodeYAML reads a command.
func (a *Argv) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	var words []string
	if n.Kind == yaml.ScalarNode {
		text, ok := d.Text(n, path)
		if !ok {
			return
		}
		words = []string{"sh", "-c", text}
	} else {
		d.Decode(n, &words, path)
	}
	if len(words) > 0 && words[len(words)-1] == "" || len(words) == 0 {
		d.Errorf(CodeTest, n, "write [ip, route], or a text for sh", "%s is empty", strictyaml.LastKey(path))
		return
	}
	*a = words
}
