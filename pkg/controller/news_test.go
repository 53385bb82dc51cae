package controller

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// Who waits for news hears of a change of a Pod or of a sidecar's answer when it happens,
// and of nothing where nothing happens.
func TestNews(t *testing.T) {
	client := cluster(t, pods())
	c := newController(client, Options{Namespace: namespace, Log: quiet()})
	var up atomic.Bool
	up.Store(true)
	said := make(chan struct{}, 1)
	c.asker.follow = func(ctx context.Context, p *corev1.Pod, tag string, alive func()) (api.Status, bool, error) {
		name := p.Labels[contract.LabelPod]
		s := func() api.Status {
			return api.Status{Pod: name, Interfaces: []api.Interface{{Node: name, Name: "eth1", Kind: "host", State: api.StateMade, Up: true, Carrier: up.Load() || name != "r1"}}}
		}
		for s().Tag() == tag {
			select {
			case <-ctx.Done():
				return s(), false, ctx.Err()
			case <-said:
			case <-time.After(10 * time.Millisecond):
				alive()
			}
		}
		return s(), true, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.lead(ctx) }()
	eventually(t, "it leads", c.leading.Load)
	eventually(t, "all answer", func() bool { return len(c.look().Links) == len(names) })
	server := httptest.NewServer(c.public().Handler)
	defer server.Close()
	ask := func(since string) (string, time.Duration) {
		began := time.Now()
		resp, err := http.Get(server.URL + PathNews + "?" + QuerySince + "=" + since)
		if err != nil {
			t.Error(err)
			return "", 0
		}
		defer resp.Body.Close()
		tag, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s %v", resp.Status, tag, err)
		}
		return string(tag), time.Since(began)
	}
	tag, _ := ask("")
	if again, took := ask(tag); again != tag || took < HoldNews {
		t.Errorf("without news: %s after %s, following %s", again, took, tag)
	}
	for name, change := range map[string]func(){
		"a carrier": func() { up.Store(!up.Load()); said <- struct{}{} },
		"a Pod that goes": func() {
			pod := pods()[3]
			pod.DeletionTimestamp = new(metav1.Now())
			if _, err := client.CoreV1().Pods(namespace).Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		},
	} {
		answer := make(chan string, 1)
		go func() { next, _ := ask(tag); answer <- next }()
		select {
		case next := <-answer:
			t.Errorf("before %s there is news: %s after %s", name, next, tag)
		case <-time.After(300 * time.Millisecond):
		}
		began := time.Now()
		change()
		next := <-answer
		t.Logf("%s: news after %s", name, time.Since(began).Round(time.Millisecond))
		if next == tag {
			t.Errorf("%s is no news", name)
		}
		// What follows from it may be news of its own.
		eventually(t, "it settles", func() bool {
			tag, _ = ask("")
			time.Sleep(500 * time.Millisecond)
			again, _ := ask("")
			return again == tag
		})
	}
	for range maxHeld {
		c.held <- struct{}{}
	}
	resp, err := http.Get(server.URL + PathNews + "?" + QuerySince + "=" + tag)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one too many: %v %v", resp, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
