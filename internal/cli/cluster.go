//go:build !nocluster

package cli

import "github.com/spf13/cobra"

// clusterCommands returns the commands that access a cluster, or build what runs in one. Their
// libraries take most of the compile time; the build tag nocluster excludes them.
func clusterCommands(world IO) []*cobra.Command {
	return []*cobra.Command{
		newDeploy(world), newDiff(world), newDestroy(world), newRestart(world), newStop(world), newStart(world),
		newExec(world), newShell(world), newSSH(world), newSSHConfig(world), newForward(world), newProxy(world), newConsole(world), newOpen(world), newDial(world), newLogs(world), newStatus(world), newInspect(world), newInventory(world), newLabs(world), newDoctor(world), newController(world),
		newImage(world), newSave(world), newReset(world), newSnapshot(world), newRestore(world), newClone(world), newLink(world), newTools(world), newCp(world), newEvents(world), newShim(world), newCapture(world), newExtcap(world), newTop(world), newSupport(world), newTest(world), newRun(world), newPools(world), newPause(world), newResume(world), newExtend(world),
	}
}
