package labtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/jsonpath"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// The basic checks.
const (
	BasicLinks      = "links"
	BasicManagement = "management"
	BasicNames      = "names"
	BasicLLDP       = "lldp"
)

// AllBasics are the checks of a lab without a file of tests.
var AllBasics = []string{BasicLinks, BasicManagement, BasicNames, BasicLLDP}

// Protocols are those whose neighbours kinds can read.
var Protocols = []string{"bfd", "bgp", "isis", "lldp", "ospf", "ospf3"}

// The levels of a check.
const (
	levelError   = "error"
	levelWarning = "warning"
)

// The limits of the size of packets.
const (
	smallestPacket = 300
	largestPacket  = 65535
)

// DefaultTimeout is how long a check is retried where nothing says otherwise.
const DefaultTimeout = time.Minute

// Load reads a file of tests. Every problem is reported with its position; with an error among
// them the File is nil.
func Load(file string, data []byte) (*File, []diag.Diagnostic) {
	l := &loader{Decoder: strictyaml.Decoder{
		File: file, Diags: &diag.List{}, Top: "in a file of tests", AllKeys: "docs/reference/test.md lists the keys",
		Codes: strictyaml.OneCode(CodeTest),
	}}
	f := l.load(data)
	if l.Diags.HasErrors() {
		return nil, l.Diags.All()
	}
	return f, l.Diags.All()
}

type loader struct{ strictyaml.Decoder }

func (l *loader) wrong(pos diag.Pos, hint, format string, args ...any) {
	l.Diags.Errorf(CodeTest, pos, hint, format, args...)
}

func (l *loader) load(data []byte) *File {
	root := l.Root(data, CodeTest, "the file of tests", APIVersion)
	if root == nil {
		return nil
	}
	top := l.Pos(root)
	f := &File{}
	l.Decode(root, f, "")
	l.CheckHeader(root, strictyaml.Header{APIVersion: f.APIVersion, Kind: f.Kind}, strictyaml.Header{APIVersion: APIVersion, Kind: Kind})
	for _, name := range f.Basics {
		if !slices.Contains(AllBasics, name) {
			l.wrong(top, "use "+strings.Join(AllBasics, ", "), "basics: %q is not a check", name)
		}
	}
	for i := range f.Reachability {
		l.reachability(&f.Reachability[i])
	}
	for i := range f.Commands {
		l.command(&f.Commands[i])
	}
	for i := range f.Neighbours {
		l.neighbours(&f.Neighbours[i])
	}
	for i := range f.Links {
		l.links(&f.Links[i])
	}
	for i := range f.Paths {
		l.path(&f.Paths[i])
	}
	for i := range f.Convergence {
		l.convergence(&f.Convergence[i])
	}
	return f
}

func (l *loader) common(c *Common) {
	if !slices.Contains([]string{"", levelError, levelWarning}, c.Level) {
		l.wrong(c.Pos, "use error or warning", "level is %q", c.Level)
	}
}

// needs reports fields that are missing, by name.
func (l *loader) needs(pos diag.Pos, what string, missing map[string]bool) {
	for _, name := range sortedTrue(missing) {
		l.wrong(pos, "add "+name+": ...", "%s has no %s", what, name)
	}
}

func sortedTrue(set map[string]bool) []string {
	var out []string
	for name, yes := range set {
		if yes {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (l *loader) patterns(pos diag.Pos, list []string) {
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil {
			l.wrong(pos, "use * and ? and [a-z]", "pattern %q is malformed", p)
		}
	}
}

func (l *loader) size(pos diag.Pos, name string, n int) {
	if n != 0 && (n < smallestPacket || n > largestPacket) {
		l.wrong(pos, fmt.Sprintf("write bytes, from %d to %d", smallestPacket, largestPacket), "%s %d is not possible", name, n)
	}
}

func (l *loader) regexp(pos diag.Pos, text string) {
	if _, err := regexp.Compile(text); err != nil {
		l.wrong(pos, "write a regular expression of RE2", "matches: %v", err)
	}
}

func (l *loader) reachability(c *Reachability) {
	l.common(&c.Common)
	l.needs(c.Pos, "a check of reachability", map[string]bool{"from": len(c.From) == 0, "to": len(c.To) == 0})
	l.patterns(c.Pos, c.From)
	l.size(c.Pos, "size", c.Size)
	for _, p := range c.Except {
		if !slices.Contains(c.To, p.To) {
			l.wrong(c.Pos, "add it to the addresses, or remove the exception", "except: %s is not an address under to", p.To)
		}
		l.patterns(c.Pos, []string{p.From})
	}
	if c.Unreachable && len(c.Except) > 0 {
		l.wrong(c.Pos, "use one of them", "unreachable and except exclude one another")
	}
}

func (l *loader) command(c *Command) {
	l.common(&c.Common)
	l.needs(c.Pos, "a check of a command", map[string]bool{"nodes": len(c.Nodes) == 0, "command": len(c.Command) == 0})
	l.patterns(c.Pos, c.Nodes)
	l.regexp(c.Pos, c.Matches)
	for _, j := range c.JSON {
		l.needs(j.Pos, "a check of JSON", map[string]bool{"path": j.Path == ""})
		if j.Equals == nil && j.Matches == "" && j.Count == nil {
			l.wrong(j.Pos, "add equals, matches or count", "the check of %q says nothing of the value", j.Path)
		}
		l.regexp(j.Pos, j.Matches)
		if err := jsonpath.New("").Parse(j.Path); err != nil {
			l.wrong(j.Pos, "write it like {.neighbors.*}, as for kubectl", "path %q: %v", j.Path, err)
		}
	}
}

func (l *loader) neighbours(c *Neighbours) {
	l.common(&c.Common)
	l.needs(c.Pos, "a check of neighbours", map[string]bool{"nodes": len(c.Nodes) == 0, "protocol": c.Protocol == ""})
	l.patterns(c.Pos, c.Nodes)
	if c.Protocol != "" && !slices.Contains(Protocols, c.Protocol) {
		l.wrong(c.Pos, "use "+strings.Join(Protocols, ", "), "protocol is %q", c.Protocol)
	}
	if len(c.Up)+len(c.Down) == 0 && c.Count == nil {
		l.wrong(c.Pos, "add up, down or count", "the check of neighbours expects nothing")
	}
}

func (l *loader) links(c *Links) {
	l.common(&c.Common)
	l.patterns(c.Pos, c.Links)
	l.size(c.Pos, "mtu", c.MTU)
	for _, end := range c.Links {
		if !strings.Contains(end, ":") {
			l.wrong(c.Pos, "write NODE:INTERFACE", "%q is not the end of a link", end)
		}
	}
}

func (l *loader) path(c *Path) {
	l.common(&c.Common)
	l.needs(c.Pos, "a check of a path", map[string]bool{"from": c.From == "", "to": !c.To.IsValid(), "through or avoid": len(c.Through)+len(c.Avoid) == 0})
}

func (l *loader) convergence(c *Convergence) {
	l.common(&c.Common)
	l.needs(c.Pos, "a check of convergence", map[string]bool{"from": c.From == "", "to": !c.To.IsValid(), "event": c.Event.Pos.Line == 0, "within": c.Within == 0})
	if time.Duration(c.Within) > mostWithin {
		l.wrong(c.Pos, "", "within is longer than %s", mostWithin)
	}
	e := c.Event
	switch {
	case e.Pos.Line == 0:
	case (e.Cut == "") == (e.Node == ""):
		l.wrong(e.Pos, "write cut: NODE:INTERFACE, or node and command", "the event needs one of cut and node")
	case e.Cut != "" && !strings.Contains(e.Cut, ":"):
		l.wrong(e.Pos, "write NODE:INTERFACE", "%q is not the end of a link", e.Cut)
	case e.Cut != "" && len(e.Command)+len(e.Undo) > 0, e.Node != "" && len(e.Command) == 0:
		l.wrong(e.Pos, "", "an event in a node needs a command, and one by cut has none")
	}
}
