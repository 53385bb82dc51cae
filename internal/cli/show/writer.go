package show

import (
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// Writer escapes everything that is written to it, as Text does. A character may be split
// over two calls of Write.
type Writer struct {
	below io.Writer
	// colours permits the colours and line ends of a device's own output.
	colours bool

	mu   sync.Mutex
	tail string // the beginning of a character or colour
	err  error  // the first that a write failed with
}

// New returns a Writer onto w, or w itself if it is one.
func New(w io.Writer) *Writer {
	if own, ok := w.(*Writer); ok {
		return own
	}
	return &Writer{below: w}
}

// Raw returns the writer below a Writer. c9s uses it to control the terminal itself (colours,
// the cursor), and passes all other text through Text or Cell.
func Raw(w io.Writer) io.Writer {
	if own, ok := w.(*Writer); ok {
		return own.below
	}
	return w
}

// File returns the file that w is, or that it writes to.
func File(w io.Writer) (*os.File, bool) {
	f, ok := Raw(w).(*os.File)
	return f, ok
}

// Terminal reports whether w is a terminal.
func Terminal(w io.Writer) bool {
	f, ok := File(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Document returns where a document for programs goes: as it is into a file or a pipe,
// as Text onto a terminal.
func Document(w io.Writer) io.Writer {
	if Terminal(w) {
		return New(w)
	}
	return Raw(w)
}

// Stream returns where the output of a device's program goes: as it is into a file or a
// pipe, as Text with its colours onto a terminal.
func Stream(w io.Writer) io.Writer {
	if Terminal(w) {
		return &Writer{below: Raw(w), colours: true}
	}
	return Raw(w)
}

// Write writes p as Text. It returns len(p) unless the Writer below fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := string(p)
	if w.tail == "" && clean(text, false) {
		return len(p), w.write(text)
	}
	text = w.tail + text
	whole := len(text) - w.unfinished(text)
	w.tail = text[whole:]
	return len(p), w.write(w.text(text[:whole]))
}

func (w *Writer) write(text string) error {
	_, err := io.WriteString(w.below, text)
	if w.err == nil {
		w.err = err
	}
	return err
}

// Flush writes the beginning of a character that never ended. Its error is the first of
// all writes.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	tail := w.tail
	w.tail = ""
	if tail != "" {
		w.write(w.text(tail))
	}
	return w.err
}

// passes matches what a device's program may send to a terminal: colours (SGR, ECMA-48) and
// line ends.
var passes = regexp.MustCompile("\x1b\\[[0-9;:]{0,30}m|\r+\n")

func (w *Writer) text(s string) string {
	if !w.colours {
		return Text(s)
	}
	var b strings.Builder
	from := 0
	for _, at := range passes.FindAllStringIndex(s, -1) {
		b.WriteString(Text(s[from:at[0]]))
		b.WriteString(s[at[0]:at[1]])
		from = at[1]
	}
	b.WriteString(Text(s[from:]))
	return b.String()
}

// begun is the beginning of what passes.
var begun = regexp.MustCompile("(?:\x1b(?:\\[[0-9;:]{0,30})?|\r+)$")

// unfinished is how many bytes at the end of s may belong to what is written next.
func (w *Writer) unfinished(s string) int {
	if w.colours {
		if at := begun.FindStringIndex(s); at != nil && len(s)-at[0] < 64 {
			return len(s) - at[0]
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if c := s[len(s)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
