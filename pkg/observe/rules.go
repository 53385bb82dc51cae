package observe

import (
	"fmt"
	"strings"
)

// Alert is an alert rule.
type Alert struct {
	Name     string
	Expr     string // in PromQL
	For      string // how long it holds before the alert fires
	Severity string
	Summary  string
}

// Alerts returns the alert rules for a lab.
func Alerts(lab string) []Alert {
	// What somebody broke on purpose is no alarm.
	const unlessMeant = " unless on (lab, a, b) "
	on := func(m Metric) string { return fmt.Sprintf("%s{%s=%q}", m.Name, LabelLab, lab) }
	return []Alert{
		{"C9sNodeNotReady", on(NodeReady) + " == 0", "5m", "warning", "Node {{ $labels.node }} of lab {{ $labels.lab }} is not ready."},
		{"C9sNodeRestarts", "increase(" + on(NodeRestarts) + "[10m]) > 0", "", "warning", "Node {{ $labels.node }} of lab {{ $labels.lab }} has restarted."},
		{"C9sLinkDown", on(LinkUp) + " == 0" + unlessMeant + on(LinkImpaired) + " == 1", "1m", "warning", "Link {{ $labels.a }} - {{ $labels.b }} of lab {{ $labels.lab }} is down."},
		{"C9sLinkLoss", on(LinkLoss) + " > 0.05" + unlessMeant + on(LinkImpaired) + " == 1", "1m", "warning",
			"Link {{ $labels.a }} - {{ $labels.b }} of lab {{ $labels.lab }} loses {{ $value | humanizePercentage }} of its heartbeats."},
		{"C9sLinkDrops", "rate(" + on(LinkDropped) + "[5m]) > 10", "5m", "info",
			"Link {{ $labels.a }} - {{ $labels.b }} of lab {{ $labels.lab }} drops {{ $value | humanize }} frames per second."},
	}
}

// Rules returns the alert rules for a lab as a file of Prometheus' (rule_files).
func Rules(lab string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "groups:\n- name: %s\n  rules:\n", quote("c9s-"+lab))
	for _, a := range Alerts(lab) {
		fmt.Fprintf(&b, "  - alert: %s\n    expr: %s\n", a.Name, quote(a.Expr))
		if a.For != "" {
			fmt.Fprintf(&b, "    for: %s\n", a.For)
		}
		fmt.Fprintf(&b, "    labels: {severity: %s}\n    annotations: {summary: %s}\n", a.Severity, quote(a.Summary))
	}
	return []byte(b.String())
}

// quote writes a YAML scalar in single quotes.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
