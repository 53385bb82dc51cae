//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/capture"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// TestExtcapProtocol: Wireshark's calls are answered under the second name, also without a
// cluster.
func TestExtcapProtocol(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", empty)
	for _, tt := range []struct {
		args string
		out  string
		code int
	}{
		{"--extcap-interfaces --extcap-version=4.4", "extcap {version=" + Version + "}{display=c9s labs}\n", 0},
		{"--extcap-interface c9s:ns/lab --extcap-dlts", "dlt {number=1}{name=EN10MB}{display=Ethernet}\n", 0},
		{"--extcap-interface c9s:ns/lab --extcap-config", "", 0},
		{"--extcap-interface c9s:ns/lab --extcap-capture-filter ospf", "", 0},
		{"--capture --extcap-interface eth0 --fifo x", "", 2},
		{"", "", 2},
	} {
		var out, errs bytes.Buffer
		args := Arguments(append([]string{"/usr/lib/wireshark/extcap/" + extcapName}, strings.Fields(tt.args)...))
		code := Main(args, IO{In: strings.NewReader(""), Out: &out, Err: &errs, Env: os.Environ()})
		if code != tt.code || out.String() != tt.out {
			t.Errorf("%s: exit code %d, %q, %s; want %d, %q", tt.args, code, out.String(), errs.String(), tt.code, tt.out)
		}
	}
	var out bytes.Buffer
	if Main([]string{"extcap", "--extcap-interface", "c9s:ns/lab", "--extcap-capture-filter", "no such thing"}, IO{Out: &out, Err: &out}); out.Len() == 0 {
		t.Error("a wrong filter is not reported")
	}
}

func TestExtcapInterfaces(t *testing.T) {
	got := extcapInterfaces(cluster.Found{Name: "demo", Namespace: "c9s-demo"}, []contract.TopologyLink{
		{A: contract.TopologyEnd{Node: "R1", Interface: "eth1"}, B: &contract.TopologyEnd{Node: "R2", Interface: "eth{2}"}},
		{A: contract.TopologyEnd{Node: "R1", Interface: "eth2"}},
	})
	want := []string{
		"interface {value=c9s:c9s-demo/demo}{display=c9s demo: all links}",
		"interface {value=c9s:c9s-demo/demo/R1:eth1}{display=c9s demo: R1:eth1 - R2:eth_2_}",
		"interface {value=c9s:c9s-demo/demo/R1:eth2}{display=c9s demo: R1:eth2}",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestInstallExtcap: the second name leads to this program, also if it is installed again, and a
// program of another kind is not replaced.
func TestInstallExtcap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "extcap")
	var out bytes.Buffer
	world := IO{Out: &out, Err: &out}
	for range 2 {
		if err := installExtcap(world, dir); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, extcapName)
	own, _ := os.Executable()
	own, _ = filepath.EvalSymlinks(own)
	if to, err := os.Readlink(link); err != nil || to != own {
		t.Errorf("%s leads to %s, %v; want %s", link, to, err, own)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(link, []byte("mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := installExtcap(world, dir); err == nil || !strings.Contains(err.Error(), "is not a link") {
		t.Errorf("another program: %v", err)
	}
}

// TestWireshark: Wireshark gets the frames on its standard input, and the capture ends when its
// user closes it.
func TestWireshark(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "seen.pcapng")
	script := "#!/bin/sh\necho \"$@\" >" + filepath.Join(dir, "args") + "\nexec /bin/cat >" + file + "\n"
	if err := os.WriteFile(filepath.Join(dir, "wireshark"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	f := &captureFlags{wireshark: true, count: 6}
	c := newCapturing(twoSidecars().start, capture.Request{}, ofPods)
	c.warn = func(text string) { t.Error(text) }
	end, err := f.outputs(IO{}, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if args, err := os.ReadFile(filepath.Join(dir, "args")); err != nil || string(args) != "-k -i -\n" {
		t.Errorf("it is called with %q, %v", args, err)
	}
	if frames, interfaces, dropped := readFrames(t, file); frames != 6 || interfaces != 2 || dropped != 4 {
		t.Errorf("it has seen %d frames of %d interfaces, %d dropped", frames, interfaces, dropped)
	}

	// One that ends at once ends the capture.
	if err := os.WriteFile(filepath.Join(dir, "wireshark"), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.count = 0
	c = newCapturing(sidecars{"a": {}, "b": {}}.start, capture.Request{}, ofPods)
	c.warn = func(string) {}
	if end, err = f.outputs(IO{}, c); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_ = c.run(ctx) // the pipe may be broken
	_ = end()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the capture ended after %s", took)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := f.outputs(IO{}, newCapturing(nil, capture.Request{}, ofPods)); err == nil || !strings.Contains(err.Error(), "wireshark is not installed") {
		t.Errorf("without Wireshark: %v", err)
	}
}
