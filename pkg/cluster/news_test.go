package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// News come from the controller's Pod that runs, through the API server.
func TestNews(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	}
	going := pod("going", corev1.PodRunning)
	going.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		pods   []corev1.Pod
		answer func(w http.ResponseWriter)
		want   string // "" for an error
	}{
		"news":           {[]corev1.Pod{going, pod("c1", corev1.PodRunning)}, func(w http.ResponseWriter) { fmt.Fprint(w, "b") }, "b"},
		"no controller":  {nil, nil, ""},
		"none that runs": {[]corev1.Pod{going, pod("c1", corev1.PodPending)}, nil, ""},
		"another leads":  {[]corev1.Pod{pod("c1", corev1.PodRunning)}, func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, ""},
		"endless":        {[]corev1.Pod{pod("c1", corev1.PodRunning)}, func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("x", 1<<20)) }, strings.Repeat("x", maxTag)},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/api/v1/namespaces/ns/pods":
					w.Header().Set("Content-Type", "application/json")
					_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: c.pods})
				case fmt.Sprintf("/api/v1/namespaces/ns/pods/c1:%d/proxy/news", contract.ControllerPort):
					if since := r.URL.Query().Get("since"); since != "a" {
						t.Errorf("asked since %q", since)
					}
					c.answer(w)
				default:
					t.Errorf("asked %s", r.URL)
				}
			}))
			defer server.Close()
			typed, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			client := &Client{Typed: typed}
			got, err := client.News(t.Context(), Found{Namespace: "ns"}, "a")
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("%.20q, %v, want %.20q", got, err, c.want)
			}
		})
	}
}
