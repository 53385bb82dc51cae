package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// TestStatusSource: the status comes from the controller that leads, else from the Pods.
// What a controller wrote before counts only if no Pod can be asked.
func TestStatusSource(t *testing.T) {
	const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	lab := func(state status.LinkState, up bool) string {
		data, err := json.Marshal(status.Lab{Version: status.Version, Name: "demo", Links: []status.Link{{
			ID: 1, A: status.End{Node: "r1", Interface: "eth1", Known: true, Carrier: up}, B: status.End{Node: "r1", Interface: "eth2", Known: true, Carrier: up}, State: state, Up: up,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	sidecar, err := json.Marshal(api.Status{Pod: "r1", StartupReason: "from the sidecar"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		controller, sidecar string // "" does not answer
		fresh               bool
		source, links       string
	}{
		"the controller leads":    {lab(status.LinkUp, true), string(sidecar), false, "controller", "up"},
		"the user asks the Pods":  {lab(status.LinkUp, true), string(sidecar), true, "pods", "unknown"},
		"no controller leads":     {"", string(sidecar), false, "pods", "unknown"},
		"nobody answers":          {"", "", false, "controller", "down"},
		"the user may not ask":    {forbidden, forbidden, false, "controller", "down"},
		"nobody answers, afresh":  {"", "", true, "pods", "unknown"},
		"the controller is older": {`{"version":"c9s.dev/status/v0"}`, string(sidecar), false, "pods", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, text string) {
				w.Header().Set("Content-Type", "application/json")
				switch text {
				case "":
					w.WriteHeader(http.StatusServiceUnavailable)
				case forbidden:
					w.WriteHeader(http.StatusForbidden)
				}
				_, _ = w.Write([]byte(text))
			}
			object := func(w http.ResponseWriter, o any) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(o)
			}
			client := connectTo(t, func(w http.ResponseWriter, r *http.Request) {
				const pods = "/api/v1/namespaces/ns/pods"
				selector := r.URL.Query().Get("labelSelector")
				switch r.URL.Path {
				case pods:
					pod := corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r1", Labels: map[string]string{contract.LabelPod: "r1"}},
						Spec:       corev1.PodSpec{NodeName: "n1"},
						Status: corev1.PodStatus{
							Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
							ContainerStatuses: []corev1.ContainerStatus{{Name: "r1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
						},
					}
					if strings.Contains(selector, contract.ComponentController) {
						pod.Name = "c1"
					}
					object(w, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{pod}})
				case fmt.Sprintf("%s/c1:%d/proxy/status", pods, contract.ControllerPort):
					answer(w, c.controller)
				case fmt.Sprintf("%s/r1:%d/proxy/status", pods, contract.StatusPort):
					answer(w, c.sidecar)
				case "/api/v1/namespaces/ns/configmaps/" + contract.StatusConfigMap:
					object(w, corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{status.Key: lab(status.LinkDown, false)}})
				case "/api/v1/namespaces/ns/configmaps/" + contract.DirectoryConfigMap:
					object(w, corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{
						contract.DirectoryFile: `{"version":"` + contract.DirectoryVersion + `","lab":"demo","nodes":[{"name":"r1","pod":"r1"}]}`,
					}})
				case "/apis/apps/v1/namespaces/ns/deployments":
					object(w, appsv1.DeploymentList{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DeploymentList"}})
				case "/api/v1/namespaces/ns/services":
					object(w, corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}})
				case "/api/v1/namespaces/ns/events":
					object(w, corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}})
				default:
					http.NotFound(w, r)
				}
			})
			l, err := client.Status(t.Context(), Found{Name: "demo", Namespace: "ns"}, c.fresh)
			if err != nil {
				t.Fatal(err)
			}
			links := "unknown"
			for _, k := range l.Links {
				links = string(k.State)
			}
			if l.Source != c.source || links != c.links {
				t.Errorf("source %s, links %s; want %s, %s", l.Source, links, c.source, c.links)
			}
		})
	}
}
