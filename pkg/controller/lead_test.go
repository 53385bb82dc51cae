package controller

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/render/own"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// eventually waits for something that a controller does in its own time.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 10 seconds", what)
		}
	}
}

// A leader over a fake API server and fake sidecars: it writes the status, then
// nothing while the lab rests, and sees a Pod that moves.
func TestLead(t *testing.T) {
	client := cluster(t, pods())
	c := newController(client, Options{Namespace: namespace, Interval: 50 * time.Millisecond, Log: quiet()})
	var mu sync.Mutex
	asked := map[string]int{}
	c.asker.ask = func(_ context.Context, p *corev1.Pod) (api.Status, error) {
		mu.Lock()
		defer mu.Unlock()
		name := p.Labels[own.LabelPod]
		asked[name]++
		return api.Status{Pod: name, Interfaces: []api.Interface{{Node: name, Name: "eth1", Kind: "host", State: api.StateMade}}}, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.lead(ctx) }()

	eventually(t, "status", func() bool {
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, own.StatusConfigMap, metav1.GetOptions{})
		var l status.Lab
		return err == nil && json.Unmarshal([]byte(cm.Data[status.Key]), &l) == nil && l.State == status.LabReady && len(l.Links) == len(names)
	})
	if l := c.get(); l.Source != "controller" || l.Name != "demo" {
		t.Errorf("its own status: %+v", l)
	}
	writes(client)
	mu.Lock()
	before := asked["r1"]
	mu.Unlock()
	eventually(t, "sidecars are asked again", func() bool { mu.Lock(); defer mu.Unlock(); return asked["r1"] > before+1 })
	if got := writes(client); len(got) != 0 {
		t.Errorf("a lab at rest: %v", got)
	}

	moved := pods()[0]
	moved.Status.PodIP, moved.Status.PodIPs = "10.0.0.77", []corev1.PodIP{{IP: "10.0.0.77"}}
	if _, err := client.CoreV1().Pods(namespace).UpdateStatus(ctx, moved, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its new address", func() bool {
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, own.AddressesConfigMap, metav1.GetOptions{})
		return err == nil && strings.Contains(cm.Data["addresses.json"], "10.0.0.77")
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func TestAsker(t *testing.T) {
	all := pods()[:1]
	now := time.Now()
	a := newAsker(time.Minute, nil)
	if got := a.due(all, now); len(got) != 1 {
		t.Fatalf("a Pod that is new: %d are due", len(got))
	}
	if got := a.due(all, now.Add(time.Hour)); len(got) != 0 {
		t.Error("a Pod is asked twice at the same time")
	}
	fail := true
	a.ask = func(context.Context, *corev1.Pod) (api.Status, error) {
		if fail {
			return api.Status{}, context.DeadlineExceeded
		}
		return api.Status{Pod: "r1"}, nil
	}
	news := 0
	a.changed = func() { news++ }
	for _, step := range []struct {
		fail  bool
		news  int
		known int
	}{
		{true, 0, 0},               // no answer yet
		{false, 1, 1},              // the first
		{false, 1, 1},              // the same again
		{true, 1, 1}, {true, 1, 1}, // one try or two without an answer are no news
		{true, 2, 0}, {true, 2, 0}, // the third is, once
		{false, 3, 1}, // and so is its return
	} {
		fail = step.fail
		a.one(t.Context(), all[0])
		if got := len(a.answers(all)); news != step.news || got != step.known {
			t.Errorf("%+v: %d news, %d known", step, news, got)
		}
	}
	if a.due(nil, now); len(a.known) != 0 {
		t.Error("a Pod that is gone is remembered")
	}
	noAddress := pods()[:1]
	noAddress[0].Status.PodIP = ""
	if got := a.due(noAddress, now); len(got) != 0 {
		t.Error("a Pod without an address is asked")
	}
	if got := a.due(all, now); len(got) != 1 {
		t.Error("it is not asked when it has one")
	}
	a.known[all[0].UID].asking = false
	if a.hurry(all[0]); len(a.due(all, now)) != 1 {
		t.Error("a Pod that has changed waits its turn")
	}
}

func TestHTTP(t *testing.T) {
	c := newController(cluster(t, nil), Options{Namespace: namespace, Log: quiet()})
	get := func(s *http.Server, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	for _, step := range []struct {
		alive, leading bool
		path           string
		code           int
	}{
		{false, false, "/healthz", 200}, {false, false, "/readyz", 503}, {true, false, "/readyz", 200},
		{true, false, PathStatus, 503}, {true, true, PathStatus, 200}, {true, true, "/metrics", 404},
	} {
		c.alive.Store(step.alive)
		c.leading.Store(step.leading)
		if got := get(c.public(), step.path).Code; got != step.code {
			t.Errorf("%+v: %d", step, got)
		}
	}
	c.metrics.set(labOf(pods()))
	body := get(c.private(), "/metrics").Body.String()
	for _, want := range []string{`c9s_node_state{node="r1",state="ready"} 1`, `c9s_link_up{a="r1:eth2",b="r2:eth1"} 1`} {
		if !slices.Contains(strings.Split(body, "\n"), want) {
			t.Errorf("%s is not among the metrics", want)
		}
	}
}
