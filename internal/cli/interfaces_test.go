//go:build !nocluster

package cli

import (
	"encoding/json"
	"testing"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

func TestInterfacesOfNodes(t *testing.T) {
	links := &contract.Links{Interfaces: []contract.Interface{
		{Name: "e1-1", Alias: "ethernet-1/1", Node: "srl1", Wire: &contract.Wire{PeerNode: "R2", PeerInterface: "eth1"}},
		{Name: "port1", Node: "br1", Local: &contract.Local{PeerNode: "srl1", PeerInterface: "e1-2"}},
		{Name: "eth9", Node: "srl1", Host: &contract.Host{Interface: "ens3"}},
	}}
	facts := []contract.InterfaceFacts{
		{Name: "e1-1", Index: 7, MAC: "aa:c1:ab:00:00:01", MTU: 9500, Type: "veth", State: "up", Counters: contract.InterfaceCounters{RxBytes: 5, TxPackets: 2}},
		{Name: "lo", Index: 1, MTU: 65536, Type: "device", State: "unknown"},
		{Name: "port1", Node: "br1", Index: 3, MTU: 9500, Type: "veth", State: "up"},
		{Name: "eth9", Index: 9, Type: "veth", State: "down"},
	}
	for _, c := range []struct {
		node cluster.Node
		want string
	}{
		{cluster.Node{Name: "srl1", Containers: []string{"srl1"}}, `{"name":"srl1","interfaces":[` +
			`{"name":"lo","alias":"","mac":"","ifindex":1,"mtu":65536,"type":"device","state":"unknown","counters":{"rxBytes":0,"txBytes":0,"rxPackets":0,"txPackets":0}},` +
			`{"name":"e1-1","alias":"ethernet-1/1","mac":"aa:c1:ab:00:00:01","ifindex":7,"mtu":9500,"type":"veth","state":"up","peer":"R2:eth1","counters":{"rxBytes":5,"txBytes":0,"rxPackets":0,"txPackets":2}},` +
			`{"name":"eth9","alias":"","mac":"","ifindex":9,"mtu":0,"type":"veth","state":"down","peer":"host:ens3","counters":{"rxBytes":0,"txBytes":0,"rxPackets":0,"txPackets":0}}]}`},
		{cluster.Node{Name: "br1"}, `{"name":"br1","interfaces":[` +
			`{"name":"port1","alias":"","mac":"","ifindex":3,"mtu":9500,"type":"veth","state":"up","peer":"srl1:e1-2","counters":{"rxBytes":0,"txBytes":0,"rxPackets":0,"txPackets":0}}]}`},
	} {
		got, err := json.Marshal(describeInterfaces(c.node, links, facts))
		if err != nil || string(got) != c.want {
			t.Errorf("%v\ngot  %s\nwant %s", err, got, c.want)
		}
	}
}
