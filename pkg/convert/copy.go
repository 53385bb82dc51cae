package convert

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/yamltext"
)

// Copy says how a copy of a lab differs from it.
type Copy struct {
	Name string
	// IPv4 and IPv6 move the management network. The zero value leaves it.
	IPv4, IPv6 Move
}

// Move moves addresses from one subnet to another of the same size.
type Move struct{ From, To netip.Prefix }

// text moves an address or a prefix that a topology has.
func (m Move) text(value string) (string, error) {
	addr, length, isPrefix := strings.Cut(value, "/")
	a, err := netip.ParseAddr(addr)
	if err != nil || !m.From.Contains(a) {
		return "", fmt.Errorf("%q is not an address in %s", value, m.From)
	}
	moved := m.addr(a).String()
	if isPrefix {
		moved += "/" + length
	}
	return moved, nil
}

// addr moves an address: the bits of the subnet are To's, all others stay.
func (m Move) addr(a netip.Addr) netip.Addr {
	host, net := a.AsSlice(), m.To.Masked().Addr().AsSlice()
	for i := range host {
		bits := min(max(m.To.Bits()-8*i, 0), 8)
		mask := byte(0xff << (8 - bits))
		host[i] = net[i]&mask | host[i]&^mask
	}
	out, _ := netip.AddrFromSlice(host)
	return out
}

// family are the keys of an address family of the management network.
type family struct {
	move                  Move
	subnet, old, node, gw string
	rng                   string
}

// CopyLab returns the text of a topology file as a copy of the lab. It changes the lab's name,
// the subnets of the management network, and the management addresses of nodes. The text must be
// YAML, not a template.
func CopyLab(text string, c Copy) (string, error) {
	if unix := strings.ReplaceAll(text, "\r\n", "\n"); unix != text {
		out, err := CopyLab(unix, c)
		return strings.ReplaceAll(out, "\n", "\r\n"), err
	}
	d, err := yamltext.Parse(text)
	if err != nil {
		return "", err
	}
	all := yamltext.Entries(d.Root)
	if len(all) == 0 {
		return "", errors.New("it is not a topology")
	}
	next := all[0] // what the management network is written before
	if name, ok := yamltext.Find(d.Root, "name"); ok {
		if err := setScalar(d, name, quoted(c.Name)); err != nil {
			return "", err
		}
		if i := slices.IndexFunc(all, func(e yamltext.Entry) bool { return e.Key == name.Key }) + 1; i < len(all) {
			next = all[i]
		}
	} else {
		d.Insert(all[0], "name", quoted(c.Name), nil)
	}
	families := []family{
		{c.IPv4, "ipv4-subnet", "ipv4_subnet", "mgmt-ipv4", "ipv4-gw", "ipv4-range"},
		{c.IPv6, "ipv6-subnet", "ipv6_subnet", "mgmt-ipv6", "ipv6-gw", "ipv6-range"},
	}
	if err := moveMgmt(d, families, next); err != nil {
		return "", err
	}
	if err := moveNodes(d, families); err != nil {
		return "", err
	}
	out := d.Apply()
	if _, err := yamltext.Parse(out); err != nil {
		return "", fmt.Errorf("the copy would not be YAML: %w", err)
	}
	return out, nil
}

// moveMgmt changes the mgmt block, or adds one before an entry.
func moveMgmt(d *yamltext.Document, families []family, next yamltext.Entry) error {
	mgmt, ok := yamltext.Find(d.Root, "mgmt")
	if !ok {
		var parts []string
		for _, f := range families {
			if f.move.To.IsValid() {
				parts = append(parts, f.subnet+": "+quoted(f.move.To.String()))
			}
		}
		if len(parts) > 0 {
			d.Insert(next, "mgmt", "{"+strings.Join(parts, ", ")+"}", nil)
		}
		return nil
	}
	block := yamltext.Deref(mgmt.Value)
	all := yamltext.Entries(block)
	if len(all) == 0 {
		return fmt.Errorf("line %d: mgmt has no keys: remove it", mgmt.Key.Line)
	}
	for _, f := range families {
		if !f.move.To.IsValid() {
			continue
		}
		found := false
		for _, e := range all {
			var err error
			switch e.Key.Value {
			case f.subnet, f.old:
				found = true
				err = setScalar(d, e, quoted(f.move.To.String()))
			case f.gw, f.rng:
				err = moveScalar(d, e, f.move)
			}
			if err != nil {
				return err
			}
		}
		if !found {
			d.Insert(all[0], f.subnet, quoted(f.move.To.String()), nil)
		}
	}
	return nil
}

// moveNodes changes the management addresses that the topology gives its nodes.
func moveNodes(d *yamltext.Document, families []family) error {
	topo, _ := yamltext.Find(d.Root, "topology")
	nodes, _ := yamltext.Find(yamltext.Deref(topo.Value), "nodes")
	for _, node := range yamltext.Entries(yamltext.Deref(nodes.Value)) {
		for _, f := range families {
			e, ok := yamltext.Find(yamltext.Deref(node.Value), f.node)
			if !ok || !f.move.To.IsValid() {
				continue
			}
			if err := moveScalar(d, e, f.move); err != nil {
				return err
			}
		}
	}
	return nil
}

func moveScalar(d *yamltext.Document, e yamltext.Entry, m Move) error {
	text, err := m.text(yamltext.Deref(e.Value).Value)
	if err != nil {
		return fmt.Errorf("line %d: %s: %w", e.Key.Line, e.Key.Value, err)
	}
	return setScalar(d, e, quoted(text))
}

// setScalar replaces the value of an entry, which is a scalar on one line.
func setScalar(d *yamltext.Document, e yamltext.Entry, with string) error {
	n := yamltext.Deref(e.Value)
	from := d.Offset(n)
	to := scalarEnd(d, n, from)
	if to < 0 {
		return fmt.Errorf("line %d: %s: its value cannot be replaced: write it on one line, without an anchor", e.Key.Line, e.Key.Value)
	}
	d.Replace(from, to, with)
	return nil
}

// scalarEnd is where a scalar that begins at from ends, -1 if that is not known.
func scalarEnd(d *yamltext.Document, n *yaml.Node, from int) int {
	rest := d.Text[from:]
	switch {
	case n.Kind != yaml.ScalarNode || n.Anchor != "" || rest == "" || n.Value == "":
		return -1
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0:
		return -1
	case n.Style&yaml.DoubleQuotedStyle != 0:
		prefix, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return -1
		}
		return from + len(prefix)
	case n.Style&yaml.SingleQuotedStyle != 0:
		written := "'" + strings.ReplaceAll(n.Value, "'", "''") + "'"
		if !strings.HasPrefix(rest, written) {
			return -1
		}
		return from + len(written)
	case !strings.HasPrefix(rest, n.Value):
		return -1
	}
	return from + len(n.Value)
}

var plainScalar = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// quoted is a text as a scalar that cannot be mistaken for another type.
func quoted(text string) string {
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return strconv.Quote(text)
	}
	if plainScalar.MatchString(text) {
		return text
	}
	return strconv.Quote(text)
}
