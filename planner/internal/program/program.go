// Package program is what c9s-planner does.
package program

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/c9s-lab/c9s/planner/internal/conform"
	"github.com/c9s-lab/c9s/planner/internal/fakecli"
	"github.com/c9s-lab/c9s/planner/internal/hooks"
	"github.com/c9s-lab/c9s/planner/internal/sandbox"
	charm "github.com/charmbracelet/log"
)

// gcPercent collects garbage less often than Go does by itself: what lives here is small,
// and what a node leaves behind is little.
const gcPercent = 200

// Main runs the program and returns its exit code.
func Main(args []string) int {
	if err := run(args); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		return 1
	}
	return 0
}

func run(args []string) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "":
		return serve()
	case hooks.CLIArgument:
		if len(args) < 4 {
			return fmt.Errorf("%s takes a record, a container and a program", command)
		}
		return fakecli.Run(os.Stdin, os.Stdout, args[1], args[3:])
	case "kinds":
		for _, line := range hooks.Kinds() {
			fmt.Println(line)
		}
		return nil
	case "conform":
		path, err := sandbox.Program()
		if err != nil {
			return err
		}
		return conform.Run(os.Stdout, path, args[1:])
	default:
		return fmt.Errorf("unknown command %q: c9s-planner answers requests from standard input; kinds lists what is registered; conform [TOPO...] compares the planners", command)
	}
}

// serve answers requests until there are no more, in a sandbox.
func serve() error {
	if !sandbox.Inside() {
		code, err := sandbox.Enter()
		if err != nil {
			return err
		}
		if code != 0 {
			os.Exit(code)
		}
		return nil
	}
	if err := Confine(); err != nil {
		return err
	}
	// Hooks print; standard output is for the responses alone.
	out := os.Stdout
	os.Stdout = os.Stderr
	return hooks.Serve(os.Stdin, out)
}

// Confine makes this process, which sandbox.Enter has started, one that may run hooks.
func Confine() error {
	if err := sandbox.Prepare(); err != nil {
		return err
	}
	if err := sandbox.DropCapabilities(); err != nil {
		return err
	}
	if err := sandbox.Limit(); err != nil {
		return err
	}
	debug.SetGCPercent(gcPercent)
	charm.SetDefault(charm.NewWithOptions(hooks.Complaints, charm.Options{Level: charm.ErrorLevel}))
	return nil
}
