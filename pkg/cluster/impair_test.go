package cluster

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/manifest"
)

// TestImpair: the impairment of one interface changes, the rest of the Pod's links stays.
func TestImpair(t *testing.T) {
	old := &contract.Impairment{Loss: 1}
	links := contract.Links{
		Version: contract.LinksVersion, Lab: "l", Pod: "r1", Hostname: "R1",
		Interfaces: []contract.Interface{
			{Name: "eth1", Node: "R1", Wire: &contract.Wire{ID: 1, PeerNode: "R2", PeerInterface: "eth1", Impairment: old}},
			{Name: "e1-2", Alias: "ethernet-1/2", Node: "R1", Local: &contract.Local{ID: 2, PeerNode: "R3", PeerInterface: "eth1"}},
			{Name: "eth3", Node: "R1", Dummy: true},
			{Name: "eth1", Node: "R3", Local: &contract.Local{ID: 2, PeerNode: "R1", PeerInterface: "e1-2"}},
		},
	}
	typed := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r1-links"},
		Data:       map[string]string{contract.LinksFile: manifest.PrettyJSON(links, 2), "other": "kept"},
	})
	// Pods with other links than these digests say count as late.
	digest := func(links contract.Links) string {
		return "{\"pods\":{\n\"r1\":\"" + contract.LinksDigest([]byte(manifest.PrettyJSON(links, 2))) + "\",\n\"r2\":\"0\"\n}}"
	}
	topology := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: contract.TopologyName(0)}, Data: map[string]string{contract.TopologyFile: digest(links)}}
	if _, err := typed.CoreV1().ConfigMaps("ns").Create(t.Context(), topology, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := &Client{Typed: typed}
	lab := Found{Name: "l", Namespace: "ns"}
	delay := &contract.Impairment{DelayMS: 50}
	for _, tt := range []struct {
		node, name string
		to         *contract.Impairment
		wantErr    string
	}{
		{"R1", "eth1", delay, ""},
		{"R1", "ethernet-1/2", delay, ""},
		{"R3", "eth1", nil, ""},
		{"R1", "eth9", delay, "node R1 has no interface eth9; it has e1-2, eth1, eth3"},
		{"R1", "eth3", delay, "R1:eth3 does not lead to a node of the lab: only such links can be impaired"},
		{"R9", "eth1", delay, "node R9 has no links"},
	} {
		in, err := c.Impair(t.Context(), lab, Node{Name: tt.node, Deployment: "r1"}, tt.name, func(in contract.Interface, now contract.Quality) contract.Quality {
			if in.Node != tt.node || (in.Name == "eth1" && in.Node == "R1") != (now.Impairment != nil) {
				t.Errorf("%s:%s: change of %+v gets %+v", tt.node, tt.name, in, now)
			}
			return contract.Quality{Impairment: tt.to}
		})
		q, _ := in.Quality()
		switch {
		case tt.wantErr != "":
			if err == nil || err.Error() != tt.wantErr {
				t.Errorf("%s:%s: %v, want %s", tt.node, tt.name, err, tt.wantErr)
			}
		case err != nil:
			t.Errorf("%s:%s: %v", tt.node, tt.name, err)
		case q.Impairment != tt.to && *q.Impairment != *tt.to:
			t.Errorf("%s:%s: %+v", tt.node, tt.name, q.Impairment)
		}
	}
	cm, err := typed.CoreV1().ConfigMaps("ns").Get(t.Context(), "r1-links", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	links.Interfaces[0].Wire.Impairment, links.Interfaces[1].Local.Impairment = delay, delay
	want, _ := json.Marshal(links)
	var got contract.Links
	if err := json.Unmarshal([]byte(cm.Data[contract.LinksFile]), &got); err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(got); string(text) != string(want) || cm.Data["other"] != "kept" {
		t.Errorf("%s\nwant %s", text, want)
	}
	cm, err = typed.CoreV1().ConfigMaps("ns").Get(t.Context(), contract.TopologyName(0), metav1.GetOptions{})
	if err != nil || cm.Data[contract.TopologyFile] != digest(links) {
		t.Errorf("the digests are %s, %v; want %s", cm.Data[contract.TopologyFile], err, digest(links))
	}
}

// TestDropFaults: a fault that is over is no difference to what is declared, one that is not is.
func TestDropFaults(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	links := func(f *contract.Fault) string {
		return manifest.PrettyJSON(contract.Links{
			Version: contract.LinksVersion, Lab: "l", Pod: "r1", Hostname: "R1",
			Interfaces: []contract.Interface{{Name: "eth1", Node: "R1", Wire: &contract.Wire{ID: 1, PeerPod: "r2", Impairment: &contract.Impairment{Loss: 1}, Fault: f}}},
		}, 2)
	}
	digest := func(text string) string { return `{"pods":{"r1":"` + contract.LinksDigest([]byte(text)) + `"}}` }
	for _, tt := range []struct {
		name  string
		began time.Time
		kept  bool
	}{{"over", now.Add(-time.Minute), false}, {"on", now.Add(-time.Second), true}} {
		text := links(&contract.Fault{Began: tt.began, LengthMS: 30_000, Impairment: contract.Impairment{Down: true}})
		object := func(name, key, value string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{key: value, "other": "kept"}}}
			u.SetKind("ConfigMap")
			u.SetName(name)
			u.SetLabels(map[string]string{contract.LabelPod: "r1"})
			return u
		}
		live := map[string]*unstructured.Unstructured{
			"ConfigMap/r1-links":                    object("r1-links", contract.LinksFile, text),
			"ConfigMap/r1-files":                    object("r1-files", contract.LinksFile, text),
			"ConfigMap/" + contract.TopologyName(0): object(contract.TopologyName(0), contract.TopologyFile, digest(text)),
			"Deployment/r1":                         {Object: map[string]any{"kind": "Deployment"}},
		}
		dropFaults(live, now)
		want := text
		if !tt.kept {
			want = links(nil)
		}
		for name, data := range map[string]map[string]any{
			"r1-links":               {contract.LinksFile: want, "other": "kept"},
			"r1-files":               {contract.LinksFile: text, "other": "kept"},
			contract.TopologyName(0): {contract.TopologyFile: digest(want), "other": "kept"},
		} {
			if got := live["ConfigMap/"+name].Object["data"]; !reflect.DeepEqual(got, data) {
				t.Errorf("%s: %s is %v, want %v", tt.name, name, got, data)
			}
		}
	}
}
