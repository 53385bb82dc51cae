package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Whatever the ConfigMaps of the namespace say, the controller reads or refuses it, and
// goes on.
func FuzzConfigMaps(f *testing.F) {
	f.Add(`{"version":"c9s.dev/directory/v1","lab":"demo","nodes":[{"name":"r1","pod":"r1"}]}`, `{"version":"x","pods":{"r1":["10.0.0.1"]}}`, `{"nodes":[{"name":"r1","state":"failed"}]}`,
		`{"version":"c9s.dev/topology/v1","links":[{"id":1,"kind":"wire","a":{"node":"r1","interface":"eth1"},"b":{"node":"r2","interface":"eth1"}}]}`)
	f.Add(`{"nodes":[0,0]}`, `[]`, ``, `{"links":[{"b":null},{}]}`)
	f.Fuzz(func(t *testing.T, directory, addresses, state, topology string) {
		cm := func(name, key, text string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: text}}
		}
		client := fake.NewSimpleClientset(
			cm(contract.DirectoryConfigMap, contract.DirectoryFile, directory),
			cm(contract.AddressesConfigMap, contract.AddressesFile, addresses),
			cm(contract.StatusConfigMap, "status.json", state),
			cm(contract.TopologyName(0), contract.TopologyFile, topology),
		)
		// What becomes of a patch in the fake costs most of a run, and shows nothing.
		client.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, &corev1.ConfigMap{}, nil })
		p := newPublisher(client, namespace, quiet())
		if err := p.load(t.Context()); err != nil {
			t.Errorf("a leader cannot begin: %v", err)
		}
		d, err := Directory(t.Context(), client, namespace)
		if err != nil {
			return
		}
		if topology, err := Topology(t.Context(), client, namespace); err == nil {
			seen := status.Compute(status.Facts{Name: d.Lab, Namespace: namespace, Directory: d, Links: topology.Links})
			if len(seen.Links) != len(topology.Links) || len(topology.Links) > 0 && seen.State == status.LabReady {
				t.Errorf("of %d links %d are shown, the lab is %s", len(topology.Links), len(seen.Links), seen.State)
			}
		}
		l := labOf(pods())
		l.Name = d.Lab
		if unknown(d, nil) {
			t.Error("without Pods none is unknown")
		}
		if err := p.publish(t.Context(), l, pods()); err != nil {
			t.Errorf("nothing is published: %v", err)
		}
	})
}
