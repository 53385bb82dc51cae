package podnet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/c9s-lab/c9s/internal/packed"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/link"
)

var fuzzedSteps = []contract.Step{{Name: "one", User: true}, {Over: "create"}, {Name: "three"}, {Over: "healthy"}}

// FuzzResult: a result, which the device writes as it likes, is never more than its
// program can have.
func FuzzResult(f *testing.F) {
	whole, err := json.Marshal(contract.Result{Version: contract.ResultVersion, Done: true, Over: []string{"create", "create", "other", ""},
		Steps: []contract.StepResult{{Index: 2, Name: "lie", Running: true}, {Index: 2}, {Index: -1}, {Index: 4, Output: "x"}, {Index: 0, Name: "lie"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseResult(data, fuzzedSteps)
		if err != nil {
			return
		}
		if len(r.Steps) > len(fuzzedSteps) || len(r.Over) > 2 {
			t.Errorf("%d steps, stages %q", len(r.Steps), r.Over)
		}
		for _, s := range r.Steps {
			if own := fuzzedSteps[s.Index]; s.Name != own.Name || s.User != own.User || len(s.Output) > maxText || len(s.Error) > maxText {
				t.Errorf("%+v", s)
			}
			if utf8.ValidString(string(data)) && !utf8.ValidString(s.Output) {
				t.Errorf("a broken character in %q", s.Output)
			}
		}
	})
}

func TestResultsAreOfTheProgram(t *testing.T) {
	r, err := parseResult([]byte(`{"version":"c9s.dev/result/v1","done":true,"over":["healthy","x","create","healthy"],
		"steps":[{"index":2,"name":"lie","exitCode":1},{"index":2},{"index":-1},{"index":4},{"index":0,"name":"lie"}]}`), fuzzedSteps)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Over, []string{"healthy", "create"}) {
		t.Errorf("stages %q", r.Over)
	}
	if len(r.Steps) != 2 || r.Steps[0].Name != "three" || r.Steps[0].ExitCode != 1 || r.Steps[1].Name != "one" || !r.Steps[1].User {
		t.Errorf("steps %+v", r.Steps)
	}
	long := strings.Repeat("é", maxText)
	r, err = parseResult([]byte(`{"version":"c9s.dev/result/v1","steps":[{"index":0,"output":"`+long+`","error":"x`+long+`"}]}`), fuzzedSteps)
	if err != nil || len(r.Steps) != 1 || len(r.Steps[0].Output) > maxText || len(r.Steps[0].Error) > maxText || !strings.HasSuffix(r.Steps[0].Output, "éé") {
		t.Errorf("a long output: %d steps, %v", len(r.Steps), err)
	}
	if _, err := parseResult([]byte(`{}`), fuzzedSteps); err == nil {
		t.Error("a result without a version is read")
	}
}

// FuzzLinks: what follows from links.json, without the kernel, holds for any of it.
func FuzzLinks(f *testing.F) {
	f.Add([]byte(`{"version":"c9s.dev/links/v1","pod":"r1","mgmt":{"interface":"eth0","ipv4":"172.20.20.2/24"},"interfaces":[
		{"name":"eth1","node":"r1","wire":{"id":1,"peerPod":"r2","peerNode":"r2","peerInterface":"eth1","datapath":"auto"}},
		{"name":"eth2","node":"r1","local":{"id":2,"peerNode":"r1","peerInterface":"eth3","impairment":{"loss":1}}},
		{"name":"eth3","node":"r1","local":{"id":2,"peerNode":"r1","peerInterface":"eth2"}},
		{"name":"eth4","node":"r1","mgmtNet":{"hostInterface":"x"}},{"name":"eth5","node":"r1","dummy":true}]}`))
	f.Add([]byte(`{"version":"c9s.dev/links/v1","interfaces":[
		{"name":"eth2","node":"r1","local":{"id":2,"peerNode":"r1","peerInterface":"eth3","impairment":{"loss":1}}},{"name":"eth3","node":"r1"}]}`))
	f.Add([]byte(`{"version":"c9s.dev/links/v1","interfaces":[{"local":{"impairment":{"loss":1}}},{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parseLinks(data)
		if err != nil {
			return
		}
		var states []link.State
		var out []api.Interface
		for i := range doc.Interfaces {
			in := &doc.Interfaces[i]
			states = append(states, link.State{Key: link.KeyOf(in), Leg: "leg" + string(rune('a'+i%26)), LegIndex: i + 1})
			out = append(out, heldInterface(in), madeInterface(states[i]))
		}
		if n := len(wires(doc.Interfaces, states)); n > len(doc.Interfaces) {
			t.Errorf("%d wires of %d interfaces", n, len(doc.Interfaces))
		}
		nameFarEnds(out, doc.Interfaces)
		sysctlsOf(doc)
	})
}

// FuzzDirectory: only addresses that can be a node's are taken, of Pods with a name.
func FuzzDirectory(f *testing.F) {
	f.Add([]byte(`{"nodes":[{"name":"r1","pod":"r1","ipv4":"172.20.20.2","ipv6":"3fff::2"},{"pod":"x y","ipv4":"127.0.0.1"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var dir contract.Directory
		if json.Unmarshal(data, &dir) != nil {
			return
		}
		for a, pod := range podsOf(dir) {
			if !legalAddress(a) || !contract.HostName(pod) {
				t.Errorf("%s of %q", a, pod)
			}
		}
	})
}

// FuzzAddresses: as FuzzDirectory, of the controller's file.
func FuzzAddresses(f *testing.F) {
	f.Add([]byte(`{"pods":{"r1":["10.0.0.1","fd00::1"],"r2":["127.0.0.1","::","224.0.0.1","fe80::1%eth0"],"a b":["10.0.0.1"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parseAddresses(data)
		if err != nil {
			return
		}
		for pod, list := range all {
			if !contract.HostName(pod) || len(list) == 0 || len(list) > maxAddresses || slices.ContainsFunc(list, func(a netip.Addr) bool { return !legalAddress(a) }) {
				t.Errorf("%q has %v", pod, list)
			}
		}
	})
}

func TestForeignAddresses(t *testing.T) {
	all, err := parseAddresses([]byte(`{"pods":{"r1":["10.0.0.1","127.0.0.1","10.0.0.2","10.0.0.3","10.0.0.4","10.0.0.5"],"r2":["::1","255.255.255.255","fe80::1%eth0"],"../r":["10.0.0.9"]}}`))
	if err != nil || len(all) != 1 || len(all["r1"]) != 4 || all["r1"][1] != netip.MustParseAddr("10.0.0.2") {
		t.Errorf("%v, %v", all, err)
	}
	var dir contract.Directory
	err = json.Unmarshal([]byte(`{"nodes":[{"pod":"r1","ipv4":"10.0.0.1","ipv6":"ff02::1"},{"pod":"r4","ipv6":"fe80::1%eth0"},{"pod":"r2","ipv4":"0.0.0.0"},{"pod":"r 3","ipv4":"10.0.0.3"}]}`), &dir)
	if pods := podsOf(dir); err != nil || len(pods) != 1 {
		t.Errorf("%v, %v", pods, err)
	}
}

// TestReadDirectory: the directory is read plain and packed, also when it changes from one to
// the other and back, and is empty while it is not there.
func TestReadDirectory(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, contract.DirectoryFile)
	text := func(pod string) []byte {
		return fmt.Appendf(nil, `{"nodes":[{"name":"R1","pod":%q,"ipv4":"172.20.20.2","names":["R1","r1.lab"]}]}`, pod)
	}
	write := func(path string, data []byte) func() error {
		return func() error { return os.WriteFile(path, data, 0o644) }
	}
	remove := func(path string) func() error { return func() error { return os.Remove(path) } }
	d := desired{seen: map[string][sha256.Size]byte{}}
	for i, step := range []struct {
		do      func() error
		changed bool
		pod     string
	}{
		{func() error { return nil }, true, ""},
		{func() error { return nil }, false, ""},
		{write(plain, text("a")), true, "a"},
		{func() error { return nil }, false, "a"},
		{write(plain+packed.Suffix, packed.Pack(text("b"))), true, "b"},
		{func() error { return nil }, false, "b"},
		{remove(plain + packed.Suffix), true, "a"},
		{remove(plain), true, ""},
		{write(plain, text("a")), true, "a"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		changed, err := d.readDirectory(dir)
		want := ""
		if step.pod != "" {
			want = "172.20.20.2\tR1 r1.lab\n"
		}
		if err != nil || changed != step.changed || d.pods[netip.MustParseAddr("172.20.20.2")] != step.pod || string(d.hosts) != want {
			t.Errorf("step %d: changed %t, %v, hosts %q, %v", i, changed, d.pods, d.hosts, err)
		}
	}
}
