// Package console speaks the little of Telnet that the serial consoles of virtual machines need.
package console

import (
	"bytes"
	"io"
	"sync"
)

// The bytes of Telnet (RFC 854, 855, 856, 857, 858).
const (
	iac  = 255
	dont = 254
	do   = 253
	wont = 252
	will = 251
	sb   = 250
	se   = 240

	optionBinary = 0
	optionEcho   = 1
	optionSGA    = 3
)

// Telnet takes Telnet's commands out of a connection to a console, and answers them: the far
// end echoes, sends at once and sends all bytes; everything else is declined.
type Telnet struct {
	conn io.ReadWriter

	state   byte // what of a command has been read: 0, iac, do, dont, will, wont, sb
	ending  bool // within sb, an iac was read
	writing sync.Mutex
	agreed  map[[2]byte]bool
}

// NewTelnet returns the connection without Telnet's commands.
func NewTelnet(conn io.ReadWriter) *Telnet { return &Telnet{conn: conn, agreed: map[[2]byte]bool{}} }

// Read returns what the console prints. It may return 0 bytes.
func (t *Telnet) Read(p []byte) (int, error) {
	n, err := t.conn.Read(p)
	out := p[:0]
	for _, c := range p[:n] {
		if plain, is := t.next(c); is {
			out = append(out, plain)
		}
	}
	return len(out), err
}

// next takes one byte, and returns it if it is none of a command's.
func (t *Telnet) next(c byte) (byte, bool) {
	switch t.state {
	case 0:
		if c != iac {
			return c, true
		}
		t.state = iac
	case iac:
		switch c {
		case iac:
			t.state = 0
			return c, true
		case do, dont, will, wont, sb:
			t.state = c
		default:
			t.state = 0
		}
	case sb:
		if t.ending && c == se {
			t.state = 0
		}
		t.ending = c == iac && !t.ending
	default:
		t.answer(t.state, c)
		t.state = 0
	}
	return 0, false
}

// answer agrees to what a console needs, once, and declines the rest.
func (t *Telnet) answer(command, option byte) {
	var reply byte
	switch command {
	case will:
		reply = dont
		if option == optionBinary || option == optionEcho || option == optionSGA {
			reply = do
		}
	case do:
		reply = wont
		if option == optionBinary || option == optionSGA {
			reply = will
		}
	default:
		return // it ends what is not there
	}
	if key := [2]byte{reply, option}; !t.agreed[key] {
		t.agreed[key] = true
		t.writing.Lock()
		defer t.writing.Unlock()
		_, _ = t.conn.Write([]byte{iac, reply, option})
	}
}

// Write sends keys to the console.
func (t *Telnet) Write(p []byte) (int, error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	if _, err := t.conn.Write(bytes.ReplaceAll(p, []byte{iac}, []byte{iac, iac})); err != nil {
		return 0, err
	}
	return len(p), nil
}
