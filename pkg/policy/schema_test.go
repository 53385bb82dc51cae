package policy

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/c9s-lab/c9s/internal/jsonschema"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

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
