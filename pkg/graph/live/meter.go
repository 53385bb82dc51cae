package live

import (
	"time"

	"github.com/c9s-lab/c9s/pkg/status"
)

// Key identifies a link of a lab.
type Key struct{ Node, Interface string }

// KeyOf returns the key of a link: its first end.
func KeyOf(k status.Link) Key { return Key{k.A.Node, k.A.Interface} }

// Rates are what the two ends of links send, in bit/s.
type Rates map[Key][2]float64

// Meter computes rates from counters that are read again and again.
type Meter struct {
	at    time.Time
	bytes map[Key][2]uint64
}

// Read takes the counters of now, and returns the rates since those before. A link whose
// counters began again, as those of a new Pod, has none.
func (m *Meter) Read(links []status.Link, now time.Time) Rates {
	seconds := now.Sub(m.at).Seconds()
	rates, bytes := Rates{}, map[Key][2]uint64{}
	for _, k := range links {
		if k.State == status.LinkUnknown {
			continue
		}
		key, sent := KeyOf(k), [2]uint64{k.TxBytes, k.RxBytes}
		bytes[key] = sent
		if old, ok := m.bytes[key]; ok && seconds > 0 && sent[0] >= old[0] && sent[1] >= old[1] {
			rates[key] = [2]float64{float64(sent[0]-old[0]) * 8 / seconds, float64(sent[1]-old[1]) * 8 / seconds}
		}
	}
	m.at, m.bytes = now, bytes
	return rates
}
