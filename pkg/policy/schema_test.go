package policy

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Schema is the JSON schema (draft 2020-12) of a policy file, for editors.
func Schema() ([]byte, error) {
	s := &schemaMaker{defs: map[string]any{}}
	root := s.object(reflect.TypeFor[File]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "c9s policy file (c9s.yaml)"
	properties := root["properties"].(map[string]any)
	properties["apiVersion"] = map[string]any{"const": APIVersion}
	properties["kind"] = map[string]any{"const": Kind}
	root["required"] = []string{"apiVersion", "kind"}
	root["$defs"] = s.defs
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

// schemaMaker makes a definition of each struct type once.
type schemaMaker struct{ defs map[string]any }

// enums are the fields with a fixed set of values.
var enums = map[string][]string{
	"Expose.type":         {"ClusterIP", "LoadBalancer", "NodePort", "Headless", "None"},
	"Set.imagePullPolicy": {"Always", "IfNotPresent", "Never"},
	"LinkRule.datapath":   {"auto", "udp", "vxlan"},
	"File.mgmt-names":     {mgmtNamesPlain, mgmtNamesSuffix},
}

func (s *schemaMaker) of(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"type": []string{"string", "number"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		name := t.Name()
		if _, made := s.defs[name]; !made {
			s.defs[name] = nil // a type that holds itself finds it made
			s.defs[name] = s.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{"type": "integer"}
	}
}

// object describes a struct by its JSON tags; embedded structs are flattened.
func (s *schemaMaker) object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	s.fields(t, t.Name(), properties)
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func (s *schemaMaker) fields(t reflect.Type, owner string, properties map[string]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") || (f.Anonymous && name == "") {
			s.fields(f.Type, owner, properties)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		schema := s.of(f.Type)
		if values, ok := enums[owner+"."+name]; ok {
			schema = map[string]any{"enum": values}
		}
		properties[name] = schema
	}
}
