//go:build linux

package wire

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// Status is what a fabric does now.
type Status struct {
	Pod string `json:"pod"`
	// Epoch is when the process began, nanoseconds since 1970.
	Epoch uint64 `json:"epoch"`
	// Mode is open, authenticated or encrypted.
	Mode string `json:"mode"`
	// UnderlayMTU is that of the Pod network's interface, bytes.
	UnderlayMTU int `json:"underlayMtu"`
	// Segmentation tells whether the kernel cuts and merges datagrams.
	Segmentation bool `json:"segmentation"`
	// Dropped counts datagrams by reason.
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	Wires   []WireStatus      `json:"wires"`
}

// WireStatus is the state of one wire.
type WireStatus struct {
	ID      lab.WireID `json:"id"`
	PeerPod string     `json:"peerPod,omitempty"`
	Peer    string     `json:"peer,omitempty"` // address and port
	// PeerEpoch is the peer's Epoch, 0 without a session.
	PeerEpoch uint64 `json:"peerEpoch,omitempty"`
	Leg       string `json:"leg"`
	LocalLeg  string `json:"localLeg,omitempty"`
	// Up tells that the device has its cable plugged in; Reason why not.
	Up     bool      `json:"up"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	// LocalCarrier and RemoteCarrier are the devices' own states.
	LocalCarrier  bool `json:"localCarrier"`
	RemoteCarrier bool `json:"remoteCarrier"`
	// Datapath is udp, vxlan or local: what this end sends by. RemoteDatapath is
	// what the far end sends by. Why tells why auto or vxlan is not vxlan.
	Datapath       string `json:"datapath"`
	RemoteDatapath string `json:"remoteDatapath,omitempty"`
	Why            string `json:"why,omitempty"`
	// RTT is of heartbeats, milliseconds; Loss of heartbeats this end sent, 0..1.
	RTT  float64 `json:"rttMs"`
	Loss float64 `json:"loss"`
	// PathMTU is bytes of IP packet.
	PathMTU int `json:"pathMtu,omitempty"`
	// The counters are of the udp and local datapaths; a super-frame counts as
	// one. For vxlan the kernel counts, at device c9sv<id>.
	TxFrames   uint64            `json:"txFrames"`
	TxBytes    uint64            `json:"txBytes"`
	RxFrames   uint64            `json:"rxFrames"`
	RxBytes    uint64            `json:"rxBytes"`
	Drops      map[string]uint64 `json:"drops,omitempty"`
	Impairment *lab.Impairment   `json:"impairment,omitempty"`
}

// Status tells what the fabric does now; the wires are sorted by id.
func (f *Fabric) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{Pod: f.opt.Pod, Epoch: f.eng.epoch, Mode: "open", UnderlayMTU: f.eng.limit, Segmentation: f.gso.Load(), Dropped: f.drops.report(), Wires: []WireStatus{}}
	switch {
	case f.opt.Encrypt:
		s.Mode = "encrypted"
	case f.eng.keyed:
		s.Mode = "authenticated"
	}
	if n := f.overrun.Load(); n > 0 {
		if s.Dropped == nil {
			s.Dropped = map[string]uint64{}
		}
		s.Dropped[dropNames[dropOverrun]] = uint64(n)
	}
	for _, w := range f.wires {
		s.Wires = append(s.Wires, f.wireStatus(w))
	}
	slices.SortFunc(s.Wires, func(a, b WireStatus) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

func (f *Fabric) wireStatus(w *wireEnd) WireStatus {
	if sock := w.legs[0].sock; sock != nil {
		w.drops.addN(dropOverrun, int(sock.overruns()))
	}
	l := w.legs[0]
	s := WireStatus{ID: w.id, PeerPod: w.want.PeerPod, Leg: w.want.Leg, LocalLeg: w.want.LocalLeg, Up: w.up, Reason: w.reason, Since: w.since,
		LocalCarrier: l.observed && l.device, Datapath: DatapathUDP,
		TxFrames: w.txFrames.Load(), TxBytes: w.txBytes.Load(), RxFrames: w.rxFrames.Load(), RxBytes: w.rxBytes.Load(), Drops: w.drops.report()}
	if impairs(w.want.Impairment) {
		s.Impairment = w.want.Impairment
	}
	if w.local() {
		s.Datapath, s.RemoteCarrier = DatapathLocal, w.legs[1].observed && w.legs[1].device
		return s
	}
	if w.vx.sending {
		s.Datapath = DatapathVXLAN
	}
	s.Why = w.vx.reason
	p := f.eng.peers[w.want.PeerPod]
	if p == nil || p.cur == nil {
		return s
	}
	bits := p.remote[w.id]
	s.RemoteCarrier, s.RemoteDatapath = bits&beatUp != 0, DatapathUDP
	if bits&beatSending != 0 {
		s.RemoteDatapath = DatapathVXLAN
	}
	addr := *p.cur.addr.Load()
	s.Peer, s.PeerEpoch, s.PathMTU = netip.AddrPortFrom(addr.Addr(), addr.Port()).String(), p.cur.epoch, p.cur.mtu.current
	s.RTT, s.Loss = float64(p.cur.rtt)/float64(time.Millisecond), p.cur.loss
	return s
}
