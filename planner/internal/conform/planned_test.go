package conform_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/internal/cli"
	"github.com/c9s-lab/c9s/internal/plantest"
)

// TestHooksPlan: the hooks, as c9s completes their plans, make of each lab what every
// planner must.
func TestHooksPlan(t *testing.T) {
	plantest.Run(t, func(env []string, args ...string) (string, string) {
		var out, errs bytes.Buffer
		cli.Main(args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs, Env: env})
		return out.String(), errs.String()
	}, "--planner", "hooks", "--planner-path", programPath(t))
}
