package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// Still is a status without what changes all the time: a lab that carries traffic is
// not news.
func (s Status) Still() Status {
	s.Fabric.Dropped, s.Fabric.Clock, s.LastErrorAt = nil, nil, time.Time{}
	if s.Mgmt != nil {
		m := *s.Mgmt
		m.Peers = slices.Clone(m.Peers)
		for i := range m.Peers {
			m.Peers[i].RTT = 0
		}
		s.Mgmt = &m
	}
	s.Interfaces = slices.Clone(s.Interfaces)
	for i := range s.Interfaces {
		s.Interfaces[i].Counters = nil
	}
	s.Fabric.Wires = slices.Clone(s.Fabric.Wires)
	for i := range s.Fabric.Wires {
		w := &s.Fabric.Wires[i]
		w.RTT, w.Loss, w.Drops = 0, 0, nil
		w.TxFrames, w.TxBytes, w.RxFrames, w.RxBytes = 0, 0, 0, 0
	}
	return s
}

// Tag tells one Still status from another.
func (s Status) Tag() string {
	data, err := json.Marshal(s.Still())
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}
