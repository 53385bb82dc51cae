package live

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/graph"
	"github.com/c9s-lab/c9s/pkg/status"
)

func sample(state status.State, link status.LinkState, sent uint64) status.Lab {
	return status.Lab{
		Name: "demo", Namespace: "lab-demo", State: status.LabReady,
		Nodes: []status.Node{
			{Name: "R1", Kind: "linux", State: state, Pod: "r1", PodName: "r1-abc", Worker: "w1", IPv4: netip.MustParseAddr("172.20.20.3"), Restarts: 2},
			{Name: "R2", Kind: "linux", State: status.StateReady, Pod: "r2", Worker: "w2"},
		},
		Links: []status.Link{
			{
				ID: 7, Kind: "wire", State: link, Datapath: "vxlan", RTT: .4, Loss: 3, TxBytes: sent, RxBytes: 2 * sent,
				A: status.End{Node: "R1", Interface: "eth1", Known: true, Carrier: true, Impairment: &contract.Impairment{DelayMS: 5}},
				B: status.End{Node: "R2", Interface: "eth1", Known: true},
			},
			{Kind: "macvlan", State: status.LinkUp, A: status.End{Node: "R1", Interface: "eth2"}},
			{Kind: "dummy", State: status.LinkUp, A: status.End{Node: "R1", Interface: "d0"}},
		},
	}
}

var commands = Commands{
	Node: func(n status.Node) []graph.Command {
		return []graph.Command{{Label: "Log in", Line: "c9s ssh " + n.Name}}
	},
	Link: func(status.Link) []graph.Command { return nil },
}

func graphOf(l status.Lab, rates Rates) *graph.Graph {
	return Graph(l, map[string]map[string]string{"R2": {"graph-level": "0"}, "R1": {"graph-level": "1"}}, rates, commands, time.Unix(1, 0))
}

func TestGraph(t *testing.T) {
	var m Meter
	began := time.Unix(100, 0)
	if rates := m.Read(sample(status.StateReady, status.LinkUp, 1000).Links, began); len(rates) != 0 {
		t.Errorf("rates of one reading: %v", rates)
	}
	l := sample(status.StateReady, status.LinkUp, 2000)
	rates := m.Read(l.Links, began.Add(2*time.Second))
	g := graphOf(l, rates)
	if len(g.Nodes) != 3 || len(g.Edges) != 2 || g.Nodes[g.Levels[0][0]].Name != "R2" || !g.Nodes[2].Outside {
		t.Fatalf("%+v", g)
	}
	n, k := g.Nodes[0].Live, g.Edges[0].Live
	if n.State != "ready" || n.Worker != "w1" || n.Restarts != 2 || n.Commands[0].Line != "c9s ssh R1" || g.Nodes[0].Mgmt != "172.20.20.3" {
		t.Errorf("%+v", n)
	}
	if k.State != "up" || k.Carrier != [2]string{"up", "down"} || k.Impairment != [2]string{"delay 5ms", ""} || k.Datapath != "vxlan" || k.Loss != 3 || *k.Rate != [2]float64{4000, 8000} {
		t.Errorf("%+v, rate %v", k, *k.Rate)
	}
	if rates := m.Read(sample(status.StateReady, status.LinkUp, 10).Links, began.Add(4*time.Second)); len(rates) != 2 {
		t.Errorf("a link whose counters began again has a rate: %v", rates)
	}
}

// Only requests for a loopback host are answered.
func TestHost(t *testing.T) {
	handler := NewPage(graphOf(sample(status.StateReady, status.LinkUp, 0), nil)).Handler()
	for host, want := range map[string]int{
		"127.0.0.1:8000": 200, "127.0.0.1": 200, "localhost:8000": 200, "LOCALHOST": 200, "[::1]:8000": 200, "[::1]": 200, "127.5.6.7:1": 200,
		"": 421, "attacker.example:8000": 421, "127.0.0.1.attacker.example": 421, "localhost.attacker.example": 421, "10.0.0.1:8000": 421, "0.0.0.0:8000": 421, "[::]:8000": 421, "127.0.0.1@attacker.example": 421,
	} {
		for _, path := range []string{"/", "/graph.json"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != want || want != 200 && strings.Contains(w.Body.String(), "R1") {
				t.Errorf("Host %q, %s: %d, want %d", host, path, w.Code, want)
			}
		}
	}
	for _, r := range []*http.Request{httptest.NewRequest("POST", "/", nil), httptest.NewRequest("GET", "/other", nil)} {
		r.Host = "127.0.0.1"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != 405 && w.Code != 404 {
			t.Errorf("%s %s: %d", r.Method, r.URL, w.Code)
		}
	}
}

// Each answer has headers that keep other pages out; the page's scripts need its nonce.
func TestHeaders(t *testing.T) {
	handler := NewPage(graphOf(sample(status.StateReady, status.LinkUp, 0), nil)).Handler()
	nonces := map[string]bool{}
	for range 2 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = "127.0.0.1:1"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		policy := w.Header().Get("Content-Security-Policy")
		_, after, _ := strings.Cut(policy, "script-src 'nonce-")
		nonce, _, _ := strings.Cut(after, "'")
		if len(nonce) < 20 || !strings.Contains(w.Body.String(), `<script nonce="`+nonce+`">`) || !strings.Contains(w.Body.String(), `<style nonce="`+nonce+`">`) {
			t.Errorf("policy %q does not fit the page", policy)
		}
		nonces[nonce] = true
	}
	if len(nonces) != 2 {
		t.Error("two pages have the same nonce")
	}
}

// event is one of a stream.
type event struct{ name, data string }

// TestEvents: a reader gets the graph, then what changes, and the graph again where nodes changed.
func TestEvents(t *testing.T) {
	page := NewPage(graphOf(sample(status.StateReady, status.LinkUp, 0), nil))
	server := httptest.NewServer(page.Handler())
	defer server.Close()
	resp, err := http.Get(server.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	next := func() (e event) {
		t.Helper()
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ": "); {
			case name == "event":
				e.name = value
			case name == "data":
				e.data = value
			case e.name != "":
				return e
			}
		}
		t.Fatal("the stream has ended")
		return e
	}
	if e := next(); e.name != "graph" || !strings.Contains(e.data, `"name":"R1"`) {
		t.Fatalf("%+v", e)
	}
	page.Set(graphOf(sample(status.StateReady, status.LinkUp, 0), nil)) // no news
	page.Set(graphOf(sample(status.StateFailed, status.LinkUp, 0), nil))
	e := next()
	var u update
	if err := json.Unmarshal([]byte(e.data), &u); e.name != "update" || err != nil || len(u.Nodes) != 1 || u.Nodes[0].State != "failed" || len(u.Links) != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	page.Set(graphOf(sample(status.StateFailed, status.LinkDown, 0), nil))
	u = update{}
	if e := next(); json.Unmarshal([]byte(e.data), &u) != nil || len(u.Nodes) != 0 || u.Links[0].State != "down" {
		t.Errorf("%+v", e)
	}
	page.Trouble("the API server does not answer")
	if e := next(); e != (event{"trouble", `"the API server does not answer"`}) {
		t.Errorf("%+v", e)
	}
	l := sample(status.StateReady, status.LinkUp, 0)
	l.Nodes = append(l.Nodes, status.Node{Name: "R3"})
	page.Set(graphOf(l, nil))
	if e := next(); e.name != "graph" || !strings.Contains(e.data, `"name":"R3"`) {
		t.Errorf("%+v", e)
	}
	if e := next(); e != (event{"trouble", `""`}) {
		t.Errorf("%+v", e)
	}
}
