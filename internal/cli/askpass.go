package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/c9s-lab/c9s/internal/cli/show"
)

// passwordVariable holds the password for ssh's question. ssh starts c9s once more to have it
// answered (SSH_ASKPASS in ssh(1)), so that the password is on no command line.
const passwordVariable = "C9S_SSH_PASSWORD"

// passwordEnv returns an environment in which ssh asks c9s for the password.
func passwordEnv(env []string, password string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return append(append([]string{}, env...), "SSH_ASKPASS="+self, "SSH_ASKPASS_REQUIRE=force", passwordVariable+"="+password), nil
}

// answersPassword reports whether ssh has started this process with its question for the
// password, and prints the password.
func answersPassword(args []string, world IO) bool {
	if len(args) != 1 { // the command that ssh connects by has more
		return false
	}
	for _, e := range world.Env {
		if password, ok := strings.CutPrefix(e, passwordVariable+"="); ok && password != "" {
			fmt.Fprintln(show.Raw(world.Out), password)
			return true
		}
	}
	return false
}
