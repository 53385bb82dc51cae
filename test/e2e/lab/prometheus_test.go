package lab

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// prometheus is a Prometheus beside the cluster.
type prometheus struct{ address string }

// series are the labels of the samples of an answer.
type series []map[string]string

// query asks for the present value of an expression.
func (p prometheus) query(expr string) (series, error) {
	answer, err := http.Get("http://" + p.address + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, err
	}
	if body.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expr, body.Error)
	}
	var out series
	for _, r := range body.Data.Result {
		out = append(out, r.Metric)
	}
	return out, nil
}

// has waits until an expression has a series.
func (p prometheus) has(t *testing.T, expr string) series {
	t.Helper()
	var got series
	testcluster.Eventually(t, patience, expr, func() (err error) {
		if got, err = p.query(expr); err == nil && len(got) == 0 {
			err = fmt.Errorf("no series")
		}
		return err
	})
	return got
}

// targets are the addresses that Pods of the lab offer by their annotations, as most configurations
// of Prometheus look for them. Debian's Prometheus has no service discovery of Kubernetes.
func (l *lab) targets(t *testing.T) []string {
	t.Helper()
	pods, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range pods.Items {
		if p.Annotations["prometheus.io/scrape"] == "true" {
			out = append(out, net.JoinHostPort(p.Status.PodIP, p.Annotations["prometheus.io/port"]))
		}
	}
	return out
}

// startPrometheus runs Prometheus for the targets of the lab, with its alert rules. It ends
// with the test.
func startPrometheus(t *testing.T, l *lab) prometheus {
	t.Helper()
	dir := t.TempDir()
	// The rules wait a minute so that a short outage is no alarm; a test doesn't.
	rules, err := l.output(t, "render", l.topo, "--alert-rules")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"rules.yaml": strings.ReplaceAll(string(rules), "for: 1m", "for: 2s"),
		"config.yaml": fmt.Sprintf(`global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- job_name: c9s
  static_configs: [{targets: [%s]}]
`, strings.Join(l.targets(t), ", ")),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := prometheus{free.Addr().String()}
	free.Close()
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "config.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address)
	background(t, cmd)
	return p
}

// TestPrometheus: a real Prometheus finds the lab by its annotations, reads all that the dashboard
// shows, and fires an alert for a link that is down without anybody's doing.
func TestPrometheus(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("prometheus is not in PATH (apt-get install prometheus)")
	}
	l := written(t, "watched", map[string]string{"lab.clab.yml": `name: watched
topology:
  defaults: {kind: linux, image: "ghcr.io/srl-labs/network-multitool:latest"}
  nodes:
    A: {exec: [ip addr add 10.9.0.1/24 dev eth1]}
    b: {exec: [ip addr add 10.9.0.2/24 dev eth1]}
  links:
    - endpoints: ["A:eth1", "b:eth1"]
`})
	l.deploy(t)
	l.ready(t)
	p := startPrometheus(t, l)
	l.reaches(t, "A", "10.9.0.2")

	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	data, err := l.output(t, "render", l.topo, "--dashboard")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	if len(dashboard.Panels) < 5 {
		t.Errorf("the dashboard has %d panels", len(dashboard.Panels))
	}
	for _, panel := range dashboard.Panels {
		p.has(t, strings.NewReplacer("$__rate_interval", "10s", "$lab", "watched").Replace(panel.Targets[0].Expr))
	}
	p.has(t, `c9s_node_info{lab="watched", node="A", kind="linux", worker=~"n.+"}`)
	p.has(t, `c9s_link_bytes_total{from="A:eth1", to="b:eth1"} > 0`)
	if alerts, err := p.query("ALERTS"); err != nil || len(alerts) != 0 {
		t.Errorf("alerts of a lab at rest: %v, %v", alerts, err)
	}

	if out, err := l.in(t.Context(), "A", "ip", "link", "set", "eth1", "down"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	alerts := p.has(t, `ALERTS{alertname="C9sLinkDown", alertstate="firing"}`)
	if alerts[0]["a"] != "A:eth1" || alerts[0]["b"] != "b:eth1" || alerts[0]["severity"] != "warning" {
		t.Errorf("%v", alerts)
	}
	if out, err := l.in(t.Context(), "A", "ip", "link", "set", "eth1", "up"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.has(t, `c9s_link_up{a="A:eth1"} == 1`)
	l.c9s(t, "link", "down", "A:eth1", "-n", l.ns)
	p.has(t, `c9s_link_up == 0 and on (lab, a, b) c9s_link_impaired == 1`)
	l.destroyed(t)
}
