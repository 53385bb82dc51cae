//go:build !unix

package plan

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup ends the command; systems without process groups keep its children.
func killGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return nil
	}
	return cmd.Process.Kill()
}
