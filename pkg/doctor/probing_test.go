package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/sidecar/probe"
)

func ended(code int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}
}

func TestAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		state corev1.ContainerState
		done  bool
		err   string
	}{
		"works":         {ended(0, `{"version":"c9s.dev/probe/v1","kernel":"6.8.0"}`), true, ""},
		"goes on":       {corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, false, ""},
		"being made":    {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, false, ""},
		"no image":      {corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such host"}}, true, "its image cannot be pulled (no such host)"},
		"older image":   {ended(2, "Usage:"), true, "exited with code 2"},
		"no report":     {ended(0, "hello"), true, "cannot be read"},
		"other version": {ended(0, `{"version":"c9s.dev/probe/v9"}`), true, "c9s.dev/probe/v9"},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "probe", State: c.state}}}}
		t.Run(name, func(t *testing.T) {
			report, done, err := answer(p)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if done != c.done || (c.err == "") != (err == nil) || !strings.Contains(text, c.err) {
				t.Errorf("done %v, error %q", done, text)
			}
			if name == "works" && report.Kernel != "6.8.0" {
				t.Errorf("report %+v", report)
			}
		})
	}
}

// A probe goes to every worker that runs privileged Pods, and leaves nothing: no
// Pod, and no namespace that it made.
func TestProbe(t *testing.T) {
	client := fake.NewClientset()
	report, err := json.Marshal(answers(1450, probe.Macvlan).Report)
	if err != nil {
		t.Fatal(err)
	}
	var made int
	var mu sync.Mutex
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		made++
		p.Name = fmt.Sprintf("c9s-probe-%d", made)
		word := string(report)
		switch c := p.Spec.Containers[0]; {
		case slices.Contains(c.Command, "serve"):
			p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.0.%d", made)
			return false, p, nil
		case slices.Contains(c.Command, "reach"):
			if *c.SecurityContext.AllowPrivilegeEscalation || p.Spec.NodeName != "n2" {
				t.Errorf("it runs on %s with %+v", p.Spec.NodeName, c.SecurityContext)
			}
			word = `{"version":"c9s.dev/reach/v1","open":true,"closed":true}`
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "probe", State: ended(0, word)}}
		return false, p, nil
	})
	f := good()
	f.Namespace = nil
	f.Workers = append(f.Workers, worker("gk3-1"), worker("n3", tainted("k", "v")))
	got, policies, err := Prober{Client: client, Namespace: "demo", Image: "c9s:test", Timeout: 5 * time.Second}.Probe(t.Context(), f, Any())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["n1"].Err != nil || got["n2"].Report.MTU != 1450 {
		t.Errorf("probes %+v: want those of n1 and n2", got)
	}
	if policies == nil || policies.Err != nil || policies.Enforced {
		t.Errorf("policies %+v: both targets were reached", policies)
	}
	ctx := context.Background()
	if left, _ := client.NetworkingV1().NetworkPolicies("").List(ctx, metav1.ListOptions{}); len(left.Items) != 0 {
		t.Errorf("%d NetworkPolicies are left", len(left.Items))
	}
	if pods, _ := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); len(pods.Items) != 0 {
		t.Errorf("%d Pods are left", len(pods.Items))
	}
	if all, _ := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); len(all.Items) != 0 {
		t.Errorf("namespace %s is left", all.Items[0].Name)
	}
}

// NetworkPolicies take effect if the closed Pod is not reached and the open one is.
func TestProbedPolicies(t *testing.T) {
	for word, want := range map[string]string{
		`{"version":"c9s.dev/reach/v1","open":true,"closed":true}`: "not enforced",
		`{"version":"c9s.dev/reach/v1","open":true}`:               "enforced",
		`{"version":"c9s.dev/reach/v1"}`:                           "a Pod without a NetworkPolicy was not reached",
		`{"version":"c9s.dev/reach/v1","closed":true}`:             "a Pod without a NetworkPolicy was not reached",
		`{"version":"c9s.dev/reach/v9","open":true}`:               "cannot be read",
	} {
		client := fake.NewClientset()
		made := 0
		client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
			made++
			p.Name = fmt.Sprintf("c9s-probe-%d", made)
			if slices.Contains(p.Spec.Containers[0].Command, "serve") {
				p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.0.%d", made)
			} else {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "probe", State: ended(0, word)}}
			}
			return false, p, nil
		})
		p := Prober{Client: client, Namespace: "demo", Image: "c9s:test", Timeout: 5 * time.Second}.policies(t.Context(), []*corev1.Node{new(worker("n1"))})
		got := map[bool]string{true: "enforced", false: "not enforced"}[p.Enforced]
		if p.Err != nil {
			got = p.Err.Error()
		}
		if !strings.HasPrefix(got, want) && !strings.Contains(got, want+" (") {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestProbeNeverEnds(t *testing.T) {
	client := fake.NewClientset()
	f := good()
	f.Workers = f.Workers[:1]
	got, _, err := Prober{Client: client, Namespace: "demo", Image: "c9s:test", Timeout: 10 * time.Millisecond}.Probe(t.Context(), f, Any())
	if err != nil {
		t.Fatal(err)
	}
	if p := got["n1"]; p.Err == nil || !strings.Contains(p.Err.Error(), "did not finish within") {
		t.Errorf("got %+v", p)
	}
}
