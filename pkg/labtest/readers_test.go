package labtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// TestReaders holds the readers of kinds against outputs as the devices print them.
func TestReaders(t *testing.T) {
	for _, tt := range []struct{ kind, protocol, output, want string }{
		{"frr", "bgp", fmt.Sprintf(peers, "Established"), "10.0.0.2 R2 2.2.2.2  Established up"},
		{"frr", "bgp", `{"default":{"vrfId":0,"vrfName":"default"},"red":{"vrfId":7,"vrfName":"red","fe80::1":{"bgpState":"Idle"}}}`, "fe80::1  Idle down"},
		{"frr", "bgp", `{"default":{"vrfId":0,"vrfName":"default"}}`, ""},
		{"linux", "bfd", `[{"multihop":false,"peer":"10.0.0.2","local":"10.0.0.1","vrf":"default","interface":"eth1","id":1,"status":"up"},{"peer":"10.0.0.3","interface":"eth2","status":"down"}]`,
			"10.0.0.2 eth1 up up; 10.0.0.3 eth2 down down"},
		{"linux", "isis", `{"areas":[{"area":"1","circuits":[{"circuit":0},{"circuit":1,"adj":"R2","interface":"eth1","level":2,"state":"Up","expires-in":"28"}]}]}`, "R2 eth1 Up up"},
		{"linux", "isis", `{"vrfs":[{"vrf":"default","areas":[{"area":"1","circuits":[{"circuit":1,"adj":"R2","interface":"eth1","state":"Initializing"}]}]}]}`, "R2 eth1 Initializing down"},
		{"linux", "ospf", `{"default":{"vrfName":"default","vrfId":0,"neighbors":{"2.2.2.2":[{"nbrState":"Full/DR","ifaceAddress":"10.0.0.2","ifaceName":"eth1:10.0.0.1"}]}}}`, "2.2.2.2 10.0.0.2 eth1:10.0.0.1 Full/DR up"},
		{"linux", "ospf", `{"neighbors":{"2.2.2.2":[{"state":"ExStart/BDR","address":"10.0.0.2","ifaceName":"eth1"}]}}`, "2.2.2.2 10.0.0.2 eth1 ExStart/BDR down"},
		{"linux", "ospf3", `{"neighbors":[{"neighborId":"2.2.2.2","state":"Full","interfaceName":"eth1"}]}`, "2.2.2.2 eth1 Full up"},
		{"linux", "lldp", `{"lldp":[{"interface":[{"name":"eth1","chassis":[{"id":[{"type":"mac","value":"aa:c1:ab:00:00:02"}],"name":[{"value":"R2"}]}]}]}]}`, "R2 aa:c1:ab:00:00:02 eth1 seen up"},
		{"nokia_srlinux", "bgp", `{"network-instance":[{"name":"default","protocols":{"bgp":{"neighbor":[{"peer-address":"10.0.0.2","session-state":"established"}]}}}]}`, "10.0.0.2  established up"},
		{"nokia_srlinux", "bgp", "", ""},
		{"nokia_srlinux", "bgp", "{}", ""},
		{"nokia_srlinux", "bfd", `{"bfd":{"network-instance":[{"name":"default","peer":[{"local-discriminator":16385,"remote-address":"10.0.0.2","session-state":"UP"}]}]}}`, "10.0.0.2 default UP up"},
		{"nokia_srlinux", "isis", `{"network-instance":[{"name":"default","protocols":{"isis":{"instance":[{"name":"main","interface":[{"interface-name":"ethernet-1/1.0","adjacency":[{"neighbor-system-id":"0100.0000.0002","adjacency-level":"L2","state":"up"}]}]}]}}}]}`, "0100.0000.0002 ethernet-1/1.0 up up"},
		{"nokia_srlinux", "ospf", `{"network-instance":[{"name":"default","protocols":{"ospf":{"instance":[{"name":"main","area":[{"area-id":"0.0.0.0","interface":[{"interface-name":"ethernet-1/1.0","neighbor":[{"router-id":"10.0.0.2","adjacency-state":"full"}]}]}]}]}}}]}`, "10.0.0.2 ethernet-1/1.0 full up"},
		{"nokia_srlinux", "lldp", `{"system":{"lldp":{"interface":[{"name":"ethernet-1/1","neighbor":[{"id":"1A:00","chassis-id":"1A:00","system-name":"srl2","port-id":"ethernet-1/1"}]}]}}}`, "srl2 1A:00 ethernet-1/1 seen up"},
		{"arista_ceos", "bgp", `{"vrfs":{"default":{"vrf":"default","routerId":"1.1.1.1","asn":"65001","peers":{"10.0.0.2":{"description":"spine1","peerState":"Established","asn":"65002"}}}}}`, "10.0.0.2 spine1  Established up"},
		{"arista_ceos", "bfd", `{"vrfs":{"default":{"ipv4Neighbors":{"10.0.0.2":{"peerStats":{"Ethernet1":{"status":"up"}}}},"ipv6Neighbors":{}}}}`, "10.0.0.2 Ethernet1 up up"},
		{"arista_ceos", "isis", `{"vrfs":{"default":{"isisInstances":{"1":{"neighbors":{"0000.0000.0002":{"adjacencies":[{"hostname":"leaf2","interfaceName":"Ethernet1","state":"up","level":"level-2"}]}}}}}}}`, "0000.0000.0002 leaf2 Ethernet1 up up"},
		{"arista_ceos", "ospf", `{"vrfs":{"default":{"instList":{"1":{"ospfNeighborEntries":[{"routerId":"2.2.2.2","interfaceAddress":"10.0.0.2","interfaceName":"Ethernet1","adjacencyState":"full"}]}}}}}`, "2.2.2.2 10.0.0.2 Ethernet1 full up"},
		{"arista_ceos", "lldp", `{"tablesLastChangeTime":1.0,"lldpNeighbors":[{"port":"Ethernet1","neighborDevice":"leaf2.lab.example","neighborPort":"Ethernet1","ttl":120}]}`, "leaf2.lab.example Ethernet1 seen up"},
	} {
		kind, _ := kinds.Builtin().Lookup(tt.kind)
		reader := kind.Neighbours[tt.protocol]
		if reader == nil {
			t.Errorf("kind %s has no reader of %s", tt.kind, tt.protocol)
			continue
		}
		found, err := readNeighbours(t.Context(), reader, tt.output)
		var got []string
		for _, n := range found {
			state := "down"
			if n.up {
				state = "up"
			}
			got = append(got, strings.Join([]string{strings.Join(n.names, " "), n.in, n.state, state}, " "))
		}
		if text := strings.Join(got, "; "); err != nil || text != tt.want {
			t.Errorf("%s, %s: %q, %v; want %q", tt.kind, tt.protocol, text, err, tt.want)
		}
	}
}

// TestEveryReader: the kinds with a CLI that is known read each protocol.
func TestEveryReader(t *testing.T) {
	for name, without := range map[string][]string{"linux": nil, "frr": nil, "nokia_srlinux": {"ospf3"}, "arista_ceos": {"ospf3"}} {
		kind, _ := kinds.Builtin().Lookup(name)
		for _, protocol := range Protocols {
			if (kind.Neighbours[protocol] != nil) == slices.Contains(without, protocol) {
				t.Errorf("kind %s, %s: reader %v", name, protocol, kind.Neighbours[protocol])
			}
		}
	}
	for _, kind := range kinds.Builtin().All() {
		for protocol := range kind.Neighbours {
			if !slices.Contains(Protocols, protocol) {
				t.Errorf("kind %s reads %s, which no check can name", kind.Name, protocol)
			}
		}
	}
}

func TestNeighbourNames(t *testing.T) {
	n := neighbour{names: []string{"2001:db8::1", "leaf2.lab.example", "0000.0000.0002", "10.0.0.1"}}
	for name, want := range map[string]bool{"2001:DB8:0::1": true, "leaf2": true, "LEAF2.lab.example": true, "0000.0000.0002": true, "10.0.0.1": true, "10.0.0.10": false, "leaf": false, "10": false} {
		if n.is(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
