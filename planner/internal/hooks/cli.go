package hooks

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/planner/internal/recorder"
	"github.com/c9s-lab/c9s/planner/internal/sandbox"
	clabutils "github.com/srl-labs/containerlab/utils"
)

// CLIArgument makes this program play a device's command line:
//
//	<program> device-cli <record> <container> <device program and its arguments>
const CLIArgument = "device-cli"

// registerCLI tells containerlab's drivers what to start in place of an exec into
// a container: this program.
func registerCLI(record string) error {
	self, err := sandbox.Program()
	if err != nil {
		return err
	}
	// A library of containerlab's asks the terminal for its colours when a program
	// starts, and waits for an answer, unless it is in CI.
	os.Setenv("CI", "true")
	clabutils.CLIExecCommand[recorder.Name] = map[string]string{"exec": self, "open": CLIArgument + " " + record}
	return nil
}

// cliSteps reads what was typed: one step for each session.
func cliSteps(record string) ([]plan.Step, error) {
	data, err := os.ReadFile(record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []plan.Step
	for _, session := range strings.Split(string(data), "\x00")[1:] {
		lines := strings.Split(strings.TrimSpace(session), "\n")
		// What a driver types after the last commit only closes the session.
		step := &plan.CLIStep{Argv: strings.Fields(lines[0]), Lines: slices.Clone(lines[1:])}
		if len(step.Lines) > 0 {
			steps = append(steps, plan.Step{Name: "type into " + step.Argv[0], CLI: step})
		}
	}
	return steps, nil
}
