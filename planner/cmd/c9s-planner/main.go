// Command c9s-planner plans nodes with containerlab's own kind hooks: one request
// on standard input, one response on standard output.
package main

import (
	"os"

	"github.com/c9s-lab/c9s/planner/internal/program"
)

func main() { os.Exit(program.Main(os.Args[1:])) }
