// Command c9s runs containerlab topologies on Kubernetes.
package main

import (
	"os"

	"github.com/c9s-lab/c9s/internal/cli"
)

func main() { os.Exit(cli.Main(cli.Arguments(os.Args), cli.System())) }
