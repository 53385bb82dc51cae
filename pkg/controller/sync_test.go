package controller

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// TestSync: a Pod that has not got an edit of its links is annotated, after a deploy has had
// time to do so, and again at growing intervals.
func TestSync(t *testing.T) {
	client := cluster(t, pods())
	s := newSyncer(client)
	now := time.Now()
	late := []latePod{{pods()[0], "new"}}
	for _, step := range []struct {
		what  string
		after time.Duration
		late  []latePod
		want  int // annotations
	}{
		{"all have their links", 0, nil, 0},
		{"an edit", time.Second, late, 0},
		{"a deploy has its time", syncAfter / 2, late, 0},
		{"it is still missing", syncAfter, late, 1},
		{"the kubelet has its time", syncAgain / 2, late, 0},
		{"and again", syncAgain, late, 1},
		{"less often", syncAgain, late, 0},
		{"another edit", 0, []latePod{{pods()[0], "newer"}}, 0},
		{"which is missing", syncAfter, []latePod{{pods()[0], "newer"}}, 1},
		{"it has come", 0, nil, 0},
	} {
		now = now.Add(step.after)
		wait, err := s.sync(t.Context(), step.late, now)
		if got := writes(client); err != nil || len(got) != step.want {
			t.Errorf("%s: %v, %v", step.what, got, err)
		}
		if (wait > 0) != (len(step.late) > 0) {
			t.Errorf("%s: looks again after %s", step.what, wait)
		}
	}
}

// TestSyncGivesUp: a Pod that never has its links costs a few writes, and then none.
func TestSyncGivesUp(t *testing.T) {
	client := cluster(t, pods())
	s := newSyncer(client)
	now, total := time.Now(), 0
	for range 600 {
		wait, err := s.sync(t.Context(), []latePod{{pods()[0], "new"}}, now)
		if err != nil {
			t.Fatal(err)
		}
		if total += len(writes(client)); wait == 0 {
			if total < 3 || total > 8 {
				t.Errorf("%d writes", total)
			}
			return
		}
		now = now.Add(time.Second)
	}
	t.Errorf("%d writes in ten minutes, and more to come", total)
}

// TestEditOfLinks: the controller sees an edit of the links in the topology and makes the
// kubelet deliver it, and then writes nothing more.
func TestEditOfLinks(t *testing.T) {
	client := cluster(t, pods())
	topology := func(digest string) *corev1.ConfigMap {
		data, err := json.Marshal(contract.Topology{Version: contract.TopologyVersion, Lab: "demo", Links: []contract.TopologyLink{}, Pods: map[string]string{"r1": digest, "r2": "other"}})
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contract.TopologyName(0)}, Data: map[string]string{contract.TopologyFile: string(data)}}
	}
	if _, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), topology("old"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := newController(client, Options{Namespace: namespace, Interval: 20 * time.Millisecond, Log: quiet()})
	var mu sync.Mutex
	links := map[string]string{"r1": "old", "r2": "other"}
	c.asker.follow = func(_ context.Context, p *corev1.Pod, _ string, _ func()) (api.Status, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		name := p.Labels[contract.LabelPod]
		return api.Status{Pod: name, Links: links[name]}, true, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.lead(ctx) }()
	eventually(t, "the controller leads", c.leading.Load)
	synced := func(name string) bool {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, name+"-1", metav1.GetOptions{})
		return err == nil && pod.Annotations[AnnotationSynced] != ""
	}
	if synced("r1") || synced("r2") {
		t.Error("a Pod that has its links is annotated")
	}
	if _, err := client.CoreV1().ConfigMaps(namespace).Update(ctx, topology("new"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, "the Pod is annotated", func() bool { return synced("r1") })
	t.Logf("after %s", time.Since(began))
	if synced("r2") {
		t.Error("a Pod whose links have not changed is annotated")
	}
	mu.Lock()
	links["r1"] = "new"
	mu.Unlock()
	eventually(t, "the edit has come", func() bool { return len(c.late(listPods(*c.pods.Load()))) == 0 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
