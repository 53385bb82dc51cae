package policy

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/c9s-lab/c9s/internal/jsonschema"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// requiredKeys are the keys that the program requires, by the type of their mapping.
var requiredKeys = map[string][]string{
	"ClusterFile": {"path"}, "ExternalRule": {"prefixes", "allow"}, "Member": {"interface"}, "MgmtRule": {"allow"},
	"Profile": {"name"}, "Segment": {"name", "members"},
}

// TestRequiredKeys: a file without one of the keys that the schema requires is rejected.
func TestRequiredKeys(t *testing.T) {
	valid := map[string]string{
		"ClusterFile":  "profiles: [{name: a, set: {files: [{path: /a, secret: s, key: k}]}}]",
		"ExternalRule": "external: [{prefixes: [10.0.0.0/8], allow: true}]",
		"Member":       "segments: [{name: a, members: {interface: eth1}}]",
		"MgmtRule":     "management: [{from: {names: [a]}, allow: true}]",
		"Profile":      "profiles: [{name: a, deny: true}]",
		"Segment":      "segments: [{name: a, members: {interface: eth1}}]",
	}
	for of, keys := range requiredKeys {
		if p, diags := Load("c9s.yaml", []byte(policyHead+valid[of])); p == nil {
			t.Errorf("%s: %v", valid[of], diags)
		}
		for _, key := range keys {
			without := regexp.MustCompile(`([{ ])`+key+`: (\{[^}]*\}|\[[^\]]*\]|[^,}]*)(, )?`).ReplaceAllString(valid[of], "$1")
			if without == valid[of] {
				t.Errorf("%s has no %s", valid[of], key)
			}
			if p, diags := Load("c9s.yaml", []byte(policyHead+without)); p != nil || !strings.Contains(fmt.Sprint(diags), "[policy-invalid]") {
				t.Errorf("%s is accepted: %v", without, diags)
			}
		}
	}
}

// Schema is the JSON schema of a policy file.
func Schema() ([]byte, error) {
	text := map[string]any{"type": "string"}
	either := map[string]any{"type": []string{"string", "number"}}
	m := jsonschema.Maker{
		Enums: map[string][]string{
			"Expose.type":         {"ClusterIP", "LoadBalancer", "NodePort", "Headless", "None"},
			"Set.imagePullPolicy": {"Always", "IfNotPresent", "Never"},
			"LinkRule.datapath":   {"auto", "udp", "vxlan", "local"},
			"File.mgmt-names":     {mgmtNamesPlain, mgmtNamesSuffix},
			"File.placement":      {placementSpread, placementPack},
		},
		Required: requiredKeys,
		Types: map[reflect.Type]map[string]any{
			reflect.TypeFor[resource.Quantity](): either, reflect.TypeFor[intstr.IntOrString](): either,
			reflect.TypeFor[topology.Str](): text, reflect.TypeFor[topology.Bool](): {"type": "boolean"}, reflect.TypeFor[Selector](): {"$ref": "#/$defs/Match"},
			reflect.TypeFor[topology.List](): {"type": "array", "items": map[string]any{"enum": slices.Sorted(maps.Keys(lab.ForwardBits))}},
		},
		Forms: map[reflect.Type][]map[string]any{
			reflect.TypeFor[Gateway](): {text}, reflect.TypeFor[Members](): {{"$ref": "#/$defs/Member"}},
		},
	}
	return m.File(reflect.TypeFor[File](), "c9s policy file (c9s.yaml)", APIVersion, Kind)
}
