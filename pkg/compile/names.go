package compile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// maxNodeID leaves room in an RFC 1123 label (63) for the longest suffix of an object, "-links".
const maxNodeID = 58

// MapName makes a Kubernetes name (RFC 1035 label of at most limit characters)
// from a containerlab name by a fixed rule: lower case; every other character
// than a letter or digit becomes a hyphen; hyphens at the ends are dropped; a name
// that then starts with a digit gets "n-" in front; one that is too long, or has
// nothing left, ends in eight digits of its SHA-256.
func MapName(name string, limit int) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	out := strings.Trim(b.String(), "-")
	if out != "" && out[0] >= '0' && out[0] <= '9' {
		out = "n-" + out
	}
	if out != "" && len(out) <= limit {
		return out
	}
	if out == "" {
		return "n-" + nameHash(name)
	}
	return strings.TrimRight(out[:limit-9], "-") + "-" + nameHash(name)
}

// nameHash is the first eight hexadecimal digits of a name's SHA-256.
func nameHash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// compileName settles the lab's name, prefix and namespace.
func (c *compiler) compileName() {
	name := c.f.Name
	if name.Value == "" {
		c.diags.Errorf(topology.CodeMissingField, diag.Pos{File: c.f.Path, Line: 1, Column: 1}, "add \"name: mylab\" at the top", "the lab has no name")
	}
	if strings.Contains(name.Value, "__gitBranch__") || strings.Contains(name.Value, "__gitHash__") {
		branch, hash := "none", "none"
		if c.o.GitHead != nil && c.f.Dir != "" {
			branch, hash = c.o.GitHead(c.ctx, c.f.Dir)
		}
		if hash == "none" {
			c.diags.Warnf(CodeNoGit, name.Pos, "render inside a Git repository", "the lab's name uses Git variables outside a repository; they become \"none\"")
		}
		name.Value = strings.NewReplacer("__gitBranch__", branch, "__gitHash__", hash).Replace(name.Value)
	}
	if i := strings.IndexFunc(name.Value, notInName); i >= 0 {
		r, _ := utf8.DecodeRuneInString(name.Value[i:])
		c.diags.Errorf(CodeBadName, name.Pos, "use letters, digits, hyphens, dots and underscores", "the lab's name %q contains %q, which container names cannot", name.Value, r)
	}
	c.lab.Name = name.Value
	c.lab.Prefix = "clab"
	if c.f.Prefix.Set && c.name(c.f.Prefix.Value, c.f.Prefix.Pos, "the prefix of containers' names") {
		c.lab.Prefix = c.f.Prefix.Value
	}
	c.lab.Namespace = c.o.Namespace
	if c.lab.Namespace == "" && name.Value != "" {
		c.lab.Namespace = MapName(name.Value, 63)
	}
	if strings.HasPrefix(c.lab.Namespace, "kube-") {
		pos := name.Pos
		if c.o.Namespace != "" {
			pos = diag.Pos{}
		}
		c.diags.Errorf(CodeNameReserved, pos, "choose another namespace with -n", "the lab would use the namespace %q, but names that start with kube- are reserved for Kubernetes", c.lab.Namespace)
	}
	if c.o.Namespace != "" && MapName(c.o.Namespace, 63) != c.o.Namespace {
		c.diags.Errorf(CodeBadName, diag.Pos{}, fmt.Sprintf("use -n %s", MapName(c.o.Namespace, 63)), "%q is not a valid namespace name", c.o.Namespace)
	}
}

// longName is containerlab's container name.
func (c *compiler) longName(node string) string {
	switch c.lab.Prefix {
	case "":
		return node
	case "__lab-name":
		return c.lab.Name + "-" + node
	default:
		return c.lab.Prefix + "-" + c.lab.Name + "-" + node
	}
}

// nameNodes gives each node its Kubernetes name; collisions name both lines.
func (c *compiler) nameNodes() {
	used := map[string]string{}
	pos := map[string]diag.Pos{}
	var mapped []string
	var first diag.Pos
	if c.o.Namespace == "" && c.lab.Namespace != c.lab.Name && !strings.ContainsFunc(c.lab.Name, notInName) {
		mapped = append(mapped, "the lab "+c.lab.Name+" as "+c.lab.Namespace)
	}
	for n := range c.eachNode() {
		n.ID = MapName(n.Name, maxNodeID)
		if n.ID != n.Name {
			mapped = append(mapped, n.Name+" as "+n.ID)
			first = cmp.Or(first, n.Pos)
		}
		if strings.HasPrefix(n.ID, "c9s-") {
			c.diags.Errorf(CodeNameReserved, n.Pos, "rename the node", "node %q would be called %q in Kubernetes, but names that start with c9s- are reserved", n.Name, n.ID)
		}
		if other, taken := used[n.ID]; taken {
			c.diags.Errorf(CodeNameCollision, n.Pos, "rename one of the two",
				"nodes %q and %q (%s) would both be called %q in Kubernetes", other, n.Name, pos[other], n.ID)
		} else {
			used[n.ID] = n.Name
		}
		pos[n.Name] = n.Pos
	}
	if len(mapped) == 0 || len(c.order) == 0 {
		return
	}
	shown := mapped
	if len(shown) > 8 {
		shown = append(append([]string{}, mapped[:8]...), fmt.Sprintf("and %d more", len(mapped)-8))
	}
	c.diags.Warnf(CodeNameMapped, cmp.Or(first, c.order[0].Pos), "the command line accepts either spelling; inside the device the name stays as written",
		"Kubernetes does not allow some names and shows %s", strings.Join(shown, ", "))
}
