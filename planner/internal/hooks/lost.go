package hooks

import (
	"bytes"
	"strings"
	"sync"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// Complaints are the errors that hooks log and go on: a plan without the
// configuration that could not be made is one.
var Complaints = &complaints{}

type complaints struct {
	mu    sync.Mutex
	lines []string
}

// Write takes log lines, as a logger without colours writes them.
func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "ERRO")); line != "" {
			c.lines = append(c.lines, line)
		}
	}
	return len(p), nil
}

// take returns what there is, and forgets it.
func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := c.lines
	c.lines = nil
	return lines
}

// lost warns of what hooks swallow: errors that they log or drop.
func (r *run) lost() error {
	for _, line := range Complaints.take() {
		if r.node.StartupConfig != nil && strings.Contains(line, "template") {
			plan.TemplateProblem(r.plan, r.node, line)
			continue
		}
		r.warn(plan.CodeHookComplained, "see whether the plan has what it is about", "containerlab's hook of kind %s goes on after an error: %s", r.node.Kind, line)
	}
	cfg := r.node.StartupConfig
	if cfg == nil || r.node.SuppressStartupConfig || r.decided(kinds.DecidesSteps) && !r.req.Full || r.kind != nil && !r.kind.ReadsStartup() {
		return nil
	}
	text, err := r.read(cfg.File)
	if err != nil {
		return err
	}
	if lines := tellingLines(text); len(lines) > 0 && !r.uses(cfg.File.Digest, lines) {
		r.refuse(plan.CodeStartupConfigLost, "correct it for this kind: a template may use fields that the kind does not have",
			"nothing of the startup-config of node %q is in the plan that containerlab's hook of kind %s has made", r.node.Name, r.node.Kind)
	}
	return nil
}

// tellingLines are lines that a template leaves as they are, and that stand in no
// other text by chance.
func tellingLines(text []byte) [][]byte {
	const long = 8
	var out [][]byte
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) >= long && !bytes.Contains(line, []byte("{{")) && !bytes.ContainsRune(line, '$') {
			out = append(out, line)
		}
	}
	return out
}

// uses tells whether the plan has the file, or one of its lines, anywhere.
func (r *run) uses(file lab.Digest, lines [][]byte) bool {
	has := func(content []byte) bool {
		for _, line := range lines {
			if bytes.Contains(content, line) {
				return true
			}
		}
		return false
	}
	for _, f := range r.plan.Files {
		if f.Ref != nil && f.Ref.Digest == file || has(f.Content) {
			return true
		}
	}
	for _, s := range r.plan.Steps {
		switch {
		case s.Write != nil && has(s.Write.Content),
			s.CLI != nil && has([]byte(strings.Join(s.CLI.Lines, "\n"))),
			s.Run != nil && has([]byte(strings.Join(s.Run.Argv, " "))):
			return true
		}
	}
	return false
}
