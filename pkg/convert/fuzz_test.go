package convert

import (
	"context"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// FuzzRewrite rewrites any text: the result is YAML, and a second time changes nothing.
func FuzzRewrite(f *testing.F) {
	for _, c := range rewriteCases {
		f.Add(c.text)
	}
	load := func(text string) *topology.File {
		file, _ := topology.Load(context.Background(), &topology.Source{Name: "t", Data: []byte(text)}, topology.Options{})
		return file
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, _, err := Rewrite(text, load(text), kinds.Builtin(), "0.81")
		if err != nil {
			t.Skip(err)
		}
		again, _, err := Rewrite(out, load(out), kinds.Builtin(), "0.81")
		if err != nil || again != out {
			t.Errorf("a second time: %v\n%q\n%q\n%q", err, text, out, again)
		}
	})
}
