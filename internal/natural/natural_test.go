package natural

import (
	"slices"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	names := []string{"leaf10", "leaf2", "a", "leaf02", "leaf", "leaf2b", "b1c10", "b1c9"}
	slices.SortFunc(names, Compare)
	if got, want := strings.Join(names, " "), "a b1c9 b1c10 leaf leaf2 leaf2b leaf02 leaf10"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, pair := range [][2]string{{"leaf2", "leaf10"}, {"a", "b"}, {"a1b2", "a1b10"}, {"r", "r1"}, {"r01", "r2"}} {
		if Compare(pair[0], pair[1]) >= 0 || Compare(pair[1], pair[0]) <= 0 {
			t.Errorf("%q must come before %q", pair[0], pair[1])
		}
	}
}
