package manifest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	yamlv2 "go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// awkward are strings that YAML reads as something else where quotes lack.
var awkward = []string{
	"", " ", "~", "null", "Null", "NULL", "true", "True", "yes", "Yes", "NO", "no", "on", "off", "y", "n", "N",
	"0", "0123", "08", "0o14", "0x1F", "0b101", "1e3", "1E+3", "1.5", "1.", ".5", "-1", "+1", "1_000", "_1", "_", "__1", "1:30", "190:20:30",
	"2001-12-14", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10 -5", "2001-12-14T21:59:43Z", ".inf", "-.Inf", ".nan", "NaN", "inf",
	"a: b", "a:", ":a", "a #b", "a#b", "#a", "- a", "-", "-a", "? a", "?", "*a", "&a", "!a", "%a", "@a", "`a", "|", ">", "'a'", `"a"`, "[a]", "{a}", ",a",
	"a\tb", "a b ", " a", "a\n", "a\nb", "\na", "a\n\n", "\n", "\n\n", " a\nb", "a\n b\n", "a\n\n\nb\n\n", "\ta\nb", "a\n\tb\n", "a\n  ", "a\n  \n", "  \n a",
	"a\rb", "a\r\nb", "\x00", "\x7f", "\u0085", "\u2028a\n", "\ufeff", "é\nß", "日本語", "a\u00a0b", "😀\n😀", "\ufffd", "\x1b[0m",
	"=", "<<", "---", "...", "--- a\nb", "a\n---\nb", "64Mi", "5m", "1Gi", "10.0.0.1", "1.2.3", "10.0.0.1/24", "2001:db8::1", "::1", "topo.clab.yml:17", "/etc/x: y",
	"12345678901234567890", "1,000", "0.", "0x", "0xg", "1e", "1t", "1z", "e1-1", "ethernet-1/1", "a\u200bb", strings.Repeat("x", 2000), "a\n" + strings.Repeat("y ", 900),
}

func TestYAMLReadsBack(t *testing.T) {
	for _, s := range awkward {
		checkYAML(t, s, s)
		for _, other := range []string{"b", "true", "x\ny\n"} {
			checkYAML(t, s, other)
			checkYAML(t, other, s)
		}
	}
}

func FuzzYAML(f *testing.F) {
	for i, s := range awkward {
		f.Add(s, awkward[len(awkward)-1-i])
	}
	f.Fuzz(func(t *testing.T, key, text string) { checkYAML(t, key, text) })
}

// checkYAML puts key and text in every place of a document and reads it back
// with parsers of YAML 1.1 and 1.2.
func checkYAML(t *testing.T, key, text string) {
	t.Helper()
	// YAML ends a simple key at 1024 characters; a key of the API has 317 at most.
	key = key[:min(len(key), 150)]
	doc := map[string]any{
		"apiVersion": "v1", "kind": text,
		"map":  map[string]any{"k" + key: text, key: map[string]any{"z": text, key: []any{}, "e": map[string]any{}}},
		"list": []any{text, []any{text, []any{text, key}}, []any{[]any{text}}, map[string]any{key: text, "z" + key: []any{text}}, nil, true, 1.5, 12},
		"text": text,
		"zz":   "end",
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := encodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	var want, again any
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(canonical, &again); err != nil || !reflect.DeepEqual(want, again) {
		t.Fatalf("JSON differs (%v):\n%#v\n%#v", err, want, again)
	}
	out, err := appendYAML(nil, canonical, map[string]string{"list": "why", "map": "x"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, got any, err error) {
		if err != nil {
			t.Fatalf("%s: %v\n%q\n%s", name, err, text, out)
		}
		if got = jsonValue(t, got); !reflect.DeepEqual(want, got) {
			t.Fatalf("%s: key %q text %q\nwant %#v\ngot  %#v\n%s", name, key, text, want, got, out)
		}
	}
	var got any
	err = yaml.Unmarshal(out, &got)
	check("sigs.k8s.io/yaml", got, err)
	var v2 any
	err = yamlv2.Unmarshal(out, &v2)
	check("yaml v2", stringKeys(v2), err)
	var v3 any
	err = yamlv3.Unmarshal(out, &v3)
	check("yaml v3", stringKeys(v3), err)
	if indented := breakLines(nil, canonical, 0, everywhere); json.Unmarshal(indented, &got) != nil || !reflect.DeepEqual(want, got) {
		t.Fatalf("indented JSON differs:\n%s", indented)
	}
}

func jsonValue(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// stringKeys turns the map[any]any of YAML into JSON's maps; a key that is no
// string keeps its Go form, so that it differs from what was written.
func stringKeys(v any) any {
	switch v := v.(type) {
	case map[any]any:
		out := map[string]any{}
		for key, item := range v {
			if s, ok := key.(string); ok {
				out[s] = stringKeys(item)
			} else {
				out["not a string"] = stringKeys(item)
			}
		}
		return out
	case map[string]any:
		for key := range v {
			v[key] = stringKeys(v[key])
		}
	case []any:
		for i := range v {
			v[i] = stringKeys(v[i])
		}
	}
	return v
}

// encodeJSON makes any JSON canonical.
func encodeJSON(data []byte) ([]byte, error) {
	var m map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&m); err != nil {
		return nil, err
	}
	return encodeMap(nil, m, true)
}
