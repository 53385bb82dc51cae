package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/status"
)

func podAt(node string, state status.State, reason, message string) cluster.PodProgress {
	return cluster.PodProgress{Pod: strings.ToLower(node), Nodes: []string{node}, Source: "topo.clab.yml:7",
		Progress: status.Progress{State: state, Reason: reason, Message: message}}
}

// course is a deploy as progress sees it.
func course(p *progress) {
	p.lab("demo", "ns", "here")
	p.object(cluster.Change{Action: "applied", Object: "Deployment/r1"})
	p.object(cluster.Change{Action: "pruned", Object: "Service/r9"})
	p.applied(false, 1500*time.Millisecond)
	p.links.Store(3)
	r2 := podAt("R2", status.StateStarting, "ErrImagePull", "i/o timeout\nafter 30 s")
	for i, pods := range [][]cluster.PodProgress{
		{podAt("R1", status.StatePending, "", ""), podAt("R2", status.StatePending, "", "")},
		{podAt("R1", status.StateBooting, "", ""), r2},
		{podAt("R1", status.StateBooting, "", ""), r2}, // nothing new
		{podAt("R1", status.StateReady, "", ""), podAt("R2", status.StateReady, "", "")},
	} {
		p.linksUp.Store([]int64{-1, 0, 0, 3}[i])
		p.progress(pods)
	}
	p.ready(9500 * time.Millisecond)
}

func TestProgressInAPipe(t *testing.T) {
	var out, err bytes.Buffer
	course(newProgress(IO{Out: &out, Err: &err}, false))
	const want = `lab demo in namespace ns (context here)
  Service/r9 pruned
  1 object applied (1.5 s)
  R1                   booting
  R2                   starting: its image cannot be pulled (i/o timeout
  0 of 3 links up
  R1                   ready
  R2                   ready
  3 of 3 links up
lab demo is ready (9.5 s)
`
	if diff := cmp.Diff(want, err.String()); diff != "" {
		t.Error(diff)
	}
	if out.Len() > 0 {
		t.Errorf("standard output has %q: it is for results", out.String())
	}
}

func TestProgressJSON(t *testing.T) {
	var out, err bytes.Buffer
	p := newProgress(IO{Out: &out, Err: &err}, true)
	course(p)
	p.object(cluster.Change{Action: "applied", Object: "Secret/x", Err: errors.New("forbidden")})
	var got []string
	for line := range strings.Lines(out.String()) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if e.Time.IsZero() {
			t.Errorf("%q has no time", line)
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s%s%s %s", e.Event, e.Lab, e.Object, strings.Join(e.Nodes, ","), e.State)))
	}
	want := []string{
		"lab demo", "applied Deployment/r1", "pruned Service/r9", "applied demo",
		"node R1 pending", "node R2 pending", "node R1 booting", "node R2 starting", "links demo", "node R1 ready", "node R2 ready", "links demo",
		"ready demo", "failed Secret/x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err.Len() > 0 {
		t.Errorf("standard error has %q", err.String())
	}
}

// On a terminal the same lines are painted again and again. Whether it is one
// cannot be asked of a file, so the test says so.
func TestProgressOnATerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out bytes.Buffer
	p := newProgress(IO{Out: &out, Err: file}, false)
	if p.terminal {
		t.Fatal("a file is taken for a terminal")
	}
	p.terminal = true
	course(p)
	data, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	const want = `lab demo in namespace ns (context here)
  Service/r9 pruned
  1 object applied (1.5 s)
  R1                   pending
  R2                   pending
  0 of 2 Pods ready, N s
[up 3]  R1                   booting
  R2                   starting: its image cannot be pulled (i/o timeout
  0 of 2 Pods ready, 0 of 3 links up, N s
[up 3]  R1                   booting
  R2                   starting: its image cannot be pulled (i/o timeout
  0 of 2 Pods ready, 0 of 3 links up, N s
[up 3]  2 of 2 Pods ready, 3 of 3 links up, N s
[up 1]lab demo is ready (9.5 s)
`
	text := regexp.MustCompile(`\x1b\[(\d+)A\x1b\[J`).ReplaceAllString(string(data), "[up $1]")
	text = regexp.MustCompile(`, \d+ s`).ReplaceAllString(text, ", N s")
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
}

// Links are counted while there is somebody to tell, and not after that.
func TestFollowLinks(t *testing.T) {
	var out, err bytes.Buffer
	p := newProgress(IO{Out: &out, Err: &err}, true)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{}, 1)
	p.followLinks(ctx, 2, func(context.Context) (int, int, bool) { asked <- struct{}{}; return 1, 2, true })
	<-asked
	for deadline := time.Now().Add(10 * time.Second); p.linksUp.Load() < 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	p.tellLinks()
	p.tellLinks() // nothing new
	var e event
	if json.Unmarshal(out.Bytes(), &e) != nil || e.Event != "links" || e.Up == nil || *e.Up != 1 || e.Links != 2 {
		t.Errorf("reported %q", out.String())
	}
	newProgress(IO{Out: &out, Err: &err}, true).followLinks(t.Context(), 0, func(context.Context) (int, int, bool) {
		t.Error("a lab without links is asked for them")
		return 0, 0, true
	})
}

func TestFitScreen(t *testing.T) {
	for _, c := range []struct {
		lines, shown int
		last         string
	}{{3, 3, "line 2"}, {20, 20, "line 19"}, {25, 21, "  and 5 more"}} {
		var lines []string
		for i := range c.lines {
			lines = append(lines, fmt.Sprintf("line %d", i))
		}
		got := fitScreen(lines)
		if len(got) != c.shown || got[len(got)-1] != c.last {
			t.Errorf("%d lines: %d are shown, the last is %q", c.lines, len(got), got[len(got)-1])
		}
	}
}

// A command that failed does not fail the deploy, and is reported.
func TestProgressOfCommands(t *testing.T) {
	nodes := []status.Node{{Name: "R1", Source: "topo.clab.yml:7", Commands: []status.Command{
		{Step: 1, Command: "ls /x", User: true, ExitCode: 2, Output: "no such file"}, {Step: 2, Command: "iperf3 -s", Running: true},
	}}}
	var out, err bytes.Buffer
	p := newProgress(IO{Out: &out, Err: &err}, false)
	p.name = "demo"
	p.commands(nodes)
	const want = `warning: node R1 (topo.clab.yml:7): "ls /x" failed with exit code 2: no such file
1 command still running; run 'c9s status demo' to see how they end
`
	if err.String() != want {
		t.Errorf("got\n%s\nwant\n%s", err.String(), want)
	}
	newProgress(IO{Out: &out, Err: &err}, true).commands(nodes)
	var e event
	if json.Unmarshal(out.Bytes(), &e) != nil || e.Event != "command" || e.Reason != "failed" || e.Nodes[0] != "R1" {
		t.Errorf("event %s", out.String())
	}
}
