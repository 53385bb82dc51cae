package pipeline

import (
	"context"
	"maps"
	"slices"

	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
)

// RenderOptions are the options of Render.
type RenderOptions struct {
	// Options are the options of package render.
	Options render.Options
	// AllowMissing replaces images that are not references with a placeholder.
	AllowMissing bool
	// Plan plans nodes, for example with Compiled.Plan. A nil only means all nodes.
	Plan func(ctx context.Context, only map[string]bool) (map[string]*plan.Plan, []diag.Diagnostic, error)
	// Images says what to ask the registries.
	Images Images
	// Complete, if not nil, adds to the options what depends on the plans, such as
	// certificates with Issued.Add.
	Complete func(l *lab.Lab, plans map[string]*plan.Plan, o *render.Options) error
}

// Render plans and renders the lab. The diagnostics are those of all stages, reading
// and compiling included. With errors among them the Output is nil, and the nodes
// without errors are planned and rendered all the same for what is wrong with them.
func (c *Compiled) Render(ctx context.Context, o RenderOptions) (*render.Output, []diag.Diagnostic, error) {
	if c.Lab == nil {
		return nil, c.Diags, nil
	}
	var only map[string]bool // all
	if HasErrors(c.Diags) {
		if only, _ = c.sound(c.Diags); len(only) == 0 {
			return nil, c.Diags, nil
		}
	}
	plans, planDiags, err := o.Plan(ctx, only)
	switch {
	case err != nil && HasErrors(c.Diags):
		return nil, c.Diags, nil // the errors of the topology come first
	case err != nil:
		return nil, nil, err
	}
	diags := slices.Concat(c.Diags, planDiags)
	if HasErrors(diags) {
		return nil, append(diags, c.renderSound(plans, o, diags)...), nil
	}
	options := o.Options
	diags = append(diags, c.unusedRules(plans, options)...)
	if o.AllowMissing {
		diags = append(diags, c.replaceImages(plans, options.MapImage)...)
	}
	images := o.Images
	if c.Documents != nil && !c.Source.Reach.Limited() {
		images = images.with(c.Documents.Registries)
	}
	imageDiags, resolved, err := images.apply(ctx, c.Lab, plans, options.MapImage)
	if err != nil {
		return nil, nil, err
	}
	if resolved { // only c9s' own image is left
		options.Image, options.MapImage = render.MapImage(options.MapImage, options.Image), nil
	}
	if diags = append(diags, imageDiags...); HasErrors(diags) {
		return nil, diags, nil
	}
	if o.Complete != nil {
		if err := o.Complete(c.Lab, plans, &options); err != nil {
			return nil, nil, err
		}
	}
	out, renderDiags := render.Render(c.Lab, plans, options)
	return out, append(diags, renderDiags...), nil
}

// renderSound renders the nodes without errors, and returns the errors of that.
func (c *Compiled) renderSound(plans map[string]*plan.Plan, o RenderOptions, diags []diag.Diagnostic) []diag.Diagnostic {
	sound, links := c.sound(diags)
	if len(sound) == 0 || !links || len(o.Options.Only) > 0 {
		return nil
	}
	if o.AllowMissing {
		c.replaceImages(plans, o.Options.MapImage)
	}
	o.Options.Only = slices.Sorted(maps.Keys(sound))
	_, more := render.Render(c.Lab, plans, o.Options)
	c.File.Attribute(more)
	return slices.DeleteFunc(more, func(d diag.Diagnostic) bool {
		return d.Severity != diag.Error || !sound[d.Node]
	})
}

// replaceImages replaces images that are not references, most often because a
// variable is not set, with a placeholder.
func (c *Compiled) replaceImages(plans map[string]*plan.Plan, rules []render.ImageRule) []diag.Diagnostic {
	var diags diag.List
	for _, n := range c.Lab.Nodes {
		if plans[n.Name] == nil {
			continue
		}
		for i := range plans[n.Name].Containers {
			container := &plans[n.Name].Containers[i]
			if apicheck.LegalImage(render.MapImage(rules, container.Image)) {
				continue
			}
			diags.Warnf(compile.CodeFilePlaceholder, n.Pos, "set an image before you deploy",
				"the image %q of node %q is not a valid reference; %s replaces it", container.Image, n.Name, compile.PlaceholderImage)
			container.Image = compile.PlaceholderImage
		}
	}
	return diags.All()
}

// unusedRules warns of image rules that apply to no image of the lab.
func (c *Compiled) unusedRules(plans map[string]*plan.Plan, o render.Options) []diag.Diagnostic {
	images := []string{o.Image}
	for _, p := range plans {
		for _, container := range p.Containers {
			images = append(images, container.Image)
		}
	}
	var diags diag.List
	for _, r := range render.UnusedRules(o.MapImage, images) {
		diags.Warnf(codeMapUnused, diag.Pos{File: c.File.Path}, "write FROM as the topology does; a * at its end stands for the rest",
			"--map-image %s=%s has no effect: no image of the lab is %q", r.From, r.To, r.From)
	}
	return diags.All()
}
