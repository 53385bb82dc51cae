package labtest

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/internal/jsonschema"
)

var update = flag.Bool("update", false, "write the schema")

const head = "apiVersion: c9s.dev/v1\nkind: Test\n"

// TestLoadReportsAll: every problem of a file is reported, with its position.
func TestLoadReportsAll(t *testing.T) {
	_, diags := Load("x.test.yaml", []byte(`apiVersion: c9s.dev/v2
kind: Test
basics: [links, wires]
timeout: soon
reachability:
  - from: [H1]
    to: [10.0.0.300]
  - to: [10.0.0.1]
    except: [{from: H1, to: 10.0.0.2}]
    size: 100
commands:
  - nodes: [R1]
    command: ""
    matches: "("
    json: [{path: "{.a"}, {path: "{.a}"}]
  - nodes: [R1]
    comand: ip route
neighbours:
  - nodes: [R1]
    protocol: rip
links:
  - links: [R1]
    level: fatal
paths:
  - from: H1
    to: 10.0.0.1
convergence:
  - from: H1
    to: 10.0.0.1
    within: 5m
    event: {cut: "R1:eth1", command: reboot}
  - from: H1
    to: 10.0.0.1
`))
	var got []string
	for _, d := range diags {
		got = append(got, d.String())
	}
	for _, want := range []string{
		`x.test.yaml:1:1: error: apiVersion is "c9s.dev/v2"`, `basics: "wires" is not a check`, `x.test.yaml:4:10: error: timeout must be a duration`,
		`x.test.yaml:7:10: error: an entry of to must be an IP address`, `x.test.yaml:8:5: error: a check of reachability has no from`,
		`except: 10.0.0.2 is not an address under to`, `size 100 is not possible`, `x.test.yaml:13:14: error: command is empty`, `matches: error parsing regexp`,
		`path "{.a": unclosed action`, `the check of "{.a}" says nothing of the value`, `x.test.yaml:17:5: error: unknown key "comand"`,
		`protocol is "rip"`, `the check of neighbours expects nothing`, `"R1" is not the end of a link`, `level is "fatal"`,
		`a check of a path has no through or avoid`, `within is longer than 2m0s`, `an event in a node needs a command, and one by cut has none`,
		`a check of convergence has no event`, `a check of convergence has no within`,
	} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%q is not reported", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
}

func TestLoad(t *testing.T) {
	f, diags := Load("x.test.yaml", []byte(head+`timeout: 10s
commands:
  - {name: route, labels: [core], nodes: ["R*"], command: [ip, route], contains: [default]}
  - {nodes: [R1], command: ip route | wc -l, level: warning, json: [{path: "{.a}", equals: "", count: 0}]}
`))
	if f == nil || len(diags) > 0 {
		t.Fatalf("%v", diags)
	}
	a, b := f.Commands[0], f.Commands[1]
	if a.Pos.Line != 5 || strings.Join(a.Command, "|") != "ip|route" || strings.Join(b.Command, "|") != "sh|-c|ip route | wc -l" || *b.JSON[0].Equals != "" || *b.JSON[0].Count != 0 {
		t.Errorf("%+v\n%+v", a, b)
	}
	for _, text := range []string{"", "a: [", "- x\n"} {
		if f, diags := Load("x", []byte(text)); f != nil || len(diags) == 0 {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestSchema holds docs/test.schema.json against the types.
func TestSchema(t *testing.T) {
	text := map[string]any{"type": "string"}
	m := jsonschema.Maker{
		Enums: map[string][]string{
			"Neighbours.protocol": Protocols,
		},
		Types: map[reflect.Type]map[string]any{
			reflect.TypeFor[Duration](): {"type": "string", "pattern": `^([0-9.]+(ms|s|m|h))+$`},
			reflect.TypeFor[Address]():  text,
			reflect.TypeFor[Argv]():     {"oneOf": []any{text, map[string]any{"type": "array", "items": text}}},
		},
	}
	for _, check := range []string{"Reachability", "Command", "Neighbours", "Links", "Path", "Convergence"} {
		m.Enums[check+".level"] = []string{levelError, levelWarning}
	}
	got, err := m.File(reflect.TypeFor[File](), "c9s test file (LAB.test.yaml)", APIVersion, Kind)
	if err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/test.schema.json"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != string(got) {
		t.Errorf("%s is not up to date (%v); run go test ./pkg/labtest -update", file, err)
	}
	var schema struct {
		Defs map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(got, &schema); err != nil {
		t.Fatal(err)
	}
	for def, field := range map[string]string{"Reachability": "level", "Command": "json", "JSONCheck": "path", "Event": "cut", "Pair": "to"} {
		if _, ok := schema.Defs[def].Properties[field]; !ok {
			t.Errorf("the schema has no %s.%s", def, field)
		}
	}
}
