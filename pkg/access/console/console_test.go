package console

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// wire is a console's end of a connection.
type wire struct {
	io.Reader
	bytes.Buffer
}

func (w *wire) Read(p []byte) (int, error) { return w.Reader.Read(p) }

// What a QEMU console sends first (chardev of type telnet) is taken out and answered, however
// it is cut.
func TestTelnet(t *testing.T) {
	const greeting = "\xff\xfb\x01\xff\xfb\x03\xff\xfb\x00\xff\xfd\x00"
	in := greeting + "login: \xff\xff\r\n" + "\xff\xfd\x18" + "\xff\xfa\x18\x01\xff\xff\xf0\xff\xf0" + "\xff\xf1" + greeting + "end"
	for name, reader := range map[string]io.Reader{"whole": strings.NewReader(in), "bytes": iotest.OneByteReader(strings.NewReader(in))} {
		w := &wire{Reader: reader}
		c := NewTelnet(w)
		got, err := io.ReadAll(c)
		if want := "login: \xff\r\nend"; string(got) != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
		if want := "\xff\xfd\x01\xff\xfd\x03\xff\xfd\x00\xff\xfb\x00\xff\xfc\x18"; w.String() != want {
			t.Errorf("%s: answered %q, want %q", name, w.String(), want)
		}
		w.Buffer.Reset()
		if n, err := c.Write([]byte("a\xffb")); n != 3 || err != nil || w.String() != "a\xff\xffb" {
			t.Errorf("%s: %d, %v, %q", name, n, err, w.String())
		}
	}
}

func FuzzTelnet(f *testing.F) {
	f.Add([]byte("\xff\xfb\x01login\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := &wire{Reader: bytes.NewReader(data)}
		got, err := io.ReadAll(NewTelnet(w))
		if err != nil || len(got) > len(data) || w.Len() > len(data) {
			t.Errorf("%q became %q and the answer %q: %v", data, got, w.Bytes(), err)
		}
	})
}
