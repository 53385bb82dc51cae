package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"plain text, 日本語, é, 👩‍💻":  "plain text, 日本語, é, 👩‍💻",
		"two\nlines\tand a tab":    "two\nlines\tand a tab",
		"\x1b[2J\x1b]0;title\a":    `\u001b[2J\u001b]0;title\u0007`,
		"\u009b31mred\u0090":       `\u009b31mred\u0090`,
		"raw C1 \x9b31m":           `raw C1 \x9b31m`,
		"over\rwritten\b\x7f\x00":  `over\u000dwritten\u0008\u007f\u0000`,
		"evil\u202egnp.exe\u2069":  `evil\u202egnp.exe\u2069`,
		"marks \u200e\u200f\u061c": `marks \u200e\u200f\u061c`,
		"lines \u2028\u2029":       `lines \u2028\u2029`,
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := Cell("a\nb\tc\x1b"), `a\nb\tc\u001b`; got != want {
		t.Errorf("Cell = %q, want %q", got, want)
	}
}

// TestWriterSplitCharacters writes every text byte by byte: what comes out is the
// same as of one call.
func TestWriterSplitCharacters(t *testing.T) {
	for _, in := range []string{"a日本\u202e\x1b[31mé\x9b\n", "ends within \xe6\x97", "\xf0\x9f\x91", "\x1b"} {
		var out bytes.Buffer
		w := New(&out)
		for i := range len(in) {
			if n, err := w.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), Text(in); got != want {
			t.Errorf("%q byte by byte is %q, want %q", in, got, want)
		}
	}
}

// TestJSONUnchanged: the escapes are JSON's own.
func TestJSONUnchanged(t *testing.T) {
	in := map[string]string{"k\u202e": "\x1b\u009b\x7f\u2066 \\ \" é"}
	var out bytes.Buffer
	if err := json.NewEncoder(New(&out)).Encode(in); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(out.String(), func(r rune) bool { return obeyed(r) && r != '\n' }) {
		t.Errorf("%q", out.String())
	}
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || fmt.Sprint(back) != fmt.Sprint(in) {
		t.Errorf("%q is read back as %q, %v", out.String(), back, err)
	}
}

func TestTableKeepsCellsInTheirPlace(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0))
	table.Row("LAB", "STATE")
	table.Row("a\nb\x1b[2J", "x\ty\u202e")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "LAB            STATE\na\\nb\\u001b[2J  x\\ty\\u202e\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b[2J\u202e\x9b")
	f.Fuzz(func(t *testing.T, in string) {
		for _, out := range []string{Text(in), Cell(in)} {
			if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return obeyed(r) && r != '\n' && r != '\t' }) {
				t.Errorf("%q gives %q", in, out)
			}
			if Text(out) != out {
				t.Errorf("%q is escaped twice", in)
			}
		}
	})
}
