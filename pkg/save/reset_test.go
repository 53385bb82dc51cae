package save

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// TestReset: what runs in a device for its reset, and what counts as a failure.
func TestReset(t *testing.T) {
	crpd, ok := kinds.Builtin().Lookup("juniper_crpd")
	if !ok {
		t.Fatal("there is no kind juniper_crpd")
	}
	linux, _ := kinds.Builtin().Lookup("linux")
	for name, c := range map[string]struct {
		kind     *kinds.Kind
		declared []byte
		codes    map[string]int
		out      map[string]string
		want     string // of the error
		ran      []string
	}{
		"loads the declared configuration": {kind: crpd, declared: []byte("host-name a;\n"), ran: []string{"sh < host-name a;", "cli < configure exclusive"}},
		"the device rejects it":            {kind: crpd, declared: []byte("x"), out: map[string]string{"cli": "x\nsyntax error at x\n"}, want: "the device reports: syntax error at x", ran: []string{"sh < x", "cli < configure exclusive"}},
		"the command fails":                {kind: crpd, declared: []byte("x"), codes: map[string]int{"cli": 1}, want: "cli failed with exit code 1", ran: []string{"sh < x", "cli < configure exclusive"}},
		"the file cannot be written":       {kind: crpd, declared: []byte("x"), codes: map[string]int{"sh": 1}, want: "writing /tmp/c9s-reset.conf: exit code 1", ran: []string{"sh < x"}},
		"nothing is declared":              {kind: crpd, want: "no rollback: the topology has no configuration of the node"},
		"no rule":                          {kind: &kinds.Kind{Name: "host"}, declared: []byte("x"), want: "no rollback: kind host has none"},
		"a container without FRR":          {kind: linux, declared: []byte("x"), codes: map[string]int{"sh": 127}, want: "no rollback: its container cannot do it", ran: []string{"sh < "}},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			d := Device{Exec: func(_ context.Context, argv []string, in io.Reader, out, _ io.Writer) (int, error) {
				first := ""
				if in != nil {
					text, err := io.ReadAll(in)
					if err != nil {
						t.Fatal(err)
					}
					first, _, _ = strings.Cut(string(text), "\n")
				}
				ran = append(ran, argv[0]+" < "+first)
				_, err := io.WriteString(out, c.out[argv[0]])
				return c.codes[argv[0]], err
			}}
			err := Reset(t.Context(), c.kind, d, c.declared)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want || errors.Is(err, ErrNoRollback) != strings.HasPrefix(c.want, "no rollback") {
				t.Errorf("error %q, want %q", got, c.want)
			}
			if !slices.Equal(ran, c.ran) {
				t.Errorf("ran %q, want %q", ran, c.ran)
			}
		})
	}
}
