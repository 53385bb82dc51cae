package tunnel

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// MaxDatagram is the length of the longest datagram, in bytes.
const MaxDatagram = 1<<16 - 1

// Datagrams is a connection of datagrams over one of bytes: each has its length before it, two
// bytes, the high one first. Each Write is a datagram. Each Read returns one, cut to the
// length of its argument.
type Datagrams struct {
	net.Conn
	read, write sync.Mutex
}

// NewDatagrams carries datagrams over a connection of bytes.
func NewDatagrams(c net.Conn) *Datagrams { return &Datagrams{Conn: c} }

func (d *Datagrams) Read(p []byte) (int, error) {
	d.read.Lock()
	defer d.read.Unlock()
	var header [2]byte
	if _, err := io.ReadFull(d.Conn, header[:]); err != nil {
		return 0, err
	}
	size := int(binary.BigEndian.Uint16(header[:]))
	n, err := io.ReadFull(d.Conn, p[:min(size, len(p))])
	if err == nil && size > n {
		_, err = io.CopyN(io.Discard, d.Conn, int64(size-n))
	}
	return n, err
}

func (d *Datagrams) Write(p []byte) (int, error) {
	if len(p) > MaxDatagram {
		return 0, fmt.Errorf("a datagram of %d bytes is too long", len(p))
	}
	d.write.Lock()
	defer d.write.Unlock()
	whole := append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(p)), uint16(len(p))), p...)
	if _, err := d.Conn.Write(whole); err != nil {
		return 0, err
	}
	return len(p), nil
}
