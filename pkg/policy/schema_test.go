package policy

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/c9s-lab/c9s/internal/jsonschema"
)

// Schema is the JSON schema of a policy file.
func Schema() ([]byte, error) {
	either := map[string]any{"type": []string{"string", "number"}}
	m := jsonschema.Maker{
		Enums: map[string][]string{
			"Expose.type":         {"ClusterIP", "LoadBalancer", "NodePort", "Headless", "None"},
			"Set.imagePullPolicy": {"Always", "IfNotPresent", "Never"},
			"LinkRule.datapath":   {"auto", "udp", "vxlan", "local"},
			"File.mgmt-names":     {mgmtNamesPlain, mgmtNamesSuffix},
			"File.placement":      {placementSpread, placementPack},
		},
		Types: map[reflect.Type]map[string]any{reflect.TypeFor[resource.Quantity](): either, reflect.TypeFor[intstr.IntOrString](): either},
	}
	return m.File(reflect.TypeFor[File](), "c9s policy file (c9s.yaml)", APIVersion, Kind)
}
