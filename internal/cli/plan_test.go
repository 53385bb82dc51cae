package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/internal/plantest"
)

// TestCataloguePlans: the catalogue makes of each lab what every planner must.
func TestCataloguePlans(t *testing.T) {
	plantest.Run(t, func(env []string, args ...string) (string, string) {
		var out, errs bytes.Buffer
		Main(args, IO{In: strings.NewReader(""), Out: &out, Err: &errs, Env: env})
		return out.String(), errs.String()
	}, "--planner", "builtin")
}
