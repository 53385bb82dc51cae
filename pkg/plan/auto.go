package plan

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// ProgramName is what the hook planner's program is called.
const ProgramName = "c9s-planner"

// Auto chooses a planner for each node: the hook planner if its program can plan the kind,
// otherwise the catalogue. The catalogue also plans kinds that the user defines or
// overrides. Auto caches plans of the hooks in cacheDir, unless that is "".
type Auto struct {
	program   *Hooks
	hooks     Planner
	catalogue *Builtin
}

// NewAuto returns the planner that chooses between a program and the catalogue.
func NewAuto(program *Hooks, catalogue *Builtin, cacheDir string) *Auto {
	var hooks Planner = program
	if cacheDir != "" {
		program.helloFile = helloFile(program, cacheDir)
		hooks = Cache(program, cacheDir)
	}
	return &Auto{program: program, hooks: Finish(hooks, catalogue), catalogue: catalogue}
}

// Name returns the name of the hook planner.
func (a *Auto) Name() string { return a.program.Name() }

// Plan plans n with the planner chosen for its kind.
func (a *Auto) Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error) {
	if k, ok := a.catalogue.catalogue.Lookup(n.Kind); ok && !k.Custom() && a.program.Plans(n.Kind) {
		return a.hooks.Plan(ctx, l, n)
	}
	return a.catalogue.Plan(ctx, l, n)
}

// Close ends the program.
func (a *Auto) Close() error { return a.program.Close() }

// FindHooks returns the hook planner whose program is at path, or, if that is "",
// beside the running program or in PATH. The error says why there is none.
func FindHooks(path string, options ...HooksOption) (*Hooks, error) {
	program, err := findProgram(path)
	if err != nil {
		return nil, err
	}
	return NewHooks(program, options...), nil
}

// findProgram returns the path of the planner program.
func findProgram(explicit string) (string, error) {
	if explicit != "" {
		program, err := exec.LookPath(explicit)
		if err != nil {
			return "", fmt.Errorf("planner program %s cannot be run: %w", explicit, err)
		}
		return filepath.Abs(program)
	}
	if self, err := os.Executable(); err == nil {
		if program, err := exec.LookPath(filepath.Join(filepath.Dir(self), ProgramName)); err == nil {
			return program, nil
		}
	}
	program, err := exec.LookPath(ProgramName)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside c9s nor in PATH", ProgramName)
	}
	return filepath.Abs(program)
}
