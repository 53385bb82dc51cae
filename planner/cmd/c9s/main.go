// Command c9s is c9s with containerlab's kind hooks linked in: it runs itself as
// the planner's subprocess, so that one binary is enough.
package main

import (
	"os"

	"github.com/c9s-lab/c9s/internal/cli"
	"github.com/c9s-lab/c9s/planner/internal/hooks"
	"github.com/c9s-lab/c9s/planner/internal/program"
)

// plannerArgument makes this program the planner.
const plannerArgument = "__planner"

func main() {
	if len(os.Args) > 1 && os.Args[1] == plannerArgument {
		hooks.ProgramArgs = []string{plannerArgument}
		os.Exit(program.Main(os.Args[2:]))
	}
	world := cli.System()
	world.PlannerArgs = []string{plannerArgument}
	os.Exit(cli.Main(os.Args[1:], world))
}
