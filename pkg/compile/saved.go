package compile

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// compileSaved uses the saved configuration of a node, if there is one and Options.Saved is
// set: instead of its startup-config, or as a file that is mounted where the device reads
// it.
func (c *compiler) compileSaved(n *node) {
	if n.kind == nil || n.kind.Save == nil || c.f.Dir == "" {
		return
	}
	rule := n.kind.Save
	written := filepath.Join(kinds.SavedFolder, rule.File(n.Name))
	if !n.kind.ReadsStartup() && rule.Target == "" {
		return
	}
	if info, err := c.o.Reach.Stat(filepath.Join(c.f.Dir, written)); err != nil || info.IsDir() {
		return
	}
	c.saved = append(c.saved, filepath.ToSlash(written))
	if !c.o.Saved {
		return
	}
	ref, ok := c.files.file(written, n.Pos, "saved configuration")
	if !ok {
		return
	}
	if declared := declaredConfig(n); declared != nil && declared.Digest != ref.Digest {
		c.diags.Warnf(CodeSavedDiffers, n.Pos, "c9s diff --config --declared shows the difference once the node runs",
			"node %s starts with %s, which differs from %s", n.Name, filepath.ToSlash(written), declared.Origin)
	}
	if n.kind.ReadsStartup() {
		n.StartupConfig = &lab.Config{File: ref, Name: filepath.Base(written), Verbatim: true}
		return
	}
	n.Mounts = slices.DeleteFunc(n.Mounts, func(m lab.Mount) bool { return m.Target == rule.Target })
	n.Mounts = append(n.Mounts, lab.Mount{Target: rule.Target, Pos: n.Pos, File: &ref})
	slices.SortFunc(n.Mounts, func(a, b lab.Mount) int { return strings.Compare(a.Target, b.Target) })
}

// declaredConfig returns the configuration that the topology gives a node, nil for none.
func declaredConfig(n *node) *lab.FileRef {
	if n.kind.ReadsStartup() {
		if n.StartupConfig == nil {
			return nil
		}
		return &n.StartupConfig.File
	}
	for _, m := range n.Mounts {
		if m.Target == n.kind.Save.Target {
			return m.File
		}
	}
	return nil
}

// reportSaved reports which saved configurations are used, or could be.
func (c *compiler) reportSaved() {
	if len(c.saved) == 0 {
		return
	}
	text := diag.Few(c.saved, 5)
	d := diag.Diagnostic{Code: CodeSaved, Severity: diag.Note, Pos: diag.Pos{File: c.f.Path}}
	if c.o.Saved {
		d.Message = "saved configurations are used: " + text
	} else {
		d.Message = "saved configurations are not used: " + text
		d.Hint = "start with them by --saved, or \"saved: true\" in the policy file"
	}
	c.diags.Add(d)
}
