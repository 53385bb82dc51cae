//go:build !nocluster

package cli

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// containerR1 is a node that runs, for the tests of what other tools read.
func containerR1() cluster.Container {
	return containerOf("R1", "172.20.20.11", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", true)
}

func containerOf(name, v4, id string, running bool) cluster.Container {
	deployment := strings.ToLower(name)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: deployment + "-7c9-x", Namespace: "ns", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}}
	state := corev1.ContainerStatus{Name: deployment, ContainerID: "containerd://" + id, Ready: running}
	if running {
		state.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-20*time.Minute - 30*time.Second))}
	} else {
		state.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, FinishedAt: metav1.NewTime(time.Now().Add(-time.Minute))}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{state}
	return cluster.NewContainer(cluster.Found{Name: "demo", Namespace: "ns"},
		cluster.Node{Name: name, Deployment: deployment, Containers: []string{deployment}, Kind: "linux", Image: "alpine:3", Labels: map[string]string{"role": "leaf"}},
		"no-such.clab.yml:3",
		contract.Directory{Nodes: []contract.DirectoryNode{{Name: name, Pod: deployment, IPv4: netip.MustParseAddr(v4), IPv6: netip.MustParseAddr("3fff:172:20:20::11"), Names: []string{name, "clab-demo-" + name}}}}, pod)
}

func TestEventLines(t *testing.T) {
	at := time.Date(2026, 12, 1, 10, 0, 0, 5e6, time.UTC)
	eth1 := &contract.InterfaceFacts{Name: "eth1", Index: 7, MTU: 9500, MAC: "aa:c1:ab:00:00:01", Type: "veth", State: "up", Counters: contract.InterfaceCounters{RxBytes: 3000, TxPackets: 10}}
	declared := &contract.Interface{Name: "eth1", Node: "R1", Alias: "ge-0/0/0", Wire: &contract.Wire{PeerNode: "R2", PeerInterface: "eth1"}}
	impaired := *eth1
	impaired.Impairment = &contract.Impairment{DelayMS: 5, Loss: 0.1}
	events := []cluster.Event{
		{Time: at, Container: containerR1(), Action: "start"},
		{Time: at, Container: containerR1(), Action: "die", ExitCode: 137},
		{Time: at, Container: containerR1(), Action: contract.ActionUpdate, Interface: &impaired, Declared: declared},
		{Time: at, Container: containerR1(), Action: contract.ActionStats, Interface: eth1, Before: contract.InterfaceCounters{RxBytes: 1000}, Interval: 2 * time.Second},
	}
	const id = `0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef`
	const head = `{"timestamp":"2026-12-01T10:00:00.005Z","type":"`
	const actor = `","actor_id":"0123456789ab","actor_name":"clab-demo-R1","actor_full_id":"` + id + `","attributes":{`
	const node = `"clab-node-kind":"linux","clab-node-longname":"clab-demo-R1","clab-node-name":"R1",`
	const container = node + `"clab-topo-file":"no-such.clab.yml","containerlab":"demo",`
	const rest = `"id":"` + id + `","image":"alpine:3","lab":"demo","mgmt_ipv4":"172.20.20.11","mgmt_ipv6":"3fff:172:20:20::11","name":"clab-demo-R1","namespace":"ns","role":"leaf","state":"running"}}`
	want := []string{
		head + `container","action":"start` + actor + container + rest,
		head + `container","action":"die` + actor + container + `"exitCode":"137",` + rest,
		head + `interface","action":"update` + actor + `"alias":"ge-0/0/0",` + node + `"containerlab":"demo","id":"` + id + `","ifname":"eth1","index":"7","lab":"demo","mac":"aa:c1:ab:00:00:01","mtu":"9500","name":"clab-demo-R1","namespace":"ns","netem_delay":"5ms","netem_loss":"0.1","origin":"netlink","peer":"R2:eth1","state":"up","type":"veth"}}`,
		head + `interface","action":"stats` + actor + node + `"containerlab":"demo","id":"` + id + `","ifname":"eth1","index":"7","interval_seconds":"2.000","lab":"demo","mac":"aa:c1:ab:00:00:01","mtu":"9500","name":"clab-demo-R1","namespace":"ns","origin":"netlink","rx_bps":"8000.00","rx_bytes":"3000","rx_packets":"0","rx_pps":"0.00","state":"up","tx_bps":"0.00","tx_bytes":"0","tx_packets":"10","tx_pps":"5.00","type":"veth"}}`,
	}
	print, err := eventPrinter("json")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		var out bytes.Buffer
		if err := print(&out, lineOf(e)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i]+"\n", out.String()); diff != "" {
			t.Errorf("%s: %s", e.Action, diff)
		}
	}
	var plain bytes.Buffer
	if err := printEvent(&plain, lineOf(events[1])); err != nil || !strings.HasPrefix(plain.String(), "2026-12-01T10:00:00.005Z container die 0123456789ab (clab-node-kind=linux, ") {
		t.Errorf("%v: %s", err, plain.String())
	}
}
