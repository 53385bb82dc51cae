package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/convert"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Converted is a topology that was rewritten for a release of containerlab.
type Converted struct {
	// Text is the new text, Compiled what it compiles to for that release. It must not
	// be closed: it shares the source of the old one.
	Text     string
	Compiled *Compiled
	// Diags say what was dropped, and what the release still does not accept.
	Diags []diag.Diagnostic
}

// Convert rewrites the topology for a release of containerlab. c was compiled from in.
// The error is for a topology that cannot be rewritten.
func (c *Compiled) Convert(ctx context.Context, in Input, release string) (*Converted, error) {
	if c.Source.IsTemplate() {
		return nil, fmt.Errorf("%s is a template, and only plain YAML can be rewritten; \"c9s validate --for %s\" names what has to change", c.Source.Name, release)
	}
	if slices.ContainsFunc(c.Diags, func(d diag.Diagnostic) bool { return d.Code == topology.CodeTooLarge }) {
		return nil, fmt.Errorf("%s is too large", c.Source.Name)
	}
	text, diags, err := convert.Rewrite(string(c.Source.Data), c.File, c.Kinds, release)
	if err != nil {
		return nil, err
	}
	src := *c.Source
	src.Data = []byte(text)
	in.For = release
	renewed := &Compiled{Source: &src, Kinds: c.Kinds}
	if err := renewed.read(ctx, in); err != nil {
		return nil, err
	}
	out := &Converted{Text: text, Compiled: renewed, Diags: slices.Concat(diags, left(diags, renewed.Diags))}
	if c.Lab == nil || HasErrors(c.Diags) {
		return out, nil // there is no lab to compare
	}
	before, err := c.meaning(ctx)
	if err != nil {
		return nil, err
	}
	after, err := renewed.meaning(ctx)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(before, after) {
		return nil, fmt.Errorf("%s would not mean the same when rewritten, so it stays as it is; \"c9s validate --for %s\" names what has to change", c.Source.Name, release)
	}
	return out, nil
}

// left returns what the release does not accept in the rewritten topology, unless it has
// to be rewritten by hand, which is reported already.
func left(reported, all []diag.Diagnostic) []diag.Diagnostic {
	if slices.ContainsFunc(reported, func(d diag.Diagnostic) bool { return d.Code == convert.CodeByHand }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(d diag.Diagnostic) bool { return d.Code != compile.CodeRelease })
}

// meaning is what the lab comes to, without the places in the file: the plans of its
// nodes from the catalogue, and its links.
func (c *Compiled) meaning(ctx context.Context) ([]byte, error) {
	planner, err := ChoosePlanner("builtin", "", c.Kinds)
	if err != nil {
		return nil, err
	}
	plans, _, err := c.Plan(ctx, planner, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range plans {
		p.Diagnostics = nil
		for i := range p.Containers {
			// convert.CodeChanged reports what control cards are told.
			if env := p.Containers[i].Env; kinds.IsCPMSlot(env["NOKIA_SROS_SLOT"]) {
				delete(env, "NOKIA_SROS_SFM")
			}
		}
	}
	links := make([]lab.Link, 0, len(c.Lab.Links))
	for _, l := range c.Lab.Links {
		plain := *l
		plain.Pos, plain.Endpoints = diag.Pos{}, nil
		for _, e := range l.Endpoints {
			end := *e
			end.Pos = diag.Pos{}
			plain.Endpoints = append(plain.Endpoints, &end)
		}
		links = append(links, plain)
	}
	return json.Marshal([]any{plans, links, c.Lab.Mgmt})
}
