// Package capture is what a capture of links has in common at both of its ends: the stream from
// a sidecar, and the file that is made of several.
package capture

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Request asks a sidecar for frames. It is a line of JSON.
type Request struct {
	Interfaces []Interface `json:"interfaces"`
	// Filter is a program of the kernel's (BPF), empty for all frames.
	Filter []Instruction `json:"filter,omitempty"`
	// Snap is how many bytes of a frame are kept, 0 for all.
	Snap int `json:"snap,omitempty"`
}

// Interface is an interface of a node: its name is the Linux one.
type Interface struct {
	Node string `json:"node"`
	Name string `json:"name"`
}

func (i Interface) String() string { return i.Node + ":" + i.Name }

// Instruction is one of a filter: code, jt, jf and k of struct sock_filter.
type Instruction [4]uint32

// The limits of a request and of what a sidecar sends.
const (
	MaxRequest    = 1 << 20
	MaxInterfaces = 1024
	maxJSON       = 1 << 20
	maxFrame      = 1 << 18
)

// Direction is the way of a frame, as its node sees it.
type Direction uint8

// The directions.
const (
	In  Direction = 1
	Out Direction = 2
)

// Frame is one frame. Time is in nanoseconds since 1970, by the clock of the worker.
type Frame struct {
	// Interface is the position of the interface in the request.
	Interface int
	Direction Direction
	Time      int64
	// Length is that on the link. Data may be shorter.
	Length int
	// Segment and Segments are set for a part of a super-frame, as Linux passes them: the first
	// is 1.
	Segment, Segments int
	Data              []byte
}

// State is what a sidecar reports of a capture, at its beginning, every few seconds and at its
// end.
type State struct {
	Pod    string `json:"pod"`
	Worker string `json:"worker"`
	Clock  *Clock `json:"clock,omitempty"`
	// Interfaces are in the order of the request.
	Interfaces []InterfaceState `json:"interfaces"`
	// End is set in the last one.
	End bool `json:"end,omitempty"`
}

// InterfaceState is the state of an interface that is captured.
type InterfaceState struct {
	// Peer is the far end, "" for an interface that leads out of the lab.
	Peer string `json:"peer,omitempty"`
	// Error says why there is nothing to be captured.
	Error string `json:"error,omitempty"`
	// Received and Dropped count the frames that passed the filter. For those dropped there
	// was no room.
	Received uint64 `json:"received"`
	Dropped  uint64 `json:"dropped"`
}

// Clock relates the clock of a Pod's worker to those of others.
type Clock struct {
	// Epoch is that of the wire's process, whose clock began at Base by the worker's clock, in
	// nanoseconds since 1970.
	Epoch uint64 `json:"epoch"`
	Base  int64  `json:"base"`
	// Peers are the clocks of Pods that the wire has sessions with.
	Peers []PeerClock `json:"peers,omitempty"`
}

// PeerClock is how far the wire's clock of another Pod is ahead of this Pod's, as the echo of a
// heartbeat says, and how wrong that may be.
type PeerClock struct {
	Pod    string        `json:"pod"`
	Epoch  uint64        `json:"epoch"`
	Offset time.Duration `json:"offset"`
	Error  time.Duration `json:"error"`
}

// The kinds of records.
const (
	kindFrame = 'F'
	kindTick  = 'T'
	kindState = 'S'
)

// A record is a byte for its kind, four for the length of what follows, and that. frameHeader is
// what a frame has before its data: interface (2), direction (1), unused (1), segment (2),
// segments (2), length (4), time (8).
const (
	recordHeader = 5
	frameHeader  = 20
)

// Encoder writes the stream. It keeps the first error.
type Encoder struct {
	w    *bufio.Writer
	head [recordHeader + frameHeader]byte
	err  error
}

// NewEncoder returns an encoder.
func NewEncoder(w io.Writer) *Encoder { return &Encoder{w: bufio.NewWriterSize(w, 128<<10)} }

func (e *Encoder) write(data []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(data)
	}
}

func (e *Encoder) record(kind byte, data []byte) {
	e.head[0] = kind
	binary.BigEndian.PutUint32(e.head[1:], uint32(len(data)))
	e.write(e.head[:recordHeader])
	e.write(data)
}

// Frame writes a frame.
func (e *Encoder) Frame(f *Frame) {
	e.head[0] = kindFrame
	binary.BigEndian.PutUint32(e.head[1:], uint32(frameHeader+len(f.Data)))
	h := e.head[recordHeader:]
	binary.BigEndian.PutUint16(h[0:], uint16(f.Interface))
	h[2], h[3] = byte(f.Direction), 0
	binary.BigEndian.PutUint16(h[4:], uint16(f.Segment))
	binary.BigEndian.PutUint16(h[6:], uint16(f.Segments))
	binary.BigEndian.PutUint32(h[8:], uint32(f.Length))
	binary.BigEndian.PutUint64(h[12:], uint64(f.Time))
	e.write(e.head[:])
	e.write(f.Data)
}

// Tick says that all frames before a time have been written.
func (e *Encoder) Tick(at int64) {
	e.record(kindTick, binary.BigEndian.AppendUint64(nil, uint64(at)))
}

// State writes a state.
func (e *Encoder) State(s State) {
	data, err := json.Marshal(s)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.record(kindState, data)
}

// Flush writes what is buffered, and returns the first error of all.
func (e *Encoder) Flush() error {
	if e.err == nil {
		e.err = e.w.Flush()
	}
	return e.err
}

// Record is what a stream has next: one of the three.
type Record struct {
	Frame *Frame
	Tick  int64
	State *State
}

// Decoder reads the stream of a sidecar, which may send anything.
type Decoder struct {
	r          *bufio.Reader
	interfaces int
	// room is what is left of the memory of the last records: many small ones share a piece.
	room []byte
}

// NewDecoder returns a decoder for the stream of a number of interfaces.
func NewDecoder(r io.Reader, interfaces int) *Decoder {
	return &Decoder{r: bufio.NewReaderSize(r, 128<<10), interfaces: interfaces}
}

var errStream = errors.New("the sidecar's stream is not one of a capture")

// Next returns the next record, io.EOF at the end.
func (d *Decoder) Next() (Record, error) {
	var head [recordHeader]byte
	if _, err := io.ReadFull(d.r, head[:]); err != nil {
		return Record{}, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	if n > max(maxJSON, frameHeader+maxFrame) {
		return Record{}, errStream
	}
	data := d.alloc(n)
	if _, err := io.ReadFull(d.r, data); err != nil {
		return Record{}, fmt.Errorf("%w: it ends early", errStream)
	}
	switch head[0] {
	case kindFrame:
		return d.frame(data)
	case kindTick:
		if n == 8 {
			return Record{Tick: int64(binary.BigEndian.Uint64(data))}, nil
		}
	case kindState:
		var s State
		if err := json.Unmarshal(data, &s); err == nil && len(s.Interfaces) == d.interfaces {
			return Record{State: &s}, nil
		}
	}
	return Record{}, errStream
}

// alloc returns n bytes. What shares its memory with others is freed with the last of them.
func (d *Decoder) alloc(n int) []byte {
	const piece = 32 << 10
	if n > piece/4 {
		return make([]byte, n)
	}
	if n > len(d.room) {
		d.room = make([]byte, piece)
	}
	data := d.room[:n:n]
	d.room = d.room[n:]
	return data
}

func (d *Decoder) frame(data []byte) (Record, error) {
	if len(data) < frameHeader {
		return Record{}, errStream
	}
	f := &Frame{
		Interface: int(binary.BigEndian.Uint16(data[0:])), Direction: Direction(data[2]),
		Segment: int(binary.BigEndian.Uint16(data[4:])), Segments: int(binary.BigEndian.Uint16(data[6:])),
		Length: int(binary.BigEndian.Uint32(data[8:])), Time: int64(binary.BigEndian.Uint64(data[12:])), Data: data[frameHeader:],
	}
	if f.Interface >= d.interfaces || f.Length < len(f.Data) || f.Length > maxFrame || f.Direction != In && f.Direction != Out {
		return Record{}, errStream
	}
	return Record{Frame: f}, nil
}
