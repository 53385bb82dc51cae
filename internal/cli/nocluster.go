//go:build nocluster

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/graph"
)

func clusterCommands(IO) []*cobra.Command { return nil }

func addLiveGraph(*cobra.Command, IO, *topoFlags) liveGraph {
	return func(context.Context, []string, graph.Writer) (bool, error) { return false, nil }
}
