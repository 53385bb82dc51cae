package observe

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promtool runs Prometheus' own checker on files.
func promtool(t *testing.T, files map[string]string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not in PATH (apt-get install prometheus)")
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Prometheus fires the alerts when it should, and not otherwise.
func TestRules(t *testing.T) {
	const lab = "it's"
	test := `rule_files: [rules.yaml]
evaluation_interval: 15s
tests:
- interval: 15s
  input_series:
  - {series: 'c9s_node_ready{lab="it''s", node="R1"}', values: '1x4 0x40'}
  - {series: 'c9s_node_ready{lab="other", node="R1"}', values: '0x44'}
  - {series: 'c9s_node_restarts_total{lab="it''s", node="R1"}', values: '0x8 1x36'}
  - {series: 'c9s_link_up{lab="it''s", a="R1:eth1", b="R2:eth1"}', values: '1x4 0x40'}
  - {series: 'c9s_link_up{lab="it''s", a="R2:eth2", b="R3:eth1"}', values: '1x4 0x40'}
  - {series: 'c9s_link_loss_ratio{lab="it''s", a="R1:eth1", b="R2:eth1"}', values: '0.5x44'}
  - {series: 'c9s_link_impaired{lab="it''s", a="R1:eth1", b="R2:eth1"}', values: '0x44'}
  - {series: 'c9s_link_loss_ratio{lab="it''s", a="R2:eth2", b="R3:eth1"}', values: '0.5x44'}
  - {series: 'c9s_link_impaired{lab="it''s", a="R2:eth2", b="R3:eth1"}', values: '1x44'}
  - {series: 'c9s_link_dropped_frames_total{lab="it''s", a="R1:eth1", b="R2:eth1"}', values: '0+600x44'}
  alert_rule_test:
  - {eval_time: 1m, alertname: C9sLinkDown, exp_alerts: []}
  - eval_time: 150s
    alertname: C9sLinkDown
    exp_alerts: [{exp_labels: {severity: warning, lab: it's, a: R1:eth1, b: R2:eth1}, exp_annotations: {summary: "Link R1:eth1 - R2:eth1 of lab it's is down."}}]
  - {eval_time: 5m, alertname: C9sNodeNotReady, exp_alerts: []}
  - eval_time: 7m
    alertname: C9sNodeNotReady
    exp_alerts: [{exp_labels: {severity: warning, lab: it's, node: R1}, exp_annotations: {summary: "Node R1 of lab it's is not ready."}}]
  - {eval_time: 1m, alertname: C9sNodeRestarts, exp_alerts: []}
  - eval_time: 3m
    alertname: C9sNodeRestarts
    exp_alerts: [{exp_labels: {severity: warning, lab: it's, node: R1}, exp_annotations: {summary: "Node R1 of lab it's has restarted."}}]
  - eval_time: 2m
    alertname: C9sLinkLoss
    exp_alerts: [{exp_labels: {severity: warning, lab: it's, a: R1:eth1, b: R2:eth1}, exp_annotations: {summary: "Link R1:eth1 - R2:eth1 of lab it's loses 50% of its heartbeats."}}]
  - eval_time: 10m
    alertname: C9sLinkDrops
    exp_alerts: [{exp_labels: {severity: info, lab: it's, a: R1:eth1, b: R2:eth1}, exp_annotations: {summary: "Link R1:eth1 - R2:eth1 of lab it's drops 40 frames per second."}}]
`
	files := map[string]string{"rules.yaml": string(Rules(lab)), "test.yaml": test}
	promtool(t, files, "check", "rules", "--lint-fatal", "rules.yaml")
	promtool(t, files, "test", "rules", "test.yaml")
}

// The dashboard is JSON, its panels fill their rows and do not overlap, and Prometheus can
// parse each query.
func TestDashboard(t *testing.T) {
	data, err := Dashboard("dc1")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID, Title string
		Panels     []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID != "c9s-dc1" || d.Title != "c9s: dc1" || len(d.Panels) != len(Panels()) || d.Templating.List[1].Definition != "label_values(c9s_node_ready, lab)" {
		t.Errorf("%+v", d)
	}
	if id := uid(strings.Repeat("ä b", 40)); len(id) > maxUID || !regexp.MustCompile(`^[a-zA-Z0-9-]+$`).MatchString(id) {
		t.Errorf("the uid of a long name is %q", id)
	}
	taken := map[[2]int]string{}
	rules := "groups:\n- name: panels\n  rules:\n"
	for i, p := range d.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q is over %q at column %d, row %d", p.Title, other, x, y)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		expr := strings.NewReplacer("$__rate_interval", "1m", "$lab", "dc1").Replace(p.Targets[0].Expr)
		rules += fmt.Sprintf("  - record: panel:%d\n    expr: %s\n", i, quote(expr))
	}
	rows := 0
	for at := range taken {
		rows = max(rows, at[1]+1)
	}
	if len(taken) != 24*rows {
		t.Errorf("%d of %d cells are taken", len(taken), 24*rows)
	}
	promtool(t, map[string]string{"panels.yaml": rules}, "check", "rules", "panels.yaml")
}

// The page lists every metric as it is.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Metrics() {
		row := fmt.Sprintf("| `%s` | %s | `%s` | %s |", m.Name, m.Type, strings.Join(append([]string{LabelLab}, m.Labels...), "`, `"), m.Help)
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/reference/metrics.md lacks the row\n%s", row)
		}
	}
	for _, a := range Alerts("x") {
		if !strings.Contains(string(page), "| `"+a.Name+"` | ") {
			t.Errorf("docs/reference/metrics.md lacks the alert %s", a.Name)
		}
	}
}
