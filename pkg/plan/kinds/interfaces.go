package kinds

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// vmName is the rule of every VM kind, matched by hand since it is the commonest.
const vmName = `eth[1-9]\d*$`

// mapper holds the compiled rules of Interfaces.
type mapper struct {
	rules             Interfaces
	match, allow, den *regexp.Regexp
	keep              func(string) bool
	groups            map[string]int
	name              []segment
}

// segment is a part of Interfaces.Name: text and groups, as a whole optional.
type segment struct {
	optional bool
	parts    []part
}

// part is literal text, or the number of a group when group is above 0.
type part struct {
	text  string
	group int
}

// newMapper compiles rules.
func newMapper(rules Interfaces) (*mapper, error) {
	m := &mapper{rules: rules}
	if m.rules.Prefix == "" {
		m.rules.Prefix = "eth"
	}
	var err error
	compile := func(field, text string) *regexp.Regexp {
		if text == "" || err != nil {
			return nil
		}
		re, reErr := regexp.Compile(text)
		if reErr != nil {
			err = fmt.Errorf("interfaces.%s: %w", field, reErr)
		}
		return re
	}
	m.match = compile("match", rules.Match)
	m.allow = compile("allow", rules.Allow)
	m.den = compile("deny", rules.Deny)
	if rules.Keep == vmName {
		m.keep = isVMName
	} else if re := compile("keep", rules.Keep); re != nil {
		m.keep = re.MatchString
	}
	if err != nil {
		return nil, err
	}
	return m, m.compileName()
}

// compileName prepares the groups of Match and the parts of Name.
func (m *mapper) compileName() error {
	m.groups = map[string]int{}
	if m.match == nil {
		if m.rules.Name != "" || m.rules.Count != "" {
			return fmt.Errorf("interfaces.match: missing, though name or count is given")
		}
		return nil
	}
	for i, g := range m.match.SubexpNames() {
		if g != "" {
			m.groups[g] = i
		}
	}
	switch m.rules.Count {
	case "", "cards", "management":
	case "breakouts":
		if m.groups["lane"] == 0 {
			return fmt.Errorf("interfaces.match: needs a group named lane")
		}
	default:
		return fmt.Errorf("interfaces.count: %q is none of cards, management and breakouts", m.rules.Count)
	}
	if m.rules.Name == "" {
		if m.groups["port"] == 0 {
			return fmt.Errorf("interfaces.match: needs a group named port")
		}
		return nil
	}
	for rest := m.rules.Name; rest != ""; {
		var text string
		optional := rest[0] == '['
		if optional {
			var found bool
			if text, rest, found = strings.Cut(rest[1:], "]"); !found {
				return fmt.Errorf("interfaces.name: [ without ] in %q", m.rules.Name)
			}
		} else if i := strings.IndexByte(rest, '['); i >= 0 {
			text, rest = rest[:i], rest[i:]
		} else {
			text, rest = rest, ""
		}
		seg, err := m.segment(text, optional)
		if err != nil {
			return err
		}
		m.name = append(m.name, seg)
	}
	return nil
}

func (m *mapper) segment(text string, optional bool) (segment, error) {
	seg := segment{optional: optional}
	for text != "" {
		before, after, found := strings.Cut(text, "{")
		if before != "" {
			seg.parts = append(seg.parts, part{text: before})
		}
		if !found {
			break
		}
		group, rest, closed := strings.Cut(after, "}")
		if !closed || m.groups[group] == 0 {
			return seg, fmt.Errorf("interfaces.name: {%s} is not a group of interfaces.match", group)
		}
		seg.parts = append(seg.parts, part{group: m.groups[group]})
		text = rest
	}
	return seg, nil
}

// isVMName is the regular expression vmName: eth and a number from 1 on at the
// end of the name.
func isVMName(name string) bool {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	return i < len(name) && name[i] != '0' && strings.HasSuffix(name[:i], "eth")
}

// MapInterface gives the Linux name of the interface that the topology calls name
// on node n, and name itself as the alias where the two differ. n is read for its
// components, its keys and its network-mode only.
func (k *Kind) MapInterface(name string, n *lab.Node) (linux, alias string, err error) {
	m := k.mapper
	if m == nil || m.match == nil || m.keep != nil && m.keep(name) {
		return name, "", nil
	}
	groups := m.match.FindStringSubmatch(name)
	if groups == nil {
		if m.rules.Strict {
			return "", "", k.nameError(name, "")
		}
		return name, "", nil
	}
	switch {
	case m.rules.Count == "cards":
		linux, err = m.countCards(groups, n)
	case m.rules.Count == "management":
		linux, err = m.aroundManagement(groups, n)
	case m.rules.Count == "breakouts":
		linux, err = m.brokenOut(groups, n)
	case m.name != nil:
		linux, err = m.fillName(groups)
	default:
		linux, err = m.number(groups, n)
	}
	if err != nil {
		return "", "", k.nameError(name, err.Error())
	}
	return linux, name, nil
}

// number is the Linux name of kinds that count their ports.
func (m *mapper) number(groups []string, n *lab.Node) (string, error) {
	port, err := strconv.Atoi(groups[m.groups["port"]])
	if err != nil {
		return "", fmt.Errorf("the port number is out of range")
	}
	if g := m.groups["slot"]; g > 0 && m.rules.SlotPorts > 0 {
		slot, err := strconv.Atoi(groups[g])
		if err != nil {
			return "", fmt.Errorf("the slot number is out of range")
		}
		port += slot * m.rules.SlotPorts
	}
	offset := m.rules.Offset
	if n != nil && n.NetworkMode == lab.NetworkNone && m.rules.OffsetAlone > 0 {
		offset = m.rules.OffsetAlone
	}
	index := port - offset + m.rules.First
	if index < m.rules.First {
		return "", fmt.Errorf("the first data port is number %d", offset)
	}
	return m.rules.Prefix + strconv.Itoa(index), nil
}

// ManagementPort is the number, slot*slotPorts + port, of the port that the key
// mgmt-intf names ("Ethernet1/0"), 0 for the first.
func ManagementPort(n *lab.Node, slotPorts int) int {
	name, _ := n.Keys["mgmt-intf"].(string)
	slot, port, _ := strings.Cut(strings.TrimLeftFunc(name, unicode.IsLetter), "/")
	s, _ := strconv.Atoi(slot)
	p, _ := strconv.Atoi(port)
	return s*slotPorts + p
}

// aroundManagement is the Linux name of a port of a kind with a management port of
// choice, which leaves its place to the first port.
func (m *mapper) aroundManagement(groups []string, n *lab.Node) (string, error) {
	slot, _ := strconv.Atoi(groups[m.groups["slot"]])
	port, _ := strconv.Atoi(groups[m.groups["port"]])
	index, mgmt := slot*m.rules.SlotPorts+port, 0
	if n != nil {
		mgmt = ManagementPort(n, m.rules.SlotPorts)
	}
	switch index {
	case mgmt:
		return "", fmt.Errorf("it is the management interface")
	case 0:
		index = mgmt
	}
	return m.rules.Prefix + strconv.Itoa(index), nil
}

// fillName is the Linux name of kinds whose names keep their structure.
func (m *mapper) fillName(groups []string) (string, error) {
	var b strings.Builder
	for _, seg := range m.name {
		start := b.String()
		for _, p := range seg.parts {
			if p.group == 0 {
				b.WriteString(p.text)
				continue
			}
			if groups[p.group] == "" && seg.optional {
				b.Reset()
				b.WriteString(start)
				break
			}
			n, err := strconv.Atoi(groups[p.group])
			if err != nil || n < 1 {
				return "", fmt.Errorf("every number in it has to be 1 or more")
			}
			b.WriteString(strconv.Itoa(n))
		}
	}
	return b.String(), nil
}

// nameError is what a user reads about a name that cannot be had.
func (k *Kind) nameError(name, why string) error {
	text := fmt.Sprintf("%s has no interface %q", k.Name, name)
	if why != "" {
		text += ": " + why
	}
	if k.Interfaces.Help != "" {
		text += "; allowed are " + k.Interfaces.Help
	}
	return fmt.Errorf("%s", text)
}

// CheckInterfaces applies the rules that containerlab checks on the Linux names
// once all links are known: one diagnostic for each end that breaks one.
func (k *Kind) CheckInterfaces(n *lab.Node) []diag.Diagnostic {
	var out []diag.Diagnostic
	var hint string
	if k.Interfaces.Help != "" {
		hint = "use " + k.Interfaces.Help
	}
	for _, e := range n.Endpoints {
		if why := k.refuses(e.Interface, n); why != "" {
			out = append(out, diag.Diagnostic{
				Code: CodeInterfaceName, Severity: diag.Error, Pos: e.Pos, Hint: hint,
				Message: fmt.Sprintf("interface %q of node %q (%s): %s", e.Written(), n.Name, k.Name, why),
			})
		}
	}
	return out
}

// refuses says why node n cannot have the Linux name name, "" if it can.
func (k *Kind) refuses(name string, n *lab.Node) string {
	m := k.mapper
	switch {
	case m == nil:
		return ""
	case m.rules.Mgmt == name && name != "":
		if n.NetworkMode != lab.NetworkNone {
			return "the name belongs to the management interface unless network-mode is none"
		}
		return ""
	case m.den != nil && m.den.MatchString(name):
		return "the name belongs to the management interface"
	case m.rules.Allow == vmName && !isVMName(name),
		m.rules.Allow != vmName && m.allow != nil && !m.allow.MatchString(name):
		return "not a name that this kind has"
	case m.rules.Count == "breakouts":
		return m.beyond(name, n)
	}
	return ""
}
