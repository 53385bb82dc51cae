package doctor

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/c9s-lab/c9s/sidecar/probe"
)

// worker is a Linux worker that is ready, with 2 CPUs and 4 GiB.
func worker(name string, change ...func(*corev1.Node)) corev1.Node {
	w := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:    corev1.NodeSystemInfo{KubeletVersion: "v1.31.0"},
			Allocatable: list("2", "4Gi", "110"),
		},
	}
	for _, c := range change {
		c(&w)
	}
	return w
}

func list(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods)}
}

func labelled(key, value string) func(*corev1.Node) {
	return func(w *corev1.Node) { w.Labels[key] = value }
}

func tainted(key, value string) func(*corev1.Node) {
	return func(w *corev1.Node) {
		w.Spec.Taints = append(w.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule})
	}
}

// pod is a lab's Pod with one node.
func pod(node, cpu, memory string) Pod {
	spec := Any().Pods[0].Spec.DeepCopy()
	spec.Containers = []corev1.Container{{Name: strings.ToLower(node), Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
	}}}
	return Pod{Nodes: []string{node}, Spec: *spec}
}

// lab are the needs of a small lab.
func lab(pods ...Pod) Needs {
	n := Any()
	n.Lab, n.Pods = "demo", pods
	return n
}

// good are the facts of a cluster that runs everything.
func good() Facts {
	return Facts{
		Server:        version.Info{GitVersion: "v1.31.2"},
		NamespaceName: "demo",
		Namespace:     &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}},
		Admission:     Admission{Namespace: "demo", Sidecars: true},
		Workers:       []corev1.Node{worker("n1"), worker("n2")},
		StorageClasses: []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{
			Name: "fast", Annotations: map[string]string{defaultClass: "true"},
		}}},
		DNS: DNS{
			Services: []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Name: "kube-dns"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10"}}},
			Slices:   []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}}},
		},
	}
}

// answers is a probe's report in which all works but what is named.
func answers(mtu int, broken ...probe.Feature) Probe {
	r := probe.Report{Version: probe.Version, MTU: mtu}
	lacks := map[probe.Feature]bool{}
	for _, f := range broken {
		lacks[f] = true
	}
	for _, f := range features {
		r.Features = append(r.Features, outcome(f.name, lacks[f.name]))
	}
	for _, f := range []probe.Feature{probe.KVM, probe.TUN} {
		r.Features = append(r.Features, outcome(f, lacks[f]))
	}
	return Probe{Report: r}
}

func outcome(f probe.Feature, broken bool) probe.Outcome {
	if broken {
		return probe.Outcome{Feature: f, Error: "operation not supported"}
	}
	return probe.Outcome{Feature: f}
}

var errForbidden = errors.New("nodes is forbidden")

// expect is what a check is to say: its name, its result, and words of what was
// found.
type expect struct {
	name   string
	result Result
	found  string
}

// demand compares checks with what they are to say, in order.
func demand(t *testing.T, got []Check, want []expect) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("not wanted: %+v", got[i])
		case i >= len(got):
			t.Errorf("missing: %+v", want[i])
		case got[i].Name != want[i].name || got[i].Result != want[i].result || !strings.Contains(got[i].Found, want[i].found):
			t.Errorf("got %+v, want %+v", got[i], want[i])
		case got[i].Result == OK && got[i].Remedy != "":
			t.Errorf("%s is ok, and has a remedy: %s", got[i].Name, got[i].Remedy)
		case got[i].Result == Problem && got[i].Remedy == "":
			t.Errorf("%s is a problem without a remedy", got[i].Name)
		}
	}
}
