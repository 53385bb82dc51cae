package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
)

// programs maps what is no Go module to the Debian package that has it.
var programs = map[string]string{
	"runc":  "runc",
	"nft":   "nftables",
	"ip":    "iproute2",
	"mount": "mount",
}

// ImageTools are what building device images needs also.
var ImageTools = map[string]string{
	"debootstrap": "debootstrap",
	"chroot":      "coreutils",
}

// Compiler is what the pause image needs, once.
var Compiler = map[string]string{"gcc": "gcc"}

// EnsurePrograms installs the Debian packages of missing programs, and says so.
func EnsurePrograms(ctx context.Context, tell func(string)) error {
	return EnsurePackages(ctx, programs, tell)
}

// EnsurePackages installs the Debian packages of those programs that are missing.
func EnsurePackages(ctx context.Context, wanted map[string]string, tell func(string)) error {
	var missing []string
	for program, pkg := range wanted {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	sort.Strings(missing)
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("missing programs, and this system has no apt-get: install what Debian calls " + list)
	}
	tell("installing Debian packages: " + list)
	for _, args := range [][]string{
		{"update", "-qq"},
		append([]string{"install", "-y", "-qq", "--no-install-recommends"}, missing...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}
