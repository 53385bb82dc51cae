package plan

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ProgramName is what the hook planner's program is called.
const ProgramName = "c9s-planner"

// Auto is the hook planner where its program is there and answers, else builtin,
// which may be nil. The program is sought at hooksPath if that is given, else
// beside the running program, else in PATH. notice says which planner was taken
// and why, for the user; it is empty where there is nothing to tell.
func Auto(hooksPath string, builtin Planner) (p Planner, notice string) {
	program, err := findProgram(hooksPath)
	if err == nil {
		hooks := NewHooks(program)
		if err = hooks.Check(); err == nil {
			return hooks, ""
		}
	}
	if builtin == nil {
		return nil, err.Error()
	}
	return builtin, fmt.Sprintf("planning with the kind catalogue (%s): %v", builtin.Name(), err)
}

// findProgram is the path of the planner program.
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
