package documents

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/policy"
)

// The priorities of derived profiles. A c9s.yaml beside the documents has 100 by default,
// and so wins.
const (
	ownPriority    = 500
	configPriority = 1000
)

// policyBuilder collects what profiles set.
type policyBuilder struct {
	profiles []*derived
	// boot is the number of Pods that boot at a time on a worker, nil for any number.
	boot *yaml.Node
}

// derived is one profile under construction.
type derived struct {
	name     string
	priority int
	at       *yaml.Node
	nodes    []string // nil for every node
	// kinds and expression select further.
	kinds      []string
	expression string
	set        *yaml.Node
}

// add sets a field for some nodes, in the profile of the block that has the same nodes.
func (b *policyBuilder) add(block string, at *yaml.Node, nodes []string, key string, value *yaml.Node) {
	if nodes != nil && len(nodes) == 0 {
		return
	}
	for _, p := range b.profiles {
		if p.priority == ownPriority && (p.name == block || strings.HasPrefix(p.name, block+"/")) && slices.Equal(p.nodes, nodes) && (p.nodes == nil) == (nodes == nil) && own(p.set, key) == nil {
			set(p.set, at, key, value)
			return
		}
	}
	name := block
	if n := b.count(block); n > 0 {
		name = fmt.Sprintf("%s/%d", block, n+1)
	}
	p := &derived{name: name, priority: ownPriority, at: at, nodes: nodes, set: mapping(at)}
	set(p.set, at, key, value)
	b.profiles = append(b.profiles, p)
}

func (b *policyBuilder) count(block string) int {
	n := 0
	for _, p := range b.profiles {
		if p.name == block || strings.HasPrefix(p.name, block+"/") {
			n++
		}
	}
	return n
}

// rollout limits how many Pods boot at a time. The first document that has a limit counts: a
// Topology comes before a Config.
func (r *reader) rollout(what string, specs ...rolloutSpec) {
	for _, spec := range specs {
		if spec.BatchSize.node != nil {
			r.warnf(CodeIgnored, spec.BatchSize.node, "remove it", "%s: batchSize has no effect: c9s creates all Pods at once", what)
		}
		most := spec.MaxConcurrentPerHost
		switch {
		case most.node == nil || most.V == 0: // no limit
		case most.V < 0:
			r.errorf(CodeValue, most.node, "write a number from 1", "maxConcurrentPerHost is %d", most.V)
		case r.policy.boot == nil:
			r.policy.boot = most.node
		}
	}
}

// tree is the policy file.
func (b *policyBuilder) tree(at *yaml.Node) *yaml.Node {
	root := mapping(at)
	set(root, at, "apiVersion", text(at, policy.APIVersion))
	set(root, at, "kind", text(at, policy.Kind))
	if b.boot != nil {
		boot := mapping(b.boot)
		set(boot, b.boot, "perWorker", b.boot)
		set(root, b.boot, "boot", boot)
	}
	profiles := list(at)
	for _, p := range b.profiles {
		entry := mapping(p.at)
		set(entry, p.at, "name", text(p.at, p.name))
		set(entry, p.at, "priority", number(p.at, p.priority))
		match := mapping(p.at)
		if p.nodes != nil {
			set(match, p.at, "names", texts(p.at, p.nodes...))
		}
		if p.kinds != nil {
			set(match, p.at, "kinds", texts(p.at, p.kinds...))
		}
		if p.expression != "" {
			set(match, p.at, "expression", text(p.at, p.expression))
		}
		if len(match.Content) > 0 {
			set(entry, p.at, "match", match)
		}
		set(entry, p.at, "set", p.set)
		profiles.Content = append(profiles.Content, entry)
	}
	set(root, at, "profiles", profiles)
	return root
}
