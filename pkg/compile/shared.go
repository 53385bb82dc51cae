package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// folderUse is a folder of the user's disk that a node binds.
type folderUse struct {
	path     string // as the topology has it
	full     string
	readOnly bool
	pos      diag.Pos
}

// shownShared is how many shared folders and volumes the warning names.
const shownShared = 4

// checkShared warns of folders and named volumes by which nodes of several Pods exchange
// files in containerlab: here each Pod has its own copy.
func (c *compiler) checkShared() {
	type shared struct {
		what        string
		nodes, pods []string
		written     bool // some node may write to it
		pos         diag.Pos
	}
	var order []*shared
	all := map[string]*shared{}
	add := func(key, what string, n *node, readOnly bool, pos diag.Pos) {
		s := all[key]
		if s == nil {
			s = &shared{what: what, pos: pos}
			all[key] = s
			order = append(order, s)
		}
		s.written = s.written || !readOnly
		if !slices.Contains(s.nodes, n.Name) {
			s.nodes = append(s.nodes, n.Name)
		}
		if pod := c.podOf(n.Name); !slices.Contains(s.pods, pod) {
			s.pods = append(s.pods, pod)
		}
	}
	for _, n := range c.order {
		for _, f := range n.folders {
			add("folder "+f.full, f.path, n, f.readOnly, f.pos)
		}
		for _, m := range n.Mounts {
			if m.Volume != "" && c.lab.SharedClaim == "" {
				add("volume "+m.Volume, "volume "+m.Volume, n, m.ReadOnly, m.Pos)
			}
		}
	}
	order = slices.DeleteFunc(order, func(s *shared) bool { return len(s.pods) < 2 || !s.written })
	if len(order) == 0 {
		return
	}
	var parts []string
	for i, s := range order {
		if i == shownShared {
			parts = append(parts, fmt.Sprintf("and %d more", len(order)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", s.what, diag.Few(s.nodes, shownShared)))
	}
	c.diags.Warnf(CodeShared, order[0].pos, "bind it with :ro if the nodes only read it; else write to a named volume, and name a claim for volumes of several Pods in c9s.yaml (shared-claim); c9s save fetches saved configurations",
		"nodes do not exchange files here: each Pod has its own copy of %s, and nothing comes back to your disk", strings.Join(parts, ", "))
}
