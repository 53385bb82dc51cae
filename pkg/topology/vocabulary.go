package topology

import (
	"reflect"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// Treatment is what c9s does with a field.
type Treatment string

const (
	// Supported fields do in a cluster what they do in containerlab, as far as
	// Field.Here does not say otherwise.
	Supported Treatment = "supported"
	// Accepted fields are read and have no effect; one warning says so.
	Accepted Treatment = "accepted"
	// Refused fields are errors.
	Refused Treatment = "refused"
)

// Field is one key of the vocabulary of a topology file.
type Field struct {
	// Path is the key's place: "node." stands for topology.nodes.NAME, groups,
	// kinds and defaults alike, "link." for an entry of topology.links.
	Path      string    `json:"path"`
	Treatment Treatment `json:"treatment"`
	// Meaning is what containerlab does with it, Here what c9s does.
	Meaning string `json:"meaning"`
	Here    string `json:"here"`
	Example string `json:"example,omitempty"`
}

// since are the releases of containerlab that brought the fields which 0.79 does
// not have.
var since = map[string]string{
	"mgmt.driver":                "0.80",
	"mgmt.macvlan-parent":        "0.80",
	"mgmt.macvlan-mode":          "0.80",
	"mgmt.macvlan-aux":           "0.80",
	"mgmt.ipam":                  "0.80",
	"mgmt.ipam.provider":         "0.80",
	"mgmt.ipam.dad":              "0.80",
	"mgmt.tailscale":             "0.80",
	"mgmt.tailscale.auth-key":    "0.80",
	"mgmt.tailscale.auth-mode":   "0.80",
	"node.mgmt-net":              "0.80",
	"node.components[].cpu":      "0.80",
	"node.components[].ram":      "0.80",
	"node.components[].max-nics": "0.80",
	"node.extras.frr":            "0.80",
	"node.extras.frr.daemons":    "0.80",
}

// Since is the release of containerlab that brought the field, "" for 0.79 or
// earlier.
func (f Field) Since() string { return since[f.Path] }

// Use is a place where the file has a field that is not Supported, or that is
// not effective at its level.
type Use struct {
	Field string
	Pos   diag.Pos
}

// prefixes are the places of the struct types in the vocabulary.
var prefixes = map[reflect.Type]string{
	reflect.TypeFor[File]():                 "",
	reflect.TypeFor[Mgmt]():                 "mgmt.",
	reflect.TypeFor[IPAM]():                 "mgmt.ipam.",
	reflect.TypeFor[Tailscale]():            "mgmt.tailscale.",
	reflect.TypeFor[Settings]():             "settings.",
	reflect.TypeFor[CertificateAuthority](): "settings.certificate-authority.",
	reflect.TypeFor[Topology]():             "topology.",
	reflect.TypeFor[NodeDef]():              "node.",
	reflect.TypeFor[ConfigVars]():           "node.config.",
	reflect.TypeFor[Extras]():               "node.extras.",
	reflect.TypeFor[FRR]():                  "node.extras.frr.",
	reflect.TypeFor[K8sKind]():              "node.extras.k8s_kind.",
	reflect.TypeFor[K8sKindDeploy]():        "node.extras.k8s_kind.deploy.",
	reflect.TypeFor[DNS]():                  "node.dns.",
	reflect.TypeFor[Certificate]():          "node.certificate.",
	reflect.TypeFor[Healthcheck]():          "node.healthcheck.",
	reflect.TypeFor[Credentials]():          "node.credentials.",
	reflect.TypeFor[Component]():            "node.components[].",
	reflect.TypeFor[XIOM]():                 "node.components[].xiom[].",
	reflect.TypeFor[MDA]():                  "node.components[].mda[].",
	reflect.TypeFor[Stages]():               "node.stages.",
	reflect.TypeFor[Stage]():                "node.stages.STAGE.",
	reflect.TypeFor[WaitFor]():              "node.stages.STAGE.wait-for[].",
	reflect.TypeFor[StageExec]():            "node.stages.STAGE.exec[].",
	reflect.TypeFor[Link]():                 "link.",
	reflect.TypeFor[Endpoint]():             "link.endpoints[].",
}

// Keys are all fields that this package can decode, in the vocabulary's spelling.
func Keys() []string {
	var out []string
	for t, prefix := range prefixes {
		for _, key := range strictyaml.Keys(t) {
			out = append(out, prefix+key)
		}
	}
	slices.Sort(out)
	return out
}

// Vocabulary is the whole table, in the order in which people read it.
func Vocabulary() []Field { return slices.Clone(vocabulary) }

// Lookup finds a field by its path, or by the end of it ("binds",
// "certificate.issue"). The paths of "topology.nodes.NAME.binds" are understood
// too. Without a match it returns the nearest path.
func Lookup(name string) (found []Field, nearest string) {
	name = canonicalPath(name)
	want := strings.Split(name, ".")
	var all []string
	for _, f := range vocabulary {
		all = append(all, f.Path)
		have := strings.Split(f.Path, ".")
		if len(have) < len(want) || !slices.EqualFunc(have[len(have)-len(want):], want, sameSegment) {
			continue
		}
		if len(have) == len(want) {
			return []Field{f}, ""
		}
		found = append(found, f)
	}
	if len(found) > 0 {
		return found, ""
	}
	for _, p := range all {
		all = append(all, p[strings.LastIndex(p, ".")+1:])
	}
	return nil, strictyaml.Nearest(name, all)
}

// sameSegment compares a segment of the vocabulary with a written one: "components[]"
// is also written without the brackets, and STAGE is any stage.
func sameSegment(have, want string) bool {
	return have == want || strings.TrimSuffix(have, "[]") == strings.TrimSuffix(want, "[]") ||
		have == strings.ToUpper(have) && strings.ToLower(have) != have && want != ""
}

// canonicalPath turns a path as a file has it into the vocabulary's spelling.
func canonicalPath(name string) string {
	parts := strings.Split(strings.Trim(name, "."), ".")
	if parts[0] == "topology" && len(parts) > 1 {
		parts = parts[1:]
	}
	switch parts[0] {
	case "nodes", "kinds", "groups":
		if len(parts) > 2 {
			return "node." + strings.Join(parts[2:], ".")
		}
	case "defaults":
		if len(parts) > 1 {
			return "node." + strings.Join(parts[1:], ".")
		}
	case "links", "links[]":
		if len(parts) > 1 {
			return "link." + strings.Join(parts[1:], ".")
		}
	}
	return strings.Trim(name, ".")
}

var treatments = func() map[string]Treatment {
	m := make(map[string]Treatment, len(vocabulary))
	for _, f := range vocabulary {
		m[f.Path] = f.Treatment
	}
	return m
}()
