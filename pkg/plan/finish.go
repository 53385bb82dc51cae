package plan

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// finished is a planner whose plans are completed from the kind catalogue.
type finished struct {
	planner   Planner
	catalogue *Builtin
}

// Finish completes the plans of p from the catalogue: what persists and which files only
// seed it, certificates and their mounts, readiness, needs, credentials, ports, and the
// parts that the kind's entry decides. If the catalogue finds an error in a node, p does not
// plan it. The catalogue alone plans nodes that use features newer than the hooks.
func Finish(p Planner, catalogue *Builtin) Planner {
	return &finished{planner: p, catalogue: catalogue}
}

func (f *finished) Name() string { return f.planner.Name() }

func (f *finished) Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error) {
	d, err := f.catalogue.draft(ctx, l, n)
	if err != nil {
		return nil, err
	}
	d.ctx = ctx // finish goes on with the draft
	if d.kind == nil || d.faulty() || d.newer() {
		d.plan.Diagnostics = d.problems.All()
		return d.plan, nil
	}
	p, err := f.planner.Plan(ctx, l, n)
	if err != nil {
		return nil, err
	}
	if !hasErrors(p.Diagnostics) {
		d.finish(p)
	}
	p.Diagnostics = slices.Concat(p.Diagnostics, d.shared())
	return p, nil
}

// newer reports whether the node uses features that the hooks do not have: those of a later
// containerlab release, and saved configurations. Only the catalogue can plan such a node.
func (d *draft) newer() bool {
	if c := d.node.StartupConfig; c != nil && c.Verbatim {
		return true
	}
	return d.kind.Since != "" || len(d.node.Keys) > 0 || d.templatePartial || d.kind.Newer != "" && d.holds(d.kind.Newer)
}

func hasErrors(diags []diag.Diagnostic) bool {
	return slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
}

// faulty reports whether the node has an error for every planner. A startup-config that
// fails with the catalogue's fields may use fields that only containerlab has, and a faulty
// catalogue entry does not affect the hooks.
func (d *draft) faulty() bool {
	return slices.ContainsFunc(d.problems.All(), func(p diag.Diagnostic) bool {
		return p.Severity == diag.Error && p.Code != CodeKindData && !(p.Code == CodeStartupConfigTemplate && d.unknownField)
	})
}

// shared returns the warnings that apply whichever planner is used.
func (d *draft) shared() []diag.Diagnostic {
	return slices.DeleteFunc(d.problems.All(), func(p diag.Diagnostic) bool {
		switch p.Code {
		case CodeStartupConfigIgnored, CodeLicenseIgnored, CodeStartupConfigPartial, CodeStartupConfigVariable:
			return false
		}
		return d.missing == "" || p.Message != d.missing
	})
}

// finish completes another planner's plan from the catalogue's plan of the same node.
func (d *draft) finish(p *Plan) {
	own := d.plan
	p.Needs, p.Readiness, p.Persist = own.Needs, own.Readiness, own.Persist
	p.Credentials, p.Ports = own.Credentials, own.Ports
	if slices.Contains(d.kind.Decides, kinds.DecidesSteps) {
		p.Steps = own.Steps
	}
	d.finishFiles(p)
	d.finishMounts(p)
	if do := behaviours[d.kind.Behaviour]; do.always != nil {
		do.always(d, p)
	}
}

// finishFiles marks the files that only seed what the device saves and those that must stay
// out of ConfigMaps, and adds certificates and what the catalogue decides.
func (d *draft) finishFiles(p *Plan) {
	own := make(map[string]*File, len(d.plan.Files))
	for i := range d.plan.Files {
		own[d.plan.Files[i].Path] = &d.plan.Files[i]
	}
	decided := slices.Contains(d.kind.Decides, kinds.DecidesStartup)
	p.Files = slices.DeleteFunc(p.Files, func(f File) bool { return f.Dir && d.suppressed != "" && f.Path == d.suppressed })
	for i := range p.Files {
		f := &p.Files[i]
		known := own[f.Path]
		if known == nil {
			f.Seed = false
			continue
		}
		if decided && d.defaults[f.Path] {
			*f = *known
		}
		if decided {
			f.Mode, f.UID, f.GID = known.Mode, known.UID, known.GID
		}
		f.Seed, f.Secret = known.Seed, f.Secret || known.Secret
	}
	for _, f := range d.plan.Files {
		if f.Certificate != "" {
			p.Files = append(p.Files, f)
		}
	}
	p.Files = SortFiles(p.Files)
}

// finishMounts adds the catalogue's mounts of certificates, and removes the mount of a
// suppressed startup-config, where Docker would mount a folder.
func (d *draft) finishMounts(p *Plan) {
	for i := range p.Containers {
		c := &p.Containers[i]
		c.Mounts = slices.DeleteFunc(c.Mounts, func(m Mount) bool { return d.suppressed != "" && m.Path == d.suppressed })
		for _, m := range d.plan.Containers[min(i, len(d.plan.Containers)-1)].Mounts {
			if !d.holdsCertificate(m.Path) || slices.ContainsFunc(c.Mounts, func(have Mount) bool { return path.Clean(have.Target) == path.Clean(m.Target) }) {
				continue
			}
			c.Mounts = append(c.Mounts, m)
			slices.SortFunc(c.Mounts, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
		}
	}
}

// holdsCertificate reports whether a path of the node's folder is a certificate of the
// catalogue, or a folder that holds only such certificates.
func (d *draft) holdsCertificate(p string) bool {
	found := false
	for _, f := range d.plan.Files {
		if p != "" && !f.Dir && (f.Path == p || strings.HasPrefix(f.Path, path.Clean(p)+"/")) {
			if f.Certificate == "" {
				return false
			}
			found = true
		}
	}
	return found
}
