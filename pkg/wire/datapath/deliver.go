//go:build linux

package datapath

import (
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"golang.org/x/sys/unix"
)

// Out is the way of a wire's frames to the device. It is replaced, never changed.
type Out struct {
	Sock *Socket
	// Plain: the device cannot handle super-frames and unfinished checksums.
	Plain bool
	Drops *drop.Counters
}

// Deliverer writes frames to legs in batches. One goroutine uses it.
type Deliverer struct {
	Out  TxBatch
	leg  *Out
	None [virtio.HeaderLen]byte // the header of a frame that is complete
	// Copies holds frames that were created here, until Flush.
	Copies [][]byte
}

// NewDeliverer returns an empty deliverer.
func NewDeliverer() *Deliverer {
	d := &Deliverer{}
	d.Out.Failed = d.failed
	return d
}

// Open begins a frame of up to niov pieces for a leg.
func (d *Deliverer) Open(leg *Out, niov int) {
	if d.leg != leg || !d.Out.Room(niov+1) {
		d.Flush()
		d.leg, d.Out.FD = leg, leg.Sock.fd
	}
	d.Out.Start()
}

// Frame queues a frame in one piece, with its virtio-net header before it if
// hasVnet. It must stay until flush.
func (d *Deliverer) Frame(leg *Out, b []byte, hasVnet bool) {
	var vnet []byte
	if hasVnet {
		vnet, b = b[:virtio.HeaderLen], b[virtio.HeaderLen:]
	}
	d.Parts(leg, vnet, b, nil)
}

// Parts is frame for a header and a payload that lie apart.
func (d *Deliverer) Parts(leg *Out, vnet, header, payload []byte) {
	if vnet != nil && (leg.Plain || !leg.Sock.Virtio) {
		d.software(leg, vnet, header, payload)
		return
	}
	d.Open(leg, 3)
	if leg.Sock.Virtio {
		if vnet == nil {
			vnet = d.None[:]
		}
		d.Out.Piece(vnet)
	}
	d.Out.Piece(header)
	d.Out.Piece(payload)
}

// software segments a super-frame and finishes checksums for the device.
func (d *Deliverer) software(leg *Out, vnet, header, payload []byte) {
	var h virtio.Header
	h.Parse(vnet)
	frame := append(append(make([]byte, 0, len(header)+len(payload)), header...), payload...)
	err := virtio.Segment(h, frame, func(b []byte) {
		b = append([]byte(nil), b...)
		d.Open(leg, 2)
		if leg.Sock.Virtio {
			d.Out.Piece(d.None[:])
		}
		d.Out.Piece(b)
		d.Copies = append(d.Copies, b)
	})
	if err != nil {
		leg.Drops.Add(drop.Size)
	}
}

// Flush writes what is queued.
func (d *Deliverer) Flush() {
	if d.Out.N > 0 {
		d.Out.Flush()
	}
	clear(d.Copies)
	d.Copies = d.Copies[:0]
	d.leg = nil
}

func (d *Deliverer) failed(_ int, e unix.Errno) {
	switch e {
	case unix.ENETDOWN, unix.ENXIO, unix.ENODEV:
		d.leg.Drops.Add(drop.Down)
	case unix.EMSGSIZE, unix.EINVAL:
		d.leg.Drops.Add(drop.Size)
	default:
		d.leg.Drops.Add(drop.Queue)
	}
}
