//go:build !nocluster

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/cluster"
)

// targetFlags name the cluster, as kubectl's do.
type targetFlags struct {
	kubeconfig string
	context    string
}

func (f *targetFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file (default: $KUBECONFIG or ~/.kube/config)")
	fs.StringVar(&f.context, "context", "", "context of the kubeconfig (default: the current one)")
	_ = cmd.MarkFlagFilename("kubeconfig")
}

func (f *targetFlags) connect(ctx context.Context, world IO) (*cluster.Client, error) {
	c, err := cluster.Connect(ctx, cluster.Target{
		Kubeconfig: f.kubeconfig, Context: f.context,
		Outage: func(err error) {
			fmt.Fprintf(world.Err, "the API server is unreachable; retrying: %v\n", err)
		},
	})
	return c, fail(err)
}
