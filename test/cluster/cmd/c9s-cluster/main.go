// Command c9s-cluster runs a real Kubernetes cluster on one machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/test/cluster/internal/control"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
)

func main() {
	if len(os.Args) > 2 {
		runInsideNode(os.Args[1], os.Args[2])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "c9s-cluster:", err)
		os.Exit(1)
	}
}

// runInsideNode is the program's second life, as the first process of a node.
func runInsideNode(name, spec string) {
	var err error
	switch name {
	case node.EnterCommand:
		err = node.Enter(spec)
	case node.InitCommand:
		err = node.Init(spec)
	default:
		return
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "c9s-cluster",
		Short:         "A real Kubernetes cluster on one machine, without Docker",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	name := root.PersistentFlags().String("name", "c9s", "name of the cluster")
	root.AddCommand(upCommand(name), buildCommand(), downCommand(name), statusCommand(name), kubeconfigCommand(name), loadCommand(name),
		nodeCommand(name), logsCommand(name), registryCommand(control.RegistryCommand))
	return root
}
