package show

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudo terminal, and returns the side that programs write to and what
// comes out of the other.
func terminal(t *testing.T) (slave *os.File, read func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no pseudo terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip("there are no pseudo terminals here: ", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no pseudo terminals here: ", err)
	}
	t.Cleanup(func() { slave.Close() })
	return slave, func() string { // a line
		var line strings.Builder
		for buf := make([]byte, 1); !strings.HasSuffix(line.String(), "\n"); {
			n, err := master.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			line.Write(buf[:n])
		}
		return line.String()
	}
}

// TestDocumentsAndStreams go as they are into a pipe, and harmless onto a terminal; a
// device's colours stay.
func TestDocumentsAndStreams(t *testing.T) {
	const text = "\x1b[1;31mred\x1b[0m \x1b[2J\u202e\r\n"
	var pipe bytes.Buffer
	for _, w := range []interface{ Write([]byte) (int, error) }{Document(New(&pipe)), Stream(New(&pipe))} {
		pipe.Reset()
		fmt.Fprint(w, text)
		if pipe.String() != text {
			t.Errorf("a pipe gets %q", pipe.String())
		}
	}
	slave, read := terminal(t)
	fmt.Fprint(Document(New(slave)), text)
	if got, want := read(), `\u001b[1;31mred\u001b[0m \u001b[2J\u202e\u000d`+"\r\n"; got != want {
		t.Errorf("a terminal gets the document %q, want %q", got, want)
	}
	stream := Stream(New(slave))
	for i := range len(text) {
		fmt.Fprint(stream, text[i:i+1])
	}
	if got, want := strings.ReplaceAll(read(), "\r", ""), "\x1b[1;31mred\x1b[0m "+`\u001b[2J\u202e`+"\n"; got != want {
		t.Errorf("a terminal gets the stream %q, want %q", got, want)
	}
}
