package plan

import (
	"bytes"
	"cmp"
	"regexp"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// variable is $NAME, or ${NAME with what follows it: a default, or the brace. What
// is in front tells a variable from a part of a hash, as $6$salt$hash.
var variable = regexp.MustCompile(`(^|[^\w$./])\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(:?[-=+])?)`)

// leftOver warns about variables that the environment does not set and that have no
// default: containerlab leaves their names in the configuration.
func (d *draft) leftOver(text string) {
	cfg := d.node.StartupConfig
	where := diag.Pos{File: cmp.Or(cfg.File.Origin, cfg.Name)}
	seen := map[string]bool{}
	for i, line := range bytes.Split([]byte(text), []byte("\n")) {
		for _, m := range variable.FindAllSubmatch(line, -1) {
			name := string(m[2]) + string(m[3])
			if cfg.Env[name] != "" || len(m[4]) > 0 || seen[name] {
				continue
			}
			seen[name] = true
			where.Line = i + 1
			d.problems.Warnf(CodeStartupConfigVariable, where,
				"set "+name+" in the environment of c9s, or write $$"+name+" where the text is meant",
				"startup-config: variable %s is not set, so the configuration keeps its name", name)
		}
	}
}
