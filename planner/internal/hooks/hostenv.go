package hooks

import (
	"os"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// hostEnvironment makes the environment that containerlab expands startup-configs from
// the caller's, of which a request has what the startup-config refers to, and returns
// how to go back. Nothing of this program's own environment may show, and none of it is
// needed: temporary files go to os.TempDir's default.
func hostEnvironment(cfg *lab.Config) (restore func()) {
	own := os.Environ()
	os.Clearenv()
	if cfg != nil {
		for name, value := range cfg.Env {
			os.Setenv(name, value)
		}
	}
	return func() {
		os.Clearenv()
		for _, kv := range own {
			if name, value, ok := strings.Cut(kv, "="); ok {
				os.Setenv(name, value)
			}
		}
	}
}
