//go:build !nocluster

package cli

import "github.com/spf13/cobra"

// clusterCommands are those that talk to a cluster, or make what runs in one. Their
// libraries are most of what there is to compile: the build tag nocluster leaves them
// out.
func clusterCommands(world IO) []*cobra.Command {
	return []*cobra.Command{
		newDeploy(world), newDiff(world), newDestroy(world), newRestart(world), newStop(world), newStart(world),
		newExec(world), newShell(world), newLogs(world), newStatus(world), newInspect(world), newLabs(world), newDoctor(world), newController(world),
		newImage(world),
	}
}
