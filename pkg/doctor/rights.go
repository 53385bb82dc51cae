package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/rights"
)

func checkRights(f Facts, _ Needs) []Check {
	const name = "your rights"
	if f.RightsErr != nil {
		return unread(name, f.RightsErr)
	}
	if len(f.Missing) == 0 {
		return []Check{{Name: name, Result: OK, Found: "sufficient for deploy, status, exec and logs"}}
	}
	var out []Check
	for _, required := range []bool{true, false} {
		var missing []rights.Right
		var commands []string
		for _, r := range f.Missing {
			if r.Required == required {
				missing, commands = append(missing, r), append(commands, r.Command)
			}
		}
		if len(missing) == 0 {
			continue
		}
		slices.Sort(commands)
		c := Check{Name: name, Result: Problem,
			Found:  fmt.Sprintf("for %s you may not: %s", strings.Join(slices.Compact(commands), ", "), rights.Describe(missing)),
			Remedy: rights.Remedy(missing)}
		if !required {
			c.Result = Warning
		}
		out = append(out, c)
	}
	return out
}
