package labtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// fake is a lab of R1, R2 (FRR) and H1, with two links, whose answers a test sets.
type fake struct {
	*Lab
	mu sync.Mutex
	// outputs are those of commands, by NODE and command. Of several the last one stays.
	outputs map[string][]Output
	// frames are what ends hear, by NODE:INTERFACE; without one, all is well.
	frames map[string]contract.FrameResult
	// silent are the addresses without an answer.
	silent map[netip.Addr]bool
	// outage is that of long pings, in milliseconds.
	outage int
	trace  contract.TraceResult
	cuts   []string
	broken map[string]error // of measurements, by Pod
}

func newFake() *fake {
	linux, _ := kinds.Builtin().Lookup("linux")
	f := &fake{outputs: map[string][]Output{}, frames: map[string]contract.FrameResult{}, silent: map[netip.Addr]bool{}, broken: map[string]error{}}
	f.Lab = &Lab{Name: "demo", Exec: f.exec, Measure: f.measure, Cut: f.cut}
	for i, name := range []string{"R1", "R2", "H1"} {
		f.Nodes = append(f.Nodes, Node{
			Name: name, Pod: strings.ToLower(name), Container: true, Kind: linux, Names: []string{name},
			IPv4: netip.AddrFrom4([4]byte{172, 20, 20, byte(11 + i)}), IPv6: netip.MustParseAddr(fmt.Sprintf("3fff::%d", 11+i)),
		})
	}
	end := func(node, in string) End { return End{Node: node, Pod: strings.ToLower(node), Interface: in} }
	f.Links = []Link{{end("R1", "eth1"), end("R2", "eth1")}, {end("H1", "eth1"), end("R1", "eth2")}}
	return f
}

func (f *fake) exec(_ context.Context, n Node, argv []string) (Output, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := n.Name + " " + strings.Join(argv, " ")
	list := f.outputs[key]
	if len(list) == 0 {
		return Output{Code: 127, Err: "not found"}, nil
	}
	if len(list) > 1 {
		f.outputs[key] = list[1:]
	}
	return list[0], nil
}

func (f *fake) measure(_ context.Context, pod string, r contract.MeasureRequest) (m contract.Measurement, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.broken[pod]; err != nil {
		return m, err
	}
	if r.Frames != nil {
		for _, e := range r.Frames.Interfaces {
			got, ok := f.frames[e.Self]
			if !ok {
				got = contract.FrameResult{MTU: 9500, Up: true, Heard: 9500}
				if e.Size > 0 {
					got.Heard = e.Size
				}
			}
			m.Frames = append(m.Frames, got)
		}
	}
	for _, p := range r.Pings {
		result := contract.PingResult{Sent: max(p.Count, 1), Received: max(p.Count, 1), LastAnswered: true}
		if f.silent[p.To] {
			result.Received, result.LastAnswered = 0, false
		}
		if p.Device == "typo" {
			result = contract.PingResult{Error: "there is no such interface"}
		}
		if p.Count > 100 {
			result.LongestMS = f.outage
		}
		m.Pings = append(m.Pings, result)
	}
	for range r.Traces {
		m.Traces = append(m.Traces, f.trace)
	}
	for _, name := range r.Names {
		n, _ := f.node(name)
		m.Names = append(m.Names, contract.NameResult{Addresses: []netip.Addr{n.IPv4, n.IPv6}})
	}
	if r.Addresses {
		m.Addresses = []netip.Addr{netip.MustParseAddr("10.0.0." + pod[1:])}
	}
	return m, nil
}

func (f *fake) cut(_ context.Context, node, in string) (func(context.Context) error, error) {
	f.cuts = append(f.cuts, "cut "+node+":"+in)
	return func(context.Context) error { f.cuts = append(f.cuts, "undo"); return nil }, nil
}

// run loads, plans and runs a file, and returns a line for each result.
func (f *fake) run(t *testing.T, text string, choice Choice) []string {
	t.Helper()
	file, diags := Load("x.test.yaml", []byte(head+text))
	if file == nil {
		t.Fatalf("%v", diags)
	}
	tests, diags := Plan(file, f.Lab, choice)
	if tests == nil {
		t.Fatalf("%v", diags)
	}
	tests.Interval = time.Millisecond
	var out []string
	for _, r := range tests.Run(t.Context(), func(Result) {}) {
		line := r.Group + "/" + r.Name + ": " + r.State
		if r.Detail != "" {
			line += ": " + r.Detail
		}
		out = append(out, line)
	}
	return out
}

const peers = `{"default":{"vrfId":0,"vrfName":"default","10.0.0.2":{"remoteAs":65002,"hostname":"R2","bgpState":"%s","remoteRouterId":"2.2.2.2"}}}`

func TestRun(t *testing.T) {
	bgp := "R1 vtysh -c show bgp vrf all neighbors json"
	for _, tt := range []struct {
		name string
		text string
		lab  func(f *fake)
		want string
	}{
		{"links", "links: [{}]", nil, "links/R1:eth1 - R2:eth1: passed: 9500 bytes both ways\nlinks/H1:eth1 - R1:eth2: passed: 9500 bytes both ways"},
		{"a link by a pattern", `links: [{links: ["R2:*"], mtu: 9000}]`, nil, "links/R1:eth1 - R2:eth1: passed: 9000 bytes both ways"},
		{"a lower MTU at one end", `links: [{links: ["R2:eth1"]}]`, func(f *fake) {
			f.frames["R1:eth1"] = contract.FrameResult{MTU: 1400, Up: true}
		}, "links/R1:eth1 - R2:eth1: failed: the MTUs differ: R1:eth1 has 1400, R2:eth1 has 9500"},
		{"a lower MTU than wanted", `links: [{links: ["R2:eth1"], mtu: 9600}]`, nil, "links/R1:eth1 - R2:eth1: failed: R1:eth1 has MTU 9500, less than 9600"},
		{"one direction", `links: [{links: ["R2:eth1"]}]`, func(f *fake) {
			f.frames["R2:eth1"] = contract.FrameResult{MTU: 9500, Up: true, Heard: 1500}
		}, "links/R1:eth1 - R2:eth1: failed: no packet of 9500 bytes arrives from R1:eth1 at R2:eth1"},
		{"another peer", `links: [{links: ["R2:eth1"]}]`, func(f *fake) {
			f.frames["R2:eth1"] = contract.FrameResult{MTU: 9500, Up: true, Stranger: "H1:eth1"}
		}, "links/R1:eth1 - R2:eth1: failed: R2:eth1 is connected to H1:eth1"},
		{"a moved interface", `links: [{links: ["R2:eth1"]}]`, func(f *fake) {
			f.frames["R2:eth1"] = contract.FrameResult{Error: "moved"}
		}, "links/R1:eth1 - R2:eth1: warning: R2:eth1: moved, so the link cannot be tested"},
		{"no Pod", `links: [{links: ["R2:eth1"]}]`, func(f *fake) { f.broken["r2"] = errors.New("no Pod") }, "links/R1:eth1 - R2:eth1: failed: R2:eth1: no Pod"},
		{"a link that should be down", `links: [{links: ["R2:eth1"], down: true}]`, nil, "links/R1:eth1 - R2:eth1: failed: the link passes packets"},
		{"a link that is down", `links: [{links: ["R2:eth1"], down: true}]`, func(f *fake) {
			f.frames["R1:eth1"], f.frames["R2:eth1"] = contract.FrameResult{MTU: 9500}, contract.FrameResult{MTU: 9500}
		}, "links/R1:eth1 - R2:eth1: passed: no packet passes"},
		{"a link that should be down and cannot be tested", `links: [{links: ["R2:eth1"], down: true, mtu: 9000}]`, func(f *fake) {
			f.frames["R1:eth1"] = contract.FrameResult{MTU: 1500, Up: true, Error: "the MTU is 1500"}
			f.frames["R2:eth1"] = contract.FrameResult{MTU: 1500, Up: true, Error: "the MTU is 1500"}
		}, "links/R1:eth1 - R2:eth1: warning: the link cannot be tested: the MTU is 1500"},
		{"reachability", "reachability: [{name: core, from: ['R*'], to: [10.0.0.1, 10.0.0.2], except: [{from: R2, to: 10.0.0.2}]}]", func(f *fake) {
			f.silent[netip.MustParseAddr("10.0.0.2")] = true
		}, "reachability/core: R1 reaches 10.0.0.1: passed\nreachability/core: R1 reaches 10.0.0.2: failed: no answer\n" +
			"reachability/core: R2 reaches 10.0.0.1: passed\nreachability/core: R2 does not reach 10.0.0.2: passed: no answer"},
		{"an address that is reached", "reachability: [{from: [H1], to: [10.0.0.1], unreachable: true, level: warning}]", nil, "reachability/H1 does not reach 10.0.0.1: warning: it is reached"},
		{"a ping by an interface that is not there", "reachability: [{from: [H1], to: [10.0.0.1], unreachable: true, device: typo}]", nil, "reachability/H1 does not reach 10.0.0.1: failed: there is no such interface"},
		{"a ping that cannot be sent", "reachability: [{from: [H1], to: [10.0.0.1], unreachable: true}]", func(f *fake) { f.broken["h1"] = errors.New("no Pod") }, "reachability/H1 does not reach 10.0.0.1: failed: no Pod"},
		{"a command", `commands: [{nodes: [R1], command: ip route, contains: [default], excludes: [blackhole], matches: "via \\d+"}]`, func(f *fake) {
			f.outputs["R1 sh -c ip route"] = []Output{{Out: ""}, {Out: "default via 10.0.0.1"}} // the first attempt fails
		}, "commands/R1: ip route: passed"},
		{"another output", `commands: [{name: route, nodes: [R1], command: ip route, excludes: [blackhole]}]`, func(f *fake) {
			f.outputs["R1 sh -c ip route"] = []Output{{Out: "blackhole 10.0.0.0/8"}}
		}, `commands/R1: route: failed: the output has "blackhole"`},
		{"another exit code", `commands: [{nodes: [R1], command: [x]}]`, nil, "commands/R1: x: failed: exit code 127, want 0: not found"},
		{"JSON", `commands: [{nodes: [R1], command: [x], json: [{path: "{.a[*].b}", equals: "1 true"}, {path: "{.a}", count: 1}, {path: "{.none}", count: 0}, {path: "{['x\\.y/z'][0].b}", equals: "2"}]}]`, func(f *fake) {
			f.outputs["R1 x"] = []Output{{Out: `{"a":[{"b":1},{"b":true}],"x.y/z":[{"b":2}]}`}}
		}, "commands/R1: x: passed"},
		{"other JSON", `commands: [{nodes: [R1], command: [x], json: [{path: "{.a}", equals: "2"}]}]`, func(f *fake) {
			f.outputs["R1 x"] = []Output{{Out: `{"a":"1"}`}}
		}, `commands/R1: x: failed: {.a}: "1", want "2"`},
		{"neighbours", "neighbours: [{nodes: [R1], protocol: bgp, up: [10.0.0.2, r2], down: [10.0.0.9], count: 1}]", func(f *fake) {
			f.outputs[bgp] = []Output{{Out: fmt.Sprintf(peers, "Established")}}
		}, "neighbours/R1 has bgp neighbour 10.0.0.2: passed: Established\nneighbours/R1 has bgp neighbour r2: passed: Established\n" +
			"neighbours/R1 has no bgp neighbour 10.0.0.9: passed: there is none\nneighbours/R1 has 1 bgp neighbours: passed"},
		{"a neighbour that is not up", "neighbours: [{nodes: [R1], protocol: bgp, up: [10.0.0.2], count: 1}]", func(f *fake) {
			f.outputs[bgp] = []Output{{Out: fmt.Sprintf(peers, "Active")}}
		}, "neighbours/R1 has bgp neighbour 10.0.0.2: failed: it is Active\nneighbours/R1 has 1 bgp neighbours: failed: 0 of them are up, want 1: 10.0.0.2 R2 2.2.2.2 (Active)"},
		{"a path", "paths: [{from: H1, to: 10.0.0.9, through: [R1, R2]}, {from: H1, to: 10.0.0.9, through: [R2, R1]}, {from: H1, to: 10.0.0.9, avoid: [R2]}]", func(f *fake) {
			f.trace = contract.TraceResult{Arrived: true, Hops: []netip.Addr{netip.MustParseAddr("10.0.0.1"), {}, netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.9")}}
		}, "paths/H1 to 10.0.0.9 through R1, R2: passed: 10.0.0.1 * 10.0.0.2 10.0.0.9\n" +
			"paths/H1 to 10.0.0.9 through R2, R1: failed: the path does not visit R1 in this place: 10.0.0.1 * 10.0.0.2 10.0.0.9\n" +
			"paths/H1 to 10.0.0.9 avoiding R2: failed: the path visits R2: 10.0.0.1 * 10.0.0.2 10.0.0.9"},
		{"basics", "basics: [management, names, lldp]", func(f *fake) { f.silent[netip.MustParseAddr("172.20.20.12")] = true },
			"management/R1 at 172.20.20.11: failed: no answer from R2 at 172.20.20.12\nmanagement/R1 at 3fff::11: passed: answers its gateway, reaches R2\n" +
				"management/R2 at 172.20.20.12: failed: the node does not answer its gateway\nmanagement/R2 at 3fff::12: passed: answers its gateway, reaches H1\n" +
				"management/H1 at 172.20.20.13: passed: answers its gateway, reaches R1\nmanagement/H1 at 3fff::13: passed: answers its gateway, reaches R1\n" +
				"names/R1: passed: 3 names\nnames/R2: passed: 3 names\nnames/H1: passed: 3 names"},
		{"LLDP", "basics: [lldp]", func(f *fake) {
			f.outputs["R1 lldpcli -f json0 show neighbors"] = []Output{{Out: `{"lldp":[{"interface":[{"name":"eth1","chassis":[{"id":[{"type":"mac","value":"aa:c1:ab:00:00:02"}],"name":[{"value":"R2.lab"}]}]}]}]}`}}
			f.outputs["R2 lldpcli -f json0 show neighbors"] = []Output{{Out: `{"lldp":[{}]}`}}
		}, `lldp/R1:eth1 - R2:eth1: failed: R2 has no neighbour R1, but []`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake()
			if tt.lab != nil {
				tt.lab(f)
			}
			if got := strings.Join(f.run(t, tt.text, Choice{Timeout: 50 * time.Millisecond}), "\n"); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestConvergence: the event is undone, whatever the outcome.
func TestConvergence(t *testing.T) {
	for outage, want := range map[int]string{
		400:  "convergence/H1 reaches 10.0.0.9 within 500ms after a cut of R1:eth1: passed: unreachable for 400ms",
		2100: "convergence/H1 reaches 10.0.0.9 within 500ms after a cut of R1:eth1: failed: it was unreachable for 2.1s",
	} {
		f := newFake()
		f.outage = outage
		got := f.run(t, `convergence: [{from: H1, to: 10.0.0.9, within: 500ms, event: {cut: "R1:eth1"}}]`, Choice{})
		if len(got) != 1 || got[0] != want || !slices.Equal(f.cuts, []string{"cut R1:eth1", "undo"}) {
			t.Errorf("%v, %v; want %s", got, f.cuts, want)
		}
	}
}

// TestLabels: labels choose checks, and the basic ones have none.
func TestLabels(t *testing.T) {
	f := newFake()
	got := f.run(t, "basics: [names]\nreachability: [{from: [H1], to: [10.0.0.1], labels: [a, b]}, {from: [H1], to: [10.0.0.2], labels: [c]}]", Choice{Labels: []string{"b"}})
	if len(got) != 1 || got[0] != "reachability/H1 reaches 10.0.0.1: passed" {
		t.Errorf("%v", got)
	}
}

// TestPlanReportsAll: what does not fit the lab is reported, all of it and with its position.
func TestPlanReportsAll(t *testing.T) {
	f := newFake()
	f.Nodes = append(f.Nodes, Node{Name: "B1", Pod: "b1"}, Node{Name: "V1", Pod: "v1", Container: true, Kind: &kinds.Kind{Name: "acme", VM: true}})
	file, diags := Load("x.test.yaml", []byte(head+`reachability:
  - {from: [H9, V1], to: [10.0.0.1]}
commands:
  - {nodes: [B1], command: [x]}
neighbours:
  - {nodes: [V1], protocol: ospf, up: [R1]}
links:
  - {links: ["R1:eth9"]}
paths:
  - {from: H1, to: 10.0.0.1, through: [R9]}
convergence:
  - {from: H1, to: 10.0.0.1, within: 1s, event: {cut: "R1:eth7"}}
`))
	if file == nil {
		t.Fatalf("%v", diags)
	}
	tests, diags := Plan(file, f.Lab, Choice{})
	var got []string
	for _, d := range diags {
		got = append(got, d.String())
	}
	want := `x.test.yaml:4:5: error: node V1 is a virtual machine, and kind acme has no command to ping from it [test-lab]
x.test.yaml:4:5: error: the lab has no node "H9" [test-lab]
x.test.yaml:6:5: error: node B1 has no container [test-lab]
x.test.yaml:8:5: error: kind acme of node V1 has no reader of ospf neighbours [test-lab]
x.test.yaml:10:5: error: the lab has no link between nodes with the end "R1:eth9" [test-lab]
x.test.yaml:12:5: error: the lab has no node "R9" [test-lab]
x.test.yaml:14:49: error: the lab has no link between nodes with the end "R1:eth7" [test-lab]`
	if text := strings.Join(got, "\n"); tests != nil || text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestBatches: both ends of a link are in one batch, and few Pods are.
func TestBatches(t *testing.T) {
	var links []Link
	for i := range 200 {
		links = append(links, Link{End{Pod: fmt.Sprint(i)}, End{Pod: fmt.Sprint(i + 1)}})
	}
	n := 0
	for _, batch := range batches(links) {
		pods := map[string]bool{}
		for _, l := range batch {
			pods[l.A.Pod], pods[l.B.Pod] = true, true
		}
		if n += len(batch); len(pods) > podsAtOnce {
			t.Errorf("a batch has %d Pods", len(pods))
		}
	}
	if n != len(links) {
		t.Errorf("%d links", n)
	}
}
