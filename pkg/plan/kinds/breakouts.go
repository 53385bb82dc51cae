package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// maxPorts is the number of the last interface that a switch with breakouts may have.
const maxPorts = 999

// Breakouts is the layout of a switch some of whose ports are split into lanes. The
// lanes are numbered after the last port, by ascending port.
type Breakouts struct {
	// Ports is the number of ports, Last that of the last interface.
	Ports, Last int
	// Channels are the lanes of each port that is split, First is the number of the
	// interface of the port's first lane.
	Channels, First map[int]int
}

// NewBreakouts reads the keys port-count and breakouts of a node; nil if it has neither.
func NewBreakouts(n *lab.Node) (*Breakouts, error) {
	if n == nil {
		return nil, nil
	}
	ports, hasPorts := n.Keys["port-count"].(int)
	entries, hasEntries := n.Keys["breakouts"].([]map[string]any)
	switch {
	case !hasPorts && !hasEntries:
		return nil, nil
	case !hasPorts:
		return nil, fmt.Errorf("breakouts needs port-count, the number of the switch's ports")
	case !hasEntries:
		return nil, fmt.Errorf("port-count needs breakouts, the ports that are split")
	}
	b := &Breakouts{Ports: ports, Last: ports, Channels: map[int]int{}, First: map[int]int{}}
	for _, e := range entries {
		text, _ := e["port"].(string)
		from, to, err := portRange(text, ports)
		if err != nil {
			return nil, err
		}
		channels, _ := strconv.Atoi(e["channels"].(string))
		for port := from; port <= to; port++ {
			if b.Channels[port] > 0 {
				return nil, fmt.Errorf("port %d is in breakouts twice", port)
			}
			b.Channels[port] = channels
		}
	}
	for _, port := range slices.Sorted(maps.Keys(b.Channels)) {
		b.First[port] = b.Last + 1
		b.Last += b.Channels[port]
	}
	if b.Last > maxPorts {
		return nil, fmt.Errorf("the ports and lanes are %d, more than %d", b.Last, maxPorts)
	}
	return b, nil
}

// portRange reads a port, or two that ascend ("1..20").
func portRange(text string, last int) (from, to int, err error) {
	low, high, isRange := strings.Cut(text, "..")
	if from, err = strconv.Atoi(low); err != nil {
		return 0, 0, fmt.Errorf("%q is not a port", text)
	}
	to = from
	if isRange {
		if to, err = strconv.Atoi(high); err != nil || to < from {
			return 0, 0, fmt.Errorf("the ports %s do not ascend", text)
		}
	}
	if from < 1 || to > last {
		return 0, 0, fmt.Errorf("port %s is not between 1 and port-count, %d", text, last)
	}
	return from, to, nil
}

// Lines are the lines of ports.conf: each port with its lanes.
func (b *Breakouts) Lines() []string {
	out := make([]string, 0, b.Ports)
	for port := 1; port <= b.Ports; port++ {
		out = append(out, fmt.Sprintf("%d=%dx", port, max(b.Channels[port], 1)))
	}
	return out
}

// brokenOut is the Linux name of a port, or of a lane of a port that is split.
func (m *mapper) brokenOut(groups []string, n *lab.Node) (string, error) {
	layout, err := NewBreakouts(n)
	if layout == nil || err != nil { // a wrong layout is reported where the keys are checked
		return m.number(groups, n)
	}
	port, err := strconv.Atoi(groups[m.groups["port"]])
	if err != nil || port < 1 || port > layout.Ports {
		return "", fmt.Errorf("the switch has the ports 1 to %d", layout.Ports)
	}
	channels, text := layout.Channels[port], groups[m.groups["lane"]]
	switch {
	case text == "" && channels > 0:
		return "", fmt.Errorf("port %d is split into the lanes 0 to %d", port, channels-1)
	case text == "":
		return m.rules.Prefix + strconv.Itoa(port), nil
	case channels == 0:
		return "", fmt.Errorf("port %d is not split", port)
	}
	lane, err := strconv.Atoi(text)
	if err != nil || lane >= channels {
		return "", fmt.Errorf("port %d has the lanes 0 to %d", port, channels-1)
	}
	return m.rules.Prefix + strconv.Itoa(layout.First[port]+lane), nil
}

// beyond says why a switch with breakouts does not have a Linux name, "" if it does.
func (m *mapper) beyond(name string, n *lab.Node) string {
	layout, err := NewBreakouts(n)
	if layout == nil || err != nil {
		return ""
	}
	if number, err := strconv.Atoi(strings.TrimPrefix(name, m.rules.Prefix)); err != nil || number > layout.Last {
		return fmt.Sprintf("the switch has %d ports and lanes", layout.Last)
	}
	return ""
}

// CheckKeys returns what is wrong with the keys of a node together, nil for nothing.
func (k *Kind) CheckKeys(n *lab.Node) error {
	if k.Interfaces.Count != "breakouts" {
		return nil
	}
	_, err := NewBreakouts(n)
	return err
}
