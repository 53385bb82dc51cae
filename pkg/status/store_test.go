package status

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
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
				ID: lab.WireID(2*i + j), Kind: "wire", Up: true, Datapath: "udp",
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
		want, live := fabric(step.nodes), fabric(step.nodes)
		for i := range live.Links { // what was measured is not stored
			live.Links[i].RTT, live.Links[i].Loss = 0.2, 1.5
		}
		patch, err := live.Patch()
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
		if live.Links[0].RTT == 0 {
			t.Error("the status itself has lost its figures")
		}
	}
}

// A small ConfigMap that unpacks to a large text, or a large value, is refused: the text
// may be larger than what fits a machine.
func TestStoredBomb(t *testing.T) {
	pack := func(unit string, n int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		for range n {
			if _, err := w.Write([]byte(unit)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	spaces, elements := strings.Repeat(" ", 1<<16), strings.Repeat("0,", 1<<15)
	for name, c := range map[string]struct {
		cm   *corev1.ConfigMap
		want string
	}{
		"spaces":         {&corev1.ConfigMap{BinaryData: map[string][]byte{PackedKey: pack(spaces, foreign.MaxLab>>16+1)}}, "larger than"},
		"nodes":          {&corev1.ConfigMap{BinaryData: map[string][]byte{PackedKey: append(pack(`{"nodes":[`, 1), pack(elements, 16)...)}}, "more than"},
		"nodes, plain":   {&corev1.ConfigMap{Data: map[string]string{Key: `{"nodes":[` + strings.Repeat("0,", foreign.MaxLabElements+1) + `0]}`}}, "more than"},
		"not compressed": {&corev1.ConfigMap{BinaryData: map[string][]byte{PackedKey: []byte("{}")}}, "EOF"},
	} {
		if l, err := Stored(c.cm); err == nil || !strings.Contains(err.Error(), c.want) || len(l.Nodes) > 0 {
			t.Errorf("%s: %d nodes, %v, want %q", name, len(l.Nodes), err, c.want)
		}
	}
}

// Whatever is stored, or a sidecar answers, is read or refused.
func FuzzStored(f *testing.F) {
	text, err := json.Marshal(fabric(2))
	if err != nil {
		f.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte(nil))
	f.Add([]byte("{}"), packed.Bytes())
	f.Fuzz(func(t *testing.T, plain, packed []byte) {
		l, err := Stored(&corev1.ConfigMap{Data: map[string]string{Key: string(plain)}, BinaryData: map[string][]byte{PackedKey: packed}})
		if err != nil {
			return
		}
		l.Explain(l.Nodes)
		l.Settle()
		for _, n := range l.Nodes {
			for _, c := range n.Unfinished() {
				_ = c.String()
			}
		}
		if _, err := l.Patch(); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}

// A sidecar's answer may be a device's: links and results are made of whatever it says.
func FuzzSidecar(f *testing.F) {
	text, err := json.Marshal(answerOf("A", "B", api.StateMade, wire.WireStatus{ID: 7, Up: true, Drops: map[string]uint64{"queue": 2}}).Status)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"pod":"a","programs":[{"node":"A","container":"a","result":{"steps":[{"command":"x","exitCode":1,"output":"\u001b[2J"}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s api.Status
		if foreign.JSON(data, foreign.MaxElements, &s) != nil {
			return
		}
		l := Compute(Facts{
			Name: "x", Namespace: "demo", Links: []contract.TopologyLink{wired(7, "A", "B")}, Asked: true, Sidecars: map[string]Answer{"a": {Status: s}, "b": {Status: s}},
			Directory: contract.Directory{Nodes: []contract.DirectoryNode{{Name: "A", Pod: "a"}, {Name: "B", Pod: "b"}}},
		})
		for _, n := range l.Nodes {
			for _, c := range n.Unfinished() {
				_ = c.String()
			}
		}
		if _, err := l.Patch(); err != nil {
			t.Errorf("the status cannot be written: %v", err)
		}
	})
}
