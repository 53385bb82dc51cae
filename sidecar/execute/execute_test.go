package execute

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// node is a container's folder of the helper.
type node struct {
	*testing.T
	dir string
}

func newNode(t *testing.T, strict bool, steps ...contract.Step) (node, Options) {
	t.Helper()
	n := node{t, t.TempDir()}
	data, err := json.Marshal(contract.Program{Version: contract.ProgramVersion, Node: "R1", Strict: strict, Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(n.dir, contract.ProgramFile)
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(n.dir, contract.RunDir), 0o777); err != nil {
		t.Fatal(err)
	}
	return n, Options{Steps: file, Foreground: true}
}

func (n node) result() contract.Result {
	n.Helper()
	var r contract.Result
	data, err := os.ReadFile(filepath.Join(n.dir, contract.RunDir, contract.ResultFile))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		n.Fatal(err)
	}
	return r
}

func sh(script string) *contract.Run { return &contract.Run{Argv: []string{"/bin/sh", "-c", script}} }

func TestSteps(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "etc/banner")
	// It answers once, not as expected, and then hangs: what it answered is kept.
	once := filepath.Join(t.TempDir(), "once")
	hangs := "[ -e " + once + " ] && exec sleep 600; echo ok; echo no >&2; >" + once
	n, o := newNode(t, false,
		contract.Step{Run: sh("echo out; echo err >&2")},
		contract.Step{Run: sh("exit 3")},
		contract.Step{Run: &contract.Run{Argv: []string{"no-such-command"}}},
		contract.Step{Run: &contract.Run{Argv: []string{"/bin/cat"}, Input: "typed"}},
		contract.Step{Write: &contract.Write{Path: target, Mode: 0o640, Payload: "payload-0"}},
		contract.Step{Over: "configure"},
		contract.Step{Wait: &contract.Wait{Argv: []string{"/bin/sh", "-c", "echo ready; exit 1"}, Contains: "ready", IntervalSeconds: 1}},
		contract.Step{Wait: &contract.Wait{Argv: []string{"/bin/false"}, IntervalSeconds: 1, TimeoutSeconds: 1}},
		contract.Step{Wait: &contract.Wait{Argv: []string{"/bin/sh", "-c", "echo ok; echo no >&2"}, Contains: "ok", EmptyStderr: true, IntervalSeconds: 60, TimeoutSeconds: 5}},
		contract.Step{Wait: &contract.Wait{Argv: []string{"/bin/sh", "-c", hangs}, Contains: "ok", EmptyStderr: true, IntervalSeconds: 1, TimeoutSeconds: 5}},
	)
	if err := os.WriteFile(filepath.Join(n.dir, "payload-0"), []byte("hello"), 0o444); err != nil {
		t.Fatal(err)
	}
	if err := Main(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	r := n.result()
	if !r.Done || len(r.Over) != 1 || r.Over[0] != "configure" {
		t.Errorf("done %v, over %v", r.Done, r.Over)
	}
	for i, want := range []contract.StepResult{
		{Index: 0, Output: "out\nerr\n"},
		{Index: 1, ExitCode: 3, Error: "exit status 3"},
		{Index: 2, ExitCode: 127, Error: "not found"},
		{Index: 3, Output: "typed"},
		{Index: 4},
		{Index: 6, ExitCode: 1, Output: "ready\n"},
		{Index: 7, ExitCode: 1, Error: "not as expected within 1 s"},
		{Index: 8, ExitCode: 1, Output: "ok\nno\n", Error: "not as expected within 5 s: it wrote to standard error"},
		{Index: 9, ExitCode: 1, Output: "ok\nno\n", Error: "not as expected within 5 s: it wrote to standard error"},
	} {
		got := r.Steps[i]
		if got.Index != want.Index || got.ExitCode != want.ExitCode || got.Running || want.Output != "" && got.Output != want.Output ||
			!strings.Contains(got.Error, want.Error) || want.Error == "" && got.Error != "" {
			t.Errorf("step %+v, want %+v", got, want)
		}
	}
	data, err := os.ReadFile(target)
	if string(data) != "hello" {
		t.Errorf("written: %q, %v", data, err)
	}
}

func TestStrictEndsWithTheFirstFailure(t *testing.T) {
	n, o := newNode(t, true, contract.Step{Name: "break", Run: sh("exit 3")}, contract.Step{Run: sh("true")})
	o.Foreground = false // the hook itself
	err := Main(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "break") {
		t.Errorf("error %v", err)
	}
	if r := n.result(); len(r.Steps) != 1 || r.Done || r.Steps[0].Name != "break" {
		t.Errorf("went on: %+v", r)
	}
}

// A command that does not end is left to itself, and reports when it does.
func TestSlowCommand(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	wait := "while ! [ -e " + gate + " ]; do sleep 0.05; done; echo late"
	n, o := newNode(t, false,
		contract.Step{Run: sh(wait)},
		contract.Step{Run: &contract.Run{Argv: []string{"/bin/sh", "-c", wait}, Detach: true}},
		contract.Step{Run: sh("echo after")},
		contract.Step{Run: sh("sleep 600 & echo server started")}, // a child keeps the streams
	)
	o.Patience = 10 * time.Second // the last step takes one
	ended := make(chan error, 1)
	go func() { ended <- Main(t.Context(), o) }()
	n.until(func(r contract.Result) bool { return r.Done })
	r := n.result()
	if !r.Steps[0].Running || !strings.Contains(r.Steps[0].Error, "still running after 10s") || !r.Steps[1].Running {
		t.Errorf("%+v", r.Steps[:2])
	}
	if r.Steps[2].Output != "after\n" || r.Steps[3].Running || r.Steps[3].Output != "server started\n" || r.Steps[3].Error != "" {
		t.Errorf("%+v", r.Steps[2:])
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// The helper ends with the last of them: what has ended is never said to run.
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, s := range n.result().Steps[:2] {
		if s.Running || s.Output != "late\n" || s.Error != "" {
			t.Errorf("%+v", s)
		}
	}
}

// until waits until the result is as wanted.
func (n node) until(ok func(contract.Result) bool) {
	n.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(n.dir, contract.RunDir, contract.ResultFile))
		var r contract.Result
		if err == nil && json.Unmarshal(data, &r) == nil && ok(r) {
			return
		}
		if time.Now().After(deadline) {
			n.Fatalf("the result stays %s, %v", data, err)
		}
	}
}

// A helper that is ended, or that the hook waits for, leaves no step running in its report.
func TestNothingIsLeftRunning(t *testing.T) {
	t.Parallel()
	forever := contract.Step{Run: &contract.Run{Argv: []string{"/bin/sh", "-c", "exec sleep 600"}, Detach: true}}
	for name, c := range map[string]struct {
		strict bool
		why    string
	}{
		"ended":  {false, "the helper was ended"},
		"strict": {true, "nobody waits"},
	} {
		n, o := newNode(t, c.strict, forever, contract.Step{Run: sh("echo after")})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Main(ctx, o) }()
		n.until(func(r contract.Result) bool { return r.Done })
		if !c.strict {
			cancel()
		}
		<-ended
		cancel()
		if s := n.result().Steps[0]; s.Running || s.ExitCode == 0 || !strings.Contains(s.Error, c.why) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestWaitForOthers(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if q := req.URL.Query(); q.Get("pod") != "r2" || q.Get("node") != "R2" || q.Get("stage") != "healthy" {
			t.Errorf("asked for %v", q)
		}
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	n, o := newNode(t, false, contract.Step{WaitFor: []contract.WaitFor{{Node: "R2", Pod: "r2", Stage: "healthy"}}}, contract.Step{Over: "configure"})
	o.Stages = server.URL
	if err := Main(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if r := n.result(); asked.Load() != 3 || len(r.Over) != 1 || r.Steps[0].Running {
		t.Errorf("asked %d times: %+v", asked.Load(), r)
	}
}

func TestSession(t *testing.T) {
	script := `printf 'router> '; while read line; do echo "did $line on $(tty)"; printf 'router> '; done; exit 4`
	n, o := newNode(t, false, contract.Step{CLI: &contract.CLI{Argv: []string{"/bin/sh", "-c", script}, Lines: []string{"enable", "configure"}}})
	if err := Main(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s := n.result().Steps[0]
	if s.ExitCode != 4 || !strings.Contains(s.Output, "did enable on /dev/pts/") || !strings.Contains(s.Output, "did configure") {
		t.Errorf("%+v", s)
	}
}

func TestEndedFromOutside(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, o := newNode(t, false, contract.Step{Wait: &contract.Wait{Argv: []string{"/bin/false"}, IntervalSeconds: 60}})
	time.AfterFunc(200*time.Millisecond, cancel)
	if err := Main(ctx, o); err == nil {
		t.Error("no error")
	}
}

func TestTail(t *testing.T) {
	var out tail
	for range 1000 {
		out.Write([]byte("äöü"))
	}
	if s := out.String(); len(s) > keepOutput || len(s) < keepOutput-4 || !strings.HasSuffix(s, "äöü") || strings.ContainsRune(s, '\ufffd') {
		t.Errorf("%d bytes, %q", len(s), s[:8])
	}
}
