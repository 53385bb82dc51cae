//go:build !nocluster

package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// keyInterrupt is Ctrl-C on a terminal that passes every key on.
const keyInterrupt = 3

// readKeys passes on each key that is pressed on a terminal, without waiting for a line, and
// calls interrupt for Ctrl-C. restore gives the terminal back its mode. The channel is nil if
// there is no terminal.
func readKeys(in io.Reader, interrupt func()) (keys <-chan byte, restore func()) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, func() {}
	}
	state, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return nil, func() {}
	}
	out := make(chan byte, 16)
	go func() { // it ends with the process
		buffer := make([]byte, 1)
		for {
			n, err := file.Read(buffer)
			if err != nil {
				return
			}
			switch {
			case n == 1 && buffer[0] == keyInterrupt:
				interrupt()
			case n == 1:
				select {
				case out <- buffer[0]:
				default: // nobody can press that many
				}
			}
		}
	}()
	return out, func() { _ = term.Restore(int(file.Fd()), state) }
}
