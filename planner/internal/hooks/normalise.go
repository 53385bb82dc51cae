package hooks

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/plan"
)

// machineEnv are variables that tell of the machine or the checkout on which
// containerlab runs.
var machineEnv = []string{
	"CLAB_LABEL_CLAB_NODE_LAB_DIR", "CLAB_LABEL_CLAB_TOPO_FILE", "CLAB_LABEL_CLAB_OWNER",
	"CLAB_LABEL_CLAB_GIT_BRANCH", "CLAB_LABEL_CLAB_GIT_HASH", "CLAB_LABEL_CLAB_MGMT_NET_BRIDGE",
}

// environment drops what depends on the machine and on the other nodes of the lab:
// no_proxy names the lab's domain and subnets in place of every node.
func (r *run) environment(env map[string]string) map[string]string {
	out := maps.Clone(env)
	for _, name := range machineEnv {
		delete(out, name)
	}
	proxy := plan.NoProxy(r.node.Env, r.lab)
	out["no_proxy"], out["NO_PROXY"] = proxy, proxy
	return out
}

var setenv = regexp.MustCompile(`systemd\.setenv="([^=]+)=([^"]*)" ?`)

// sortedSetenv orders the variables that cEOS gets on its command line, which its
// hook writes in the order of a map, and leaves out those that environment drops.
func (r *run) sortedSetenv(command string, env map[string]string) string {
	first := setenv.FindStringIndex(command)
	if first == nil {
		return command
	}
	var words []string
	for _, m := range setenv.FindAllStringSubmatch(command, -1) {
		if value, kept := env[m[1]]; kept {
			words = append(words, `systemd.setenv="`+m[1]+"="+value+`"`)
		}
	}
	slices.Sort(words)
	rest := setenv.ReplaceAllString(command[first[0]:], "")
	return command[:first[0]] + strings.Join(words, " ") + strings.TrimLeft(rest, " ")
}
