package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// LinkRule sets the quality of what a matched node sends on a link.
type LinkRule struct {
	// Interface is a glob pattern of the node's interface, in Linux's or the
	// kind's spelling; Peer one of the far node's name. Empty means any.
	Interface string `json:"interface,omitempty"`
	Peer      string `json:"peer,omitempty"`
	// MTU is the MTU of the node's interface in bytes, in place of the link's.
	MTU int `json:"mtu,omitempty"`
	// Datapath is auto, udp, vxlan or local, for both directions.
	Datapath string `json:"datapath,omitempty"`
	// Impair is what happens to frames on their way to the far end.
	Impair *Impair `json:"impair,omitempty"`
}

// Impair is one direction's impairment.
type Impair struct {
	// Delay and Jitter are durations such as 10ms.
	Delay  string `json:"delay,omitempty"`
	Jitter string `json:"jitter,omitempty"`
	// Loss, Corruption, Duplication and Reordering are percentages, 0 to 100.
	Loss        float64 `json:"loss,omitempty"`
	Corruption  float64 `json:"corruption,omitempty"`
	Duplication float64 `json:"duplication,omitempty"`
	Reordering  float64 `json:"reordering,omitempty"`
	// Rate is in bit/s with a unit: 64kbit, 10mbit, 1gbit.
	Rate string `json:"rate,omitempty"`
	// Seed makes the random choices repeatable.
	Seed int64 `json:"seed,omitempty"`
	// Down takes the link down, at both ends.
	Down bool `json:"down,omitempty"`
}

// linkRule is a compiled LinkRule.
type linkRule struct {
	LinkRule
	impairment *lab.Impairment
}

// apply sets the rule on the node's links that it matches and that no earlier
// rule has set.
func (r *linkRule) apply(l *lab.Lab, n *lab.Node) {
	for _, e := range n.Endpoints {
		if e.Link < 0 {
			continue // it was rejected
		}
		link := l.Links[e.Link]
		if r.Interface != "" && !glob(r.Interface, e.Interface) && (e.Alias == "" || !glob(r.Interface, e.Alias)) {
			continue
		}
		if len(link.Endpoints) != 2 {
			if r.Peer == "" {
				setMTU(e, r.MTU)
			}
			continue
		}
		from := 0
		if link.Endpoints[1] == e {
			from = 1
		}
		if r.Peer != "" && !glob(r.Peer, link.Endpoints[1-from].Node) {
			continue
		}
		setMTU(e, r.MTU)
		if link.Datapath == "" {
			link.Datapath = r.Datapath
		}
		if r.impairment != nil {
			r.impair(link, from)
		}
	}
}

// setMTU sets the MTU of one end, unless an earlier rule has set it.
func setMTU(e *lab.Endpoint, mtu int) {
	if e.MTU == 0 {
		e.MTU = mtu
	}
}

func (r *linkRule) impair(link *lab.Link, from int) {
	if link.Impairment == nil {
		link.Impairment = &lab.LinkImpairment{}
	}
	direction := &link.Impairment.AToB
	if from == 1 {
		direction = &link.Impairment.BToA
	}
	if *direction == (lab.Impairment{}) {
		*direction = *r.impairment
	}
}

// Compile reads durations, percentages and the rate.
func (i *Impair) Compile() (*lab.Impairment, error) {
	out := &lab.Impairment{Loss: i.Loss, Corruption: i.Corruption, Duplication: i.Duplication, Reordering: i.Reordering, Seed: i.Seed, Down: i.Down}
	for _, p := range []struct {
		name  string
		value float64
	}{{"loss", i.Loss}, {"corruption", i.Corruption}, {"duplication", i.Duplication}, {"reordering", i.Reordering}} {
		if p.value < 0 || p.value > 100 {
			return nil, fmt.Errorf("%s %v is not between 0 and 100 percent", p.name, p.value)
		}
	}
	for _, d := range []struct {
		name, text string
		to         *float64
	}{{"delay", i.Delay, &out.DelayMS}, {"jitter", i.Jitter, &out.JitterMS}} {
		if d.text == "" {
			continue
		}
		v, err := time.ParseDuration(d.text)
		if err != nil || v < 0 || v > time.Minute {
			return nil, fmt.Errorf("%s %q is not a duration from 0s to 1m, such as 10ms", d.name, d.text)
		}
		*d.to = float64(v) / float64(time.Millisecond)
	}
	if i.Rate != "" {
		rate, err := parseRate(i.Rate)
		if err != nil {
			return nil, err
		}
		out.RateKbit = rate
	}
	return out, nil
}

// parseRate reads a rate and returns kbit/s.
func parseRate(text string) (int, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	for _, unit := range []struct {
		name string
		kbit float64
	}{{"gbit", 1e6}, {"mbit", 1e3}, {"kbit", 1}, {"bit", 1e-3}} {
		if number, ok := strings.CutSuffix(t, unit.name); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err == nil && v*unit.kbit >= 1 && v*unit.kbit <= 1e9 {
				return int(v * unit.kbit), nil
			}
			break
		}
	}
	return 0, fmt.Errorf("rate %q is not a rate from 1kbit to 1000gbit, such as 10mbit", text)
}
