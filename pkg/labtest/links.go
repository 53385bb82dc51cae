package labtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// links adds a check of links.
func (p *planner) links(c *Links) {
	chosen := p.lab.Links
	if len(c.Links) > 0 {
		chosen = nil
		for _, pattern := range c.Links {
			found := false
			for _, l := range p.lab.Links {
				if matchEnd(pattern, l.A) || matchEnd(pattern, l.B) {
					found = true
					if !slices.Contains(chosen, l) {
						chosen = append(chosen, l)
					}
				}
			}
			if !found {
				p.wrong(c.Pos, "c9s status lists the links", "the lab has no link between nodes with the end %q", pattern)
			}
		}
	}
	for _, batch := range batches(chosen) {
		s := step{group: "links", try: func(ctx context.Context) []outcome { return p.lab.exchange(ctx, batch, c.MTU, c.Down) }}
		for _, l := range batch {
			s.cases = append(s.cases, label(c.Common, l.A.String()+" - "+l.B.String()))
		}
		p.add(c.Common, s)
	}
}

// podsAtOnce is how many Pods exchange frames at the same time.
const podsAtOnce = 64

// batches divides links so that few Pods are busy at the same time: both ends of a link have
// to be.
func batches(links []Link) (out [][]Link) {
	var batch []Link
	pods := map[string]bool{}
	for _, l := range links {
		if len(batch) > 0 && len(pods) >= podsAtOnce-1 && !(pods[l.A.Pod] && pods[l.B.Pod]) {
			out, batch, pods = append(out, batch), nil, map[string]bool{}
		}
		batch = append(batch, l)
		pods[l.A.Pod], pods[l.B.Pod] = true, true
	}
	if len(batch) > 0 {
		out = append(out, batch)
	}
	return out
}

// exchangeSeconds is how long the ends of links try to hear one another.
const exchangeSeconds = 4

// heard is what the end of a link has heard, or why nothing is known of it.
type heard struct {
	contract.FrameResult
	err error
}

// exchange lets the ends of links exchange frames, and judges each link.
func (l *Lab) exchange(ctx context.Context, links []Link, mtu int, down bool) []outcome {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:])
	ends := map[string][]contract.FrameEnd{} // by Pod
	add := func(e, peer End) {
		ends[e.Pod] = append(ends[e.Pod], contract.FrameEnd{Interface: e.Interface, Self: e.String(), Peer: peer.String(), Size: mtu})
	}
	var pods []string
	for _, k := range links {
		add(k.A, k.B)
		add(k.B, k.A)
	}
	for pod := range ends {
		pods = append(pods, pod)
	}
	var mu sync.Mutex
	by := map[string]heard{}
	bounded.Each(len(pods), len(pods), func(i int) {
		m, err := l.Measure(ctx, pods[i], contract.MeasureRequest{Frames: &contract.FramesRequest{
			Nonce: binary.BigEndian.Uint64(nonce[:]), Seconds: exchangeSeconds, Interfaces: ends[pods[i]],
		}})
		mu.Lock()
		defer mu.Unlock()
		for j, e := range ends[pods[i]] {
			switch {
			case err != nil:
				by[e.Self] = heard{err: err}
			case j >= len(m.Frames):
				by[e.Self] = heard{err: errors.New("the sidecar has not answered for this link")}
			default:
				by[e.Self] = heard{FrameResult: m.Frames[j]}
			}
		}
	})
	out := make([]outcome, len(links))
	for i, k := range links {
		if out[i] = judge(k, by[k.A.String()], by[k.B.String()], mtu); down {
			out[i] = reverse(out[i], by[k.A.String()], by[k.B.String()])
		}
	}
	return out
}

// judge says whether a link passes packets of its MTU both ways.
func judge(k Link, a, b heard, mtu int) outcome {
	for _, e := range []struct {
		end End
		heard
	}{{k.A, a}, {k.B, b}} {
		switch {
		case e.err != nil:
			return outcome{err: fmt.Errorf("%s: %w", e.end, e.err)}
		case e.MTU == 0: // unknown, and so is the link
			return outcome{err: doubt{fmt.Errorf("%s: %s, so the link cannot be tested", e.end, e.Error)}}
		case e.Stranger != "":
			return outcome{err: fmt.Errorf("%s is connected to %s", e.end, e.Stranger)}
		case !e.Up:
			return outcome{err: fmt.Errorf("%s is down", e.end)}
		case mtu > e.MTU:
			return outcome{err: fmt.Errorf("%s has MTU %d, less than %d", e.end, e.MTU, mtu)}
		}
	}
	size := cmp.Or(mtu, a.MTU)
	switch {
	case mtu == 0 && a.MTU != b.MTU:
		return outcome{err: fmt.Errorf("the MTUs differ: %s has %d, %s has %d", k.A, a.MTU, k.B, b.MTU)}
	case b.Heard < size:
		return outcome{err: lost(k.A, k.B, size, b)}
	case a.Heard < size:
		return outcome{err: lost(k.B, k.A, size, a)}
	}
	return outcome{detail: fmt.Sprintf("%d bytes both ways", size)}
}

func lost(from, to End, size int, h heard) error {
	if h.Error != "" {
		return fmt.Errorf("%s: %s", to, h.Error)
	}
	return fmt.Errorf("no packet of %d bytes arrives from %s at %s", size, from, to)
}

// reverse judges a link that must be down: no packet may pass in either direction.
func reverse(o outcome, a, b heard) outcome {
	var unknown doubt
	switch {
	case a.err != nil || b.err != nil || errors.As(o.err, &unknown):
		return o
	case a.Heard > 0 || b.Heard > 0:
		return outcome{err: errors.New("the link passes packets")}
	}
	for _, h := range []heard{a, b} {
		if h.Up && h.Error != "" { // nothing was sent
			return outcome{err: doubt{fmt.Errorf("the link cannot be tested: %s", h.Error)}}
		}
	}
	return outcome{detail: "no packet passes"}
}

// basicLinks checks every link between nodes.
func (p *planner) basicLinks() { p.links(&Links{Common: Common{Pos: diag.Pos{}}}) }
