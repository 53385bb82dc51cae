package prepare

import (
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/internal/capability"
)

// needed are the capabilities that Run uses: it writes to folders of any owner, and gives
// files their owner and mode. See capabilities(7).
const needed = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER

// Confine drops all other capabilities of this process, in every thread. The sidecar has every
// capability of its worker, and Run reads folders that a device has filled.
func Confine() error { return capability.Keep(needed) }
