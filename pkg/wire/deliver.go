//go:build linux

package wire

import (
	"golang.org/x/sys/unix"
)

// legOut is where a wire's frames go to the device. It is replaced, never changed.
type legOut struct {
	sock *legSocket
	// plain: the device takes no super-frames and no unfinished checksums.
	plain bool
	drops *dropCounters
}

// deliverer writes frames to legs in batches. One goroutine uses it.
type deliverer struct {
	out  txBatch
	leg  *legOut
	none [vnetHdrLen]byte // the header of a frame that is complete
	// copies holds frames that were made here, until flush.
	copies [][]byte
}

func newDeliverer() *deliverer {
	d := &deliverer{}
	d.out.failed = d.failed
	return d
}

// open begins a frame of up to niov pieces for a leg.
func (d *deliverer) open(leg *legOut, niov int) {
	if d.leg != leg || !d.out.room(niov+1) {
		d.flush()
		d.leg, d.out.fd = leg, leg.sock.fd
	}
	d.out.start()
}

// frame queues a frame in one piece, with its virtio-net header before it if
// hasVnet. It must stay until flush.
func (d *deliverer) frame(leg *legOut, b []byte, hasVnet bool) {
	var vnet []byte
	if hasVnet {
		vnet, b = b[:vnetHdrLen], b[vnetHdrLen:]
	}
	d.parts(leg, vnet, b, nil)
}

// parts is frame for a header and a payload that lie apart.
func (d *deliverer) parts(leg *legOut, vnet, header, payload []byte) {
	if vnet != nil && (leg.plain || !leg.sock.vnet) {
		d.software(leg, vnet, header, payload)
		return
	}
	d.open(leg, 3)
	if leg.sock.vnet {
		if vnet == nil {
			vnet = d.none[:]
		}
		d.out.piece(vnet)
	}
	d.out.piece(header)
	d.out.piece(payload)
}

// software finishes what the device could not.
func (d *deliverer) software(leg *legOut, vnet, header, payload []byte) {
	var h vnetHdr
	h.parse(vnet)
	frame := append(append(make([]byte, 0, len(header)+len(payload)), header...), payload...)
	err := segment(h, frame, func(b []byte) {
		b = append([]byte(nil), b...)
		d.open(leg, 2)
		if leg.sock.vnet {
			d.out.piece(d.none[:])
		}
		d.out.piece(b)
		d.copies = append(d.copies, b)
	})
	if err != nil {
		leg.drops.add(dropSize)
	}
}

func (d *deliverer) flush() {
	if d.out.n > 0 {
		d.out.flush()
	}
	clear(d.copies)
	d.copies = d.copies[:0]
	d.leg = nil
}

func (d *deliverer) failed(_ int, e unix.Errno) {
	switch e {
	case unix.ENETDOWN, unix.ENXIO, unix.ENODEV:
		d.leg.drops.add(dropDown)
	case unix.EMSGSIZE, unix.EINVAL:
		d.leg.drops.add(dropSize)
	default:
		d.leg.drops.add(dropQueue)
	}
}
