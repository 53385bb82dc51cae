package plan

import (
	"fmt"
	"strings"
	"testing"
)

// Of a long text the beginning and the end are kept, whatever the pieces.
func TestEndsBuffer(t *testing.T) {
	short := &endsBuffer{limit: 100}
	for _, piece := range []string{"panic: ", "out of ", "cheese\n"} {
		fmt.Fprint(short, piece)
	}
	if got := short.String(); got != "; it said: panic: out of cheese" {
		t.Errorf("%q", got)
	}
	for _, size := range []int{1, 7, 60, 5000} {
		b := &endsBuffer{limit: 100}
		text := "SIGSEGV: segmentation violation" + strings.Repeat("x", 4000) + "the last line"
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if wrote, err := b.Write([]byte(rest[:n])); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		got := b.String()
		if !strings.HasPrefix(got, "; it said: SIGSEGV: segmentation violation") || !strings.HasSuffix(got, "the last line") || !strings.Contains(got, "[...]") || len(got) > 150 {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
	exact := &endsBuffer{limit: 10}
	fmt.Fprint(exact, "0123456789")
	if got := exact.String(); got != "; it said: 0123456789" {
		t.Errorf("%q", got)
	}
}
