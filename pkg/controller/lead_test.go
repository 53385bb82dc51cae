package controller

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/pkg/wire"
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
	c.asker.follow = func(_ context.Context, p *corev1.Pod, _ string, _ func()) (api.Status, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		name := p.Labels[contract.LabelPod]
		asked[name]++
		return api.Status{Pod: name, Interfaces: []api.Interface{{Node: name, Name: "eth1", Kind: "host", State: api.StateMade}}}, true, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.lead(ctx) }()

	eventually(t, "status", func() bool {
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, contract.StatusConfigMap, metav1.GetOptions{})
		var l status.Lab
		return err == nil && json.Unmarshal([]byte(cm.Data[status.Key]), &l) == nil && l.State == status.LabReady && len(l.Links) == len(names)
	})
	if l := c.look(); l.Source != "controller" || l.Name != "demo" {
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
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, contract.AddressesConfigMap, metav1.GetOptions{})
		return err == nil && strings.Contains(cm.Data["addresses.json"], "10.0.0.77")
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// A Pod in the store is small, and its state is the same as that of the whole.
func TestTrim(t *testing.T) {
	whole := pods()[0]
	whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	whole.Annotations = map[string]string{contract.AnnotationContainers: `{"r1":["r1"]}`, contract.AnnotationSource: "topo.clab.yml:17"}
	whole.Spec.Containers = []corev1.Container{{Name: "r1", Image: "frr", Env: []corev1.EnvVar{{Name: "A", Value: "B"}}}}
	whole.Spec.InitContainers = []corev1.Container{{Name: status.WireContainer}}
	started := true
	whole.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: status.WireContainer, Started: &started, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	whole.Status.ContainerStatuses[0].RestartCount = 3
	o, err := status.Trim(whole.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	trimmed := o.(*corev1.Pod)
	if len(trimmed.ManagedFields) > 0 || len(trimmed.Annotations) != 1 || len(trimmed.Spec.InitContainers) > 0 || len(trimmed.Spec.Containers[0].Env) > 0 {
		t.Errorf("it keeps %+v", trimmed)
	}
	if got, want := labOf([]*corev1.Pod{trimmed}), labOf([]*corev1.Pod{whole}); !reflect.DeepEqual(got, want) {
		t.Errorf("its state is\n%+v, want\n%+v", got, want)
	}
}

// leader is a controller that knows its lab.
func leader(t *testing.T, pods []*corev1.Pod) *controller {
	t.Helper()
	c := newController(cluster(t, pods), Options{Namespace: namespace, Log: quiet()})
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	c.pods.Store(&store)
	for _, p := range pods {
		if err := store.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.readDirectory(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHTTP(t *testing.T) {
	all := pods()
	c := leader(t, all)
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
		{true, false, PathStatus, 503}, {true, true, PathStatus, 200}, {true, true, "/metrics", 200}, {true, true, "/debug/pprof/", 404},
	} {
		c.alive.Store(step.alive)
		c.leading.Store(step.leading)
		if got := get(c.public(), step.path).Code; got != step.code {
			t.Errorf("%+v: %d", step, got)
		}
	}
	c.asker.missing(t.Context(), all)
	c.asker.known["r1"].ok, c.asker.known["r1"].at = true, time.Now()
	c.asker.known["r1"].status = api.Status{Pod: "r1", Interfaces: []api.Interface{
		{Node: "r1", Name: "eth2", Kind: "wire", Wire: 1, PeerNode: "r2", PeerInterface: "eth1", State: api.StateMade},
	}, Fabric: wire.Status{Wires: []wire.WireStatus{{ID: 1, Up: true}}}}
	body := get(c.public(), "/metrics").Body.String()
	for _, want := range []string{`c9s_node_state{lab="demo",node="r1",state="ready"} 1`, `c9s_node_ready{lab="demo",node="r1"} 1`, `c9s_node_restarts_total{lab="demo",node="r1"} 0`,
		`c9s_link_up{a="r1:eth2",b="r2:eth1",lab="demo"} 1`, `c9s_link_bytes_total{from="r2:eth1",lab="demo",to="r1:eth2"} 0`,
	} {
		if !slices.Contains(strings.Split(body, "\n"), want) {
			t.Errorf("%s is not among the metrics", want)
		}
	}
}
