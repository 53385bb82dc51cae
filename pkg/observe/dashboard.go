package observe

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Panel is a panel of the dashboard.
type Panel struct {
	Title  string
	Kind   string // Grafana's type: stat, timeseries, table
	Unit   string // Grafana's name of a unit
	Expr   string // in PromQL, with Grafana's $lab and $__rate_interval
	Legend string
	Width  int // of 24 columns
	Height int
}

// Panels are those of the dashboard, from left to right and from top to bottom.
func Panels() []Panel {
	on := func(m Metric) string { return m.Name + `{lab="$lab"}` }
	rate := func(m Metric) string { return "rate(" + on(m) + "[$__rate_interval])" }
	return []Panel{
		{"Nodes ready", "stat", "none", "sum(" + on(NodeReady) + ")", "", 6, 4},
		{"Nodes not ready", "stat", "none", "count(" + on(NodeReady) + " == 0) or vector(0)", "", 6, 4},
		{"Links up", "stat", "none", "sum(" + on(LinkUp) + ")", "", 6, 4},
		{"Links down", "stat", "none", "count(" + on(LinkUp) + " == 0) or vector(0)", "", 6, 4},
		{"Traffic", "timeseries", "bps", rate(LinkBytes) + " * 8", "{{from}} to {{to}}", 12, 9},
		{"Round-trip time of heartbeats", "timeseries", "s", on(LinkRTT), "{{a}} - {{b}}", 12, 9},
		{"Lost heartbeats", "timeseries", "percentunit", on(LinkLoss), "{{a}} - {{b}}", 12, 8},
		{"Dropped frames", "timeseries", "pps", rate(LinkDropped), "{{a}} - {{b}}", 12, 8},
		{"Restarts of nodes", "timeseries", "none", on(NodeRestarts), "{{node}}", 12, 8},
		{"State of nodes", "table", "none", on(NodeState) + " == 1", "", 12, 8},
	}
}

// Dashboard returns the dashboard of a lab as JSON for Grafana's import (schema version 39, Grafana
// 11). It has variables for the data source and the lab.
func Dashboard(lab string) ([]byte, error) {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${datasource}"}
	labs := fmt.Sprintf("label_values(%s, %s)", NodeReady.Name, LabelLab)
	var panels []object
	x, y, height := 0, 0, 0
	for i, p := range Panels() {
		if x+p.Width > 24 {
			x, y = 0, y+height
		}
		target := object{"refId": "A", "datasource": source, "expr": p.Expr, "legendFormat": p.Legend}
		panel := object{
			"id": i + 1, "title": p.Title, "type": p.Kind, "datasource": source, "targets": []object{target},
			"gridPos":     object{"x": x, "y": y, "w": p.Width, "h": p.Height},
			"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0}, "overrides": []object{}},
		}
		if p.Kind == "table" {
			target["format"], target["instant"] = "table", true
			hidden := object{}
			for _, column := range []string{"Time", "Value", "__name__", "instance", "job", LabelLab} {
				hidden[column] = true
			}
			panel["transformations"] = []object{{"id": "organize", "options": object{"excludeByName": hidden}}}
		}
		panels = append(panels, panel)
		x, height = x+p.Width, p.Height
	}
	out := object{
		"title": "c9s: " + lab, "uid": uid(lab), "tags": []string{"c9s"}, "schemaVersion": 39, "refresh": "10s",
		"time":   object{"from": "now-30m", "to": "now"},
		"panels": panels,
		"templating": object{"list": []object{
			{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
			{
				"name": LabelLab, "label": "Lab", "type": "query", "datasource": source, "refresh": 2, "sort": 1,
				"query":      object{"query": labs, "refId": LabelLab},
				"definition": labs,
				"current":    object{"text": lab, "value": lab},
			},
		}},
	}
	data, err := json.MarshalIndent(out, "", "  ")
	return append(data, '\n'), err
}

// maxUID is the length of the longest uid that Grafana takes.
const maxUID = 40

// uid is the dashboard's id: the same for the same lab, so that an import replaces it.
func uid(lab string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, "c9s-"+lab)
	return clean[:min(len(clean), maxUID)]
}
