package status

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/sidecar/api"
)

// Command is the outcome of a step.
type Command struct {
	Step int `json:"step"`
	// Command is the name of the step; for a command of the topology, its text.
	Command string `json:"command,omitempty"`
	// User is set if the topology declares the command.
	User     bool   `json:"user,omitempty"`
	Running  bool   `json:"running,omitempty"`
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error,omitempty"`
	Output   string `json:"output,omitempty"`
}

func commands(p api.Program) []Command {
	var out []Command
	for _, s := range p.Result.Steps {
		c := Command{Step: s.Index + 1, Command: s.Name, User: s.User, Running: s.Running, ExitCode: s.ExitCode, Error: s.Error, Output: strings.TrimSpace(s.Output)}
		if s.User || !c.OK() {
			out = append(out, c)
		}
	}
	return out
}

// OK reports whether the command succeeded.
func (c Command) OK() bool { return !c.Running && c.ExitCode == 0 && c.Error == "" }

// Unfinished returns the commands of the node that failed or are still running.
func (n Node) Unfinished() []Command {
	var out []Command
	for _, c := range n.Commands {
		if !c.OK() {
			out = append(out, c)
		}
	}
	return out
}

// String describes the outcome of the command, in one line apart from its output.
func (c Command) String() string {
	name := fmt.Sprintf("step %d", c.Step)
	if c.Command != "" {
		name = strconv.Quote(c.Command)
	}
	switch {
	case c.OK():
		return name + " succeeded"
	case c.Running && c.Error == "":
		return name + " is running"
	case c.Running:
		return name + ": " + c.Error
	}
	text := fmt.Sprintf("%s failed with exit code %d", name, c.ExitCode)
	// The error of a command that ran repeats the exit code.
	for _, more := range []string{c.Error, c.Output} {
		if more != "" && more != fmt.Sprintf("exit status %d", c.ExitCode) {
			text += ": " + more
		}
	}
	return text
}
