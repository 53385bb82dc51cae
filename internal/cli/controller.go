//go:build !nocluster

package cli

import (
	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/controller"
)

// newController runs the controller outside the c9s image.
func newController(world IO) *cobra.Command {
	cmd := controller.Command(world.Err)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return fail(run(cmd, args)) }
	return cmd
}
