package plan

import (
	"cmp"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// files stages the kind's own files.
func (d *draft) files() {
	for _, f := range d.kind.Files {
		if !d.holds(f.When) {
			continue
		}
		file := File{
			Path: d.expand(f.Path), GID: f.GID, Dir: f.Dir, Link: d.expand(f.Link), Certificate: f.Certificate, Seed: f.Seed,
			Mode: f.Mode,
		}
		switch {
		case f.Dir:
			file.Mode = cmp.Or(f.Mode, 0o777)
		case f.Link != "":
			file.Mode = 0o777
		default:
			file.Mode = cmp.Or(f.Mode, 0o644)
			file.Secret = f.Certificate == "tls.key"
			if f.Template != "" {
				file.Content = d.templateFile(f.Template, d.data)
			} else if f.Content != "" {
				file.Content = []byte(d.expand(f.Content))
			}
		}
		d.addFile(file)
	}
}

// CheckLicense returns a diagnostic if a node lacks a licence that its kind needs, whichever
// planner is used.
func CheckLicense(p *Plan, n *lab.Node) []diag.Diagnostic {
	var problems diag.List
	switch {
	case n.License != nil:
	case p.Needs.License == "required":
		problems.Errorf(CodeLicenseRequired, n.Pos, "add license: with the path of the licence file",
			"node %q: kind %s does not start without a licence", n.Name, p.Kind)
	case p.Needs.License == "warn":
		problems.Warnf(CodeLicenseRequired, n.Pos, "add license:, or use an image that holds one",
			"node %q: kind %s needs a licence", n.Name, p.Kind)
	}
	return problems.All()
}

// license stages the node's licence.
func (d *draft) license() {
	n, rule := d.node, d.kind.License
	if n.License == nil {
		return
	}
	ref := *n.License
	ref.Secret = true
	switch {
	case rule.InConfig:
		d.data.LicenseText = string(d.lab.Files[ref.Digest])
	case rule.File == "":
		d.problems.Warnf(CodeLicenseIgnored, n.Pos, "put the licence where the device looks for it with binds",
			"kind %s does not read license", d.kind.Name)
	default:
		if file := d.expand(rule.File); file != "" {
			d.addFile(File{Path: file, Mode: 0o644, Ref: &ref, Secret: true})
		}
	}
}
