package plan

import (
	"context"
	"sync"
	"text/template"

	"github.com/c9s-lab/c9s/internal/gotemplate"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// BuiltinName is the Name of the built-in planner. Its version is the containerlab release
// whose kinds the catalogue describes.
const BuiltinName = "builtin/" + kinds.ContainerlabVersion

// Builtin plans from the kind catalogue alone, without touching anything.
type Builtin struct {
	catalogue *kinds.Catalogue
	texts     *texts
	configs   *texts
	files     sync.Map
}

// An Option configures a Builtin.
type Option func(*Builtin)

// WithTemplateFuncs adds functions to the templates in startup-configs. Without it they
// have only those of text/template.
func WithTemplateFuncs(funcs template.FuncMap) Option {
	return func(b *Builtin) { b.configs = newTexts(funcs) }
}

// NewBuiltin returns the planner for the kinds of a catalogue.
func NewBuiltin(catalogue *kinds.Catalogue, options ...Option) *Builtin {
	b := &Builtin{catalogue: catalogue, texts: newTexts(kindFuncs), configs: newTexts(nil)}
	for _, o := range options {
		o(b)
	}
	return b
}

// Name returns BuiltinName.
func (b *Builtin) Name() string { return BuiltinName }

// Plan plans node n. It returns an error only if a template of the user's kind, or of the
// node's startup-config, is still running when ctx ends or its time is over.
func (b *Builtin) Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error) {
	d, err := b.draft(ctx, l, n)
	if err != nil {
		return nil, err
	}
	d.plan.Diagnostics = d.problems.All()
	return d.plan, nil
}

// draft returns the plan of n with what it was made from. Its kind is nil if the node has
// no kind that can run. The error is that of Plan.
func (b *Builtin) draft(ctx context.Context, l *lab.Lab, n *lab.Node) (*draft, error) {
	d := &draft{ctx: ctx, planner: b, lab: l, node: n, plan: &Plan{Version: Version, Node: n.Name, Kind: n.Kind, Planner: BuiltinName}}
	kind, ok := b.catalogue.Lookup(n.Kind)
	switch {
	case !ok:
		d.problems.Errorf(kinds.CodeUnknown, n.Pos, "c9s kinds lists what there is; --kinds DIR adds to it",
			"node %q: kind %q is not in the catalogue", n.Name, n.Kind)
		return d, nil
	case kind.Reject(&d.problems, n.Pos, n.WrittenKind, n.Name):
		return d, nil
	}
	d.kind = kind
	if !kind.Custom() && n.StartupConfig == nil && len(n.Keys) == 0 {
		d.fill() // the catalogue's own templates terminate
		return d, nil
	}
	return gotemplate.Within(ctx, func(ctx context.Context) (*draft, error) {
		d.ctx = ctx
		d.fill()
		return d, nil
	})
}
