package kinds

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// unknownFields reports the keys of node that a value of type typ does not have.
func unknownFields(node *yaml.Node, typ reflect.Type, report func(*yaml.Node)) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case node.Kind == yaml.SequenceNode && typ.Kind() == reflect.Slice:
		for _, item := range node.Content {
			unknownFields(item, typ.Elem(), report)
		}
	case node.Kind == yaml.MappingNode && typ.Kind() == reflect.Struct:
		fields := fieldsOf(typ)
		for i := 0; i+1 < len(node.Content); i += 2 {
			if field, ok := fields[node.Content[i].Value]; ok {
				unknownFields(node.Content[i+1], field, report)
			} else {
				report(node.Content[i])
			}
		}
	case node.Kind == yaml.MappingNode && typ.Kind() == reflect.Map:
		for i := 1; i < len(node.Content); i += 2 {
			unknownFields(node.Content[i], typ.Elem(), report)
		}
	}
}

// fieldsOf are the keys of a struct in YAML with the types of their values.
func fieldsOf(typ reflect.Type) map[string]reflect.Type {
	out := make(map[string]reflect.Type, typ.NumField())
	for field := range typ.Fields() {
		if !field.IsExported() {
			continue
		}
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" {
			key = strings.ToLower(field.Name)
		}
		out[key] = field.Type
	}
	return out
}
