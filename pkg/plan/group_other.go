//go:build !unix

package plan

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup kills the command. Without process groups, its children survive.
func killGroup(cmd *exec.Cmd) error {
	if cmd.Process == nil {
		return nil
	}
	return cmd.Process.Kill()
}
