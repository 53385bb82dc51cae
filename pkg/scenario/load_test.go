package scenario

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/internal/jsonschema"
	"github.com/c9s-lab/c9s/pkg/labtest"
)

var update = flag.Bool("update", false, "write the schema")

const head = "apiVersion: c9s.dev/v1\nkind: Scenario\n"

// TestLoadReportsAll: every problem of a file is reported, with its position.
func TestLoadReportsAll(t *testing.T) {
	_, diags := Load("x.yaml", []byte(`apiVersion: c9s.dev/v2
kind: Scenario
duration: soon
probes:
  - from: H1
  - to: 10.0.0.300
events:
  - at: 1s
  - {at: 1s, link: R1, do: down}
  - {at: 1s, link: "R1:eth1", node: R1}
  - {link: "R1:eth1"}
  - {at: 1s, link: "R1:eth1", do: set}
  - {at: 1s, link: "R1:eth1", impair: {loss: 200}}
  - {at: 1s, link: "R1:eth1", do: flap, flaps: {every: 10ms}}
  - {at: 1s, link: "R1:eth1", do: explode}
  - {at: 1s, node: R1}
  - {at: 1s, node: R1, do: restart, for: 5s}
  - {at: 1s, node: R1, do: stop, impair: {loss: 1}}
  - {at: 1s, node: "R[", do: stop}
  - {at: 1s, exec: R1}
  - {at: 1s, exec: R1, command: ls, do: down}
  - {at: 1s, worker: n1, do: reboot}
  - {at: 1s, worker: n1, do: cordon, for: 5s, keep: true}
  - {at: 1s, link: "R1:eth1", times: 5}
  - {at: 25h, link: "R1:eth1"}
  - {at: 1s, link: "R1:eth1", linkk: x}
`))
	var got []string
	for _, d := range diags {
		got = append(got, d.String())
	}
	for _, want := range []string{
		`x.yaml:1:1: error: apiVersion is "c9s.dev/v2"`, `x.yaml:3:11: error: duration must be a duration`,
		`x.yaml:5:5: error: a probe has no to`, `x.yaml:6:9: error: to must be an IP address`, `x.yaml:6:5: error: a probe has no from`,
		`x.yaml:8:5: error: an event needs one of link, node, worker and exec`, `x.yaml:9:5: error: "R1" is not the end of a link`,
		`x.yaml:10:5: error: an event needs one of`, `x.yaml:11:5: error: an event has no at`, `x.yaml:12:5: error: the event has no impair`,
		`x.yaml:13:5: error: impair: loss 200`, `x.yaml:14:48: error: flaps: every 10ms`, `x.yaml:15:5: error: do is "explode" for a link`,
		`x.yaml:16:5: error: do is "" for a node`, `x.yaml:17:5: error: an event of a node with do: restart takes no for`,
		`x.yaml:18:5: error: an event of a node with do: stop takes no impair`, `x.yaml:19:5: error: pattern "R[" is malformed`,
		`x.yaml:20:5: error: the event has no command`, `x.yaml:21:5: error: do is "down" for a exec`, `x.yaml:22:5: error: do is "reboot" for a worker`,
		`x.yaml:23:5: error: keep and for exclude one another`, `x.yaml:24:5: error: an event has no every`, `x.yaml:25:5: error: the event is later than 24h0m0s`,
		`x.yaml:26:31: error: unknown key "linkk"`,
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
	f, diags := Load("x.yaml", []byte(head+`seed: 7
probes:
  - {from: H1, to: 10.0.0.2, within: 2s}
events:
  - {at: 0s, link: "R1:eth1", for: 10s}
  - {at: 2s, link: ["R1:*", "R2:eth1"], pick: 1, impair: {delay: 20ms}}
  - {at: 1m, link: "R1:eth1", do: flap}
  - {at: 3s, exec: R1, command: vtysh -c 'clear ip ospf process'}
`))
	if f == nil || len(diags) > 0 {
		t.Fatalf("%v", diags)
	}
	down, set, flap, run := f.Events[0], f.Events[1], f.Events[2], f.Events[3]
	if down.Do != DoDown || down.Pos.Line != 7 || time.Duration(down.For) != 10*time.Second || set.Do != DoSet || len(set.Link) != 2 || flap.Flaps.Times != 3 || flap.Flaps.Down != flap.Flaps.Every/2 || strings.Join(run.Command, "|") != "sh|-c|vtysh -c 'clear ip ospf process'" {
		t.Errorf("%+v", f.Events)
	}
	for _, text := range []string{"", "a: [", "- x\n", head} {
		if f, diags := Load("x", []byte(text)); f != nil || len(diags) == 0 {
			t.Errorf("%q: %v, %v", text, f, diags)
		}
	}
}

// TestSchema holds docs/scenario.schema.json against the types.
func TestSchema(t *testing.T) {
	text := map[string]any{"type": "string"}
	list := map[string]any{"oneOf": []any{text, map[string]any{"type": "array", "items": text}}}
	duration := map[string]any{"type": "string", "pattern": `^([0-9.]+(ms|s|m|h))+$`}
	m := jsonschema.Maker{
		Enums: map[string][]string{"Event.do": {DoDown, DoUp, DoFlap, DoSet, DoReset, DoStop, DoStart, DoRestart, DoCordon, DoUncordon, DoDrain}},
		Types: map[reflect.Type]map[string]any{
			reflect.TypeFor[labtest.Duration](): duration,
			reflect.TypeFor[Time]():             duration,
			reflect.TypeFor[labtest.Address]():  text,
			reflect.TypeFor[labtest.Argv]():     list,
			reflect.TypeFor[Names]():            list,
		},
	}
	got, err := m.File(reflect.TypeFor[File](), "c9s scenario", APIVersion, Kind)
	if err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/scenario.schema.json"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != string(got) {
		t.Errorf("%s is not up to date (%v); run go test ./pkg/scenario -update", file, err)
	}
	var schema struct {
		Defs map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(got, &schema); err != nil {
		t.Fatal(err)
	}
	for def, field := range map[string]string{"Event": "link", "Probe": "within", "Impair": "delay", "Flaps": "every"} {
		if _, ok := schema.Defs[def].Properties[field]; !ok {
			t.Errorf("the schema has no %s.%s", def, field)
		}
	}
}
