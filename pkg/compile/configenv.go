package compile

import (
	"regexp"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// reference is a variable as containerlab expands it in a startup-config: $NAME, or
// ${NAME} with or without a default.
var reference = regexp.MustCompile(`\$\{?([\pL_][\pL\pN_]*)`)

// configEnv returns the variables of the environment that a startup-config refers
// to, nil for none: containerlab expands them from the environment it runs in.
func (c *compiler) configEnv(ref lab.FileRef) map[string]string {
	text := c.lab.Files[ref.Digest]
	named := map[string]bool{}
	for _, m := range reference.FindAllSubmatch(text, -1) {
		named[string(m[1])] = true
	}
	if len(named) == 0 {
		return nil
	}
	var out map[string]string
	for _, kv := range c.o.Env {
		if name, value, ok := strings.Cut(kv, "="); ok && named[name] {
			if _, first := out[name]; first {
				continue // as getenv(3): the first one counts
			}
			if out == nil {
				out = map[string]string{}
			}
			out[name] = value
		}
	}
	return out
}
