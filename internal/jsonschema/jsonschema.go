// Package jsonschema describes Go types as JSON schemas (draft 2020-12), for editors.
package jsonschema

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Maker makes the schema of one file. It makes a definition of each struct type once.
type Maker struct {
	// Enums are the fields with a fixed set of values, by TYPE.key.
	Enums map[string][]string
	// Types are the schemas of types that are not written as their Go kind.
	Types map[reflect.Type]map[string]any
	// Forms are the schemas of the other forms in which types may be written.
	Forms map[reflect.Type][]map[string]any

	// Required are the keys that objects must have, by TYPE.
	Required map[string][]string

	defs map[string]any
}

// File returns the schema of a file of type t with these values of apiVersion and kind.
func (m *Maker) File(t reflect.Type, title, apiVersion, kind string) ([]byte, error) {
	m.defs = map[string]any{}
	root := m.object(t)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = title
	properties := root["properties"].(map[string]any)
	properties["apiVersion"] = map[string]any{"const": apiVersion}
	properties["kind"] = map[string]any{"const": kind}
	root["required"] = []string{"apiVersion", "kind"}
	root["$defs"] = m.defs
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

// of returns the schema of a type in all its forms.
func (m *Maker) of(t reflect.Type) map[string]any {
	if schema, ok := m.Types[t]; ok {
		return schema
	}
	schema := m.own(t)
	if forms := m.Forms[t]; len(forms) > 0 {
		return map[string]any{"anyOf": append([]map[string]any{schema}, forms...)}
	}
	return schema
}

func (m *Maker) own(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return m.of(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": m.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": m.of(t.Elem())}
	case reflect.Struct:
		name := t.Name()
		if _, made := m.defs[name]; !made {
			m.defs[name] = nil // a type that holds itself finds it made
			m.defs[name] = m.object(t)
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
func (m *Maker) object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	m.fields(t, t.Name(), properties)
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if keys := m.Required[t.Name()]; len(keys) > 0 {
		out["required"] = keys
	}
	return out
}

func (m *Maker) fields(t reflect.Type, owner string, properties map[string]any) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") || (f.Anonymous && name == "") {
			m.fields(f.Type, owner, properties)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		schema := m.of(f.Type)
		if values, ok := m.Enums[owner+"."+name]; ok {
			schema = map[string]any{"enum": values}
		}
		properties[name] = schema
	}
}
