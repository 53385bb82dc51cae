package controller

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

const namespace = "demo"

// names are the nodes of the lab; each is linked to the next one: R1 - R2 - R3 - R4.
var names = []string{"r1", "r2", "r3", "r4"}

// pods are all Pods, ready, the i-th with the address 10.0.0.<i+1>.
func pods() []*corev1.Pod {
	var out []*corev1.Pod
	for i, name := range names {
		ip := fmt.Sprintf("10.0.0.%d", i+1)
		out = append(out, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-1", Namespace: namespace, UID: types.UID(name), Labels: map[string]string{
				contract.LabelPod: name, contract.LabelComponent: contract.ComponentNode, contract.LabelKind: "linux",
			}},
			Spec: corev1.PodSpec{NodeName: "n1"},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	return out
}

func directory() contract.Directory {
	d := contract.Directory{Version: contract.DirectoryVersion, Lab: "demo"}
	for _, name := range names {
		d.Nodes = append(d.Nodes, contract.DirectoryNode{Name: name, Pod: name})
	}
	return d
}

// labOf is the lab's status: all is ready and up.
func labOf(pods []*corev1.Pod) status.Lab {
	l := status.Compute(status.Facts{Name: "demo", Namespace: namespace, Directory: directory(), Pods: pods})
	for i := range len(names) - 1 {
		l.Links = append(l.Links, status.Link{
			A: status.End{Node: names[i], Interface: "eth2"}, B: status.End{Node: names[i+1], Interface: "eth1"}, Up: true, State: status.LinkUp,
		})
	}
	l.Settle()
	return l
}

// cluster has the ConfigMaps as rendered: the controller's own are empty.
func cluster(t *testing.T, pods []*corev1.Pod) *fake.Clientset {
	t.Helper()
	data, err := json.Marshal(directory())
	if err != nil {
		t.Fatal(err)
	}
	objects := []runtime.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contract.DirectoryConfigMap}, Data: map[string]string{contract.DirectoryFile: string(data)}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contract.StatusConfigMap}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contract.AddressesConfigMap}},
	}
	for _, p := range pods {
		objects = append(objects, p.DeepCopy())
	}
	client := fake.NewClientset(objects...)
	// Events have no name of their own; the fake would take two for one.
	client.PrependReactor("create", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, a.(clienttesting.CreateAction).GetObject(), nil
	})
	return client
}

// writes are what was written since the last call, as "verb resource/name", events
// as "event REASON".
func writes(client *fake.Clientset) []string {
	var out []string
	for _, a := range client.Actions() {
		switch a := a.(type) {
		case clienttesting.PatchAction:
			resource := a.GetResource().Resource
			if sub := a.GetSubresource(); sub != "" {
				resource += "/" + sub
			}
			out = append(out, "patch "+resource+"/"+a.GetName())
		case clienttesting.CreateAction:
			text := "create " + a.GetResource().Resource
			if e, ok := a.GetObject().(*corev1.Event); ok {
				text = "event " + e.Reason
			}
			out = append(out, text)
		default:
			if v := a.GetVerb(); v != "get" && v != "list" && v != "watch" {
				out = append(out, v+" "+a.GetResource().Resource)
			}
		}
	}
	client.ClearActions()
	return out
}

// round is one publish, as soon after the last one as may be.
func round(t *testing.T, p *publisher, l status.Lab, pods []*corev1.Pod) {
	t.Helper()
	p.statusWritten, p.written = p.statusWritten.Add(-statusEvery), p.written.Add(-addressesEvery)
	if err := p.publish(t.Context(), l, pods); err != nil {
		t.Fatal(err)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
