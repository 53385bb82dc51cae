package documents

import (
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxExpanded bounds the values that aliases expand to.
const maxExpanded = 1_000_000

// Texts returns the topology file and the policy file that the documents come to. With
// adopt, nodes get the addresses of their status. What was in a Secret stays in one.
func (l *Lab) Texts(adopt bool) (topology, policy string, err error) {
	left := maxExpanded
	topo := expand(l.Topology, &left)
	nodes := lookup(lookup(topo, "topology"), "nodes")
	if adopt && nodes != nil {
		for key, addresses := range map[string]map[string]string{"mgmt-ipv4": l.Adopt.IPv4, "mgmt-ipv6": l.Adopt.IPv6} {
			for _, node := range slices.Sorted(maps.Keys(addresses)) {
				if hasKey(nodes, node) {
					def := editable(nodes, node)
					set(def, def, key, text(def, addresses[node]))
				}
			}
		}
	}
	pol := expand(l.Policy, &left)
	if secrets := l.secretProfiles(nodes); len(secrets) > 0 {
		profiles := own(pol, "profiles")
		profiles.Content = append(secrets, profiles.Content...)
	}
	escape(topo)
	if topology, err = encode(topo); err != nil {
		return "", "", err
	}
	policy, err = encode(pol)
	return topology, policy, err
}

// secretProfiles keep the mounts of secret files in Secrets.
func (l *Lab) secretProfiles(nodes *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	if nodes == nil {
		return nil
	}
	for i := 0; i+1 < len(nodes.Content); i += 2 {
		at, node := nodes.Content[i], nodes.Content[i].Value
		targets := texts(at)
		if binds := own(nodes.Content[i+1], "binds"); binds != nil {
			for _, b := range binds.Content {
				source, rest, _ := strings.Cut(b.Value, ":")
				target, _, _ := strings.Cut(rest, ":")
				targets.Content = append(targets.Content, l.secretTargets(b, source, target)...)
			}
		}
		if len(targets.Content) == 0 {
			continue
		}
		b := policyBuilder{}
		b.add("secrets-"+node, at, []string{node}, "secretFiles", targets)
		entry := own(b.tree(at), "profiles").Content[0]
		out = append(out, entry)
	}
	return out
}

// secretTargets are the targets that a bind has secret files at.
func (l *Lab) secretTargets(at *yaml.Node, source, target string) []*yaml.Node {
	var out []*yaml.Node
	for _, name := range slices.Sorted(maps.Keys(l.Files)) {
		rel, below := strings.CutPrefix(name, path.Clean(source))
		if l.Files[name].Secret && below && (rel == "" || rel[0] == '/') {
			out = append(out, text(at, path.Join(target, rel)))
		}
	}
	return out
}

// expand copies a tree without anchors and aliases. What is beyond the limit is left out.
func expand(n *yaml.Node, left *int) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	out := *n
	out.Anchor, out.Content = "", nil
	for _, c := range n.Content {
		if *left--; *left < 0 {
			break
		}
		out.Content = append(out.Content, expand(c, left))
	}
	return &out
}

// escape writes dollar signs so that a topology file has them.
func escape(n *yaml.Node) {
	n.Value = strings.ReplaceAll(n.Value, "$", "$$")
	for _, c := range n.Content {
		escape(c)
	}
}

func encode(n *yaml.Node) (string, error) {
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return "", err
	}
	return b.String(), enc.Close()
}
