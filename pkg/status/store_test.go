package status

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// fabric is the status of n nodes with two links each.
func fabric(n int) Lab {
	l := Lab{Version: Version, Name: "scale", State: LabReady, Nodes: []Node{}, Links: []Link{}}
	for i := range n {
		l.Nodes = append(l.Nodes, Node{
			Name: fmt.Sprintf("node-%d", i), Kind: "linux", Image: "ghcr.io/srl-labs/network-multitool:latest", State: StateReady,
			Worker: "worker", Pod: fmt.Sprintf("node-%d", i), PodName: fmt.Sprintf("node-%d-6687c7574-wr96l", i),
		})
		for j := range 2 {
			l.Links = append(l.Links, Link{
				ID: lab.WireID(2*i + j), Kind: "wire", Up: true, Datapath: "udp", RTT: 0.2,
				A: End{Node: fmt.Sprintf("node-%d", i), Interface: "eth1", Known: true, Carrier: true, State: "made"},
				B: End{Node: fmt.Sprintf("node-%d", i+1), Interface: "eth2", Known: true, Carrier: true, State: "made"},
			})
		}
	}
	return l
}

// What is stored is read back, whatever was there before, and fits a ConfigMap.
func TestStore(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c9s-status"}}
	if _, err := Stored(cm); err == nil {
		t.Error("a ConfigMap as rendered has a status")
	}
	for _, step := range []struct {
		nodes int
		key   string
	}{{3, Key}, {2000, PackedKey}, {200, Key}} {
		want := fabric(step.nodes)
		patch, err := want.Patch()
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Data       map[string]*string
			BinaryData map[string][]byte
		}
		if err := json.Unmarshal(patch, &p); err != nil {
			t.Fatal(err)
		}
		cm.Data, cm.BinaryData = map[string]string{}, map[string][]byte{}
		size := 0
		for key, text := range p.Data {
			if text != nil {
				cm.Data[key] = *text
				size += len(*text)
			}
		}
		for key, packed := range p.BinaryData {
			if packed != nil {
				cm.BinaryData[key] = packed
				size += len(packed)
			}
		}
		if len(p.Data) != 1 || len(p.BinaryData) != 1 || len(cm.Data)+len(cm.BinaryData) != 1 || cm.Data[step.key] == "" && cm.BinaryData[step.key] == nil {
			t.Errorf("%d nodes are not stored under %s alone", step.nodes, step.key)
		}
		if size > plainSize {
			t.Errorf("%d nodes take %d bytes", step.nodes, size)
		}
		if got, err := Stored(cm); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d nodes are read back as %d, %v", step.nodes, len(got.Nodes), err)
		}
	}
}
