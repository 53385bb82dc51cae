package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// TestMain lets the test program stand in for a planner program: it gets no
// environment, so the arguments say what it is.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake-planner" {
		fakePlanner(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// fakePlanner says that it is ready, answers requests, and misbehaves at a node as its
// first argument says.
func fakePlanner(args []string) {
	if args[0] == "sleep" {
		time.Sleep(time.Minute)
		return
	}
	say := func(v any) {
		text, _ := json.Marshal(v)
		os.Stdout.Write(append(text, '\n'))
	}
	if args[0] == "mute" {
		time.Sleep(time.Minute)
	}
	if args[0] != "version" {
		say(Response{Version: ProtocolVersion, Planner: "fake/1.2.3", Kinds: []string{"linux"}})
	} else {
		say(map[string]any{"version": "c9s.dev/planner/v9", "result": []int{1, 2}})
	}
	for dec := json.NewDecoder(os.Stdin); ; {
		var req Request
		if err := dec.Decode(&req); err != nil {
			return
		}
		os.Stdout.Write(fakeAnswer(args, &req))
		if args[0] == "partial" {
			return
		}
	}
}

func fakeAnswer(args []string, req *Request) []byte {
	answer := Response{Version: ProtocolVersion, Planner: "fake/1.2.3"}
	answer.Plan = &Plan{
		Version: Version, Node: req.Node, Kind: req.Lab.Nodes[0].Kind, Planner: "fake/1.2.3",
		Containers: []Container{{Image: "img"}},
	}
	line := func() []byte {
		text, _ := json.Marshal(answer)
		return append(text, '\n')
	}
	text := line()
	// A node may be called after what goes wrong at it alone.
	mode := args[0]
	if mode == "by-name" {
		mode = req.Node
	}
	switch mode {
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(2)
	case "hang", "hang-child":
		if mode == "hang-child" {
			self, _ := os.Executable()
			child := exec.Command(self, "fake-planner", "sleep")
			child.Stdout = os.Stdout
			if err := child.Start(); err != nil {
				os.Exit(4)
			}
			os.WriteFile(args[1]+".new", []byte(strconv.Itoa(child.Process.Pid)), 0o600)
			os.Rename(args[1]+".new", args[1]) // whole or not there: it is killed at any moment
		}
		fmt.Fprintln(os.Stderr, "still thinking")
		time.Sleep(time.Minute)
	case "silent":
		os.Exit(0)
	case "garbage":
		text = []byte("Segmentation fault\n")
	case "partial":
		text = text[:len(text)/2]
	case "trailing":
		text = append(text[:len(text)-1], " and more\n"...)
	case "shape":
		text = []byte(`{"version":"` + ProtocolVersion + `","planner":"fake/1","plans":[]}` + "\n")
	case "plan-version":
		answer.Plan.Version = "c9s.dev/plan/v9"
		text = line()
	case "no-plan":
		answer.Plan = nil
		text = line()
	case "other-node":
		answer.Plan.Node = "someone"
		text = line()
	case "error":
		answer.Plan, answer.Error = nil, "the hooks are not built in"
		text = line()
	case "escape":
		answer.Plan.Files = []File{{Path: "config/../../etc/passwd"}}
		text = line()
	case "unknown-ref":
		answer.Plan.Files = []File{{Path: "a", Ref: &lab.FileRef{Digest: "sha256:ff"}}}
		text = line()
	case "step":
		answer.Plan.Steps = []Step{{Name: "nothing"}}
		text = line()
	case "huge":
		text = []byte(`{"error":"` + strings.Repeat("x", 1<<20) + `"}` + "\n")
	case "last":
		answer.Last = true
		text = line()
	case "pid":
		answer.Plan.Files = []File{{Path: "pid", Content: []byte(strconv.Itoa(os.Getpid()))}}
		text = line()
	case "look":
		answer.Plan.Files = lookAround(req)
		text = line()
	}
	return text
}

// lookAround reports what the program sees as files of the plan.
func lookAround(req *Request) []File {
	env := os.Environ()
	slices.Sort(env)
	dir, _ := os.Getwd()
	var content []byte
	for _, n := range req.Lab.Nodes {
		if n.StartupConfig != nil {
			content = req.Files[n.StartupConfig.File.Digest]
		}
	}
	info, _ := os.Stat(dir)
	text, _ := json.Marshal(req.Lab)
	return []File{
		{Path: "env", Content: []byte(strings.Join(env, "\n"))},
		{Path: "workspace", Content: []byte(dir), Mode: uint32(info.Mode().Perm())},
		{Path: "startup", Content: content},
		{Path: "lab", Content: text},
		{Path: "nodes", Content: []byte(strconv.Itoa(len(req.Lab.Nodes)))},
		{Path: "links", Content: []byte(strconv.Itoa(len(req.Lab.Links)))},
	}
}

func fake(t *testing.T, mode string, options ...HooksOption) *Hooks {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := append([]HooksOption{WithArgs("fake-planner", mode), WithDeadline(DefaultDeadline)}, options...)
	h := NewHooks(self, all...)
	t.Cleanup(func() { h.Close() })
	return h
}

// hooksLab is a line of three nodes and one that has nothing to do with them.
func hooksLab() (*lab.Lab, *lab.Node) {
	l := testLab("t")
	a, b, c := testNode(l, "a", "linux", 1), testNode(l, "b", "linux", 2), testNode(l, "c", "linux", 3)
	testNode(l, "d", "linux", 4)
	join := func(x, y *lab.Node) {
		ends := []*lab.Endpoint{
			{Node: x.Name, Interface: "eth1", Link: len(l.Links)}, {Node: y.Name, Interface: "eth2", Link: len(l.Links)},
		}
		x.Endpoints, y.Endpoints = append(x.Endpoints, ends[0]), append(y.Endpoints, ends[1])
		l.Links = append(l.Links, &lab.Link{Type: lab.LinkVeth, MTU: 9500, Endpoints: ends})
	}
	join(b, c)
	join(a, b)
	a.StartupConfig = &lab.Config{Name: "a.cfg", File: *testFile(l, "a.cfg", "hello")}
	for _, n := range l.Nodes {
		l.Pods = append(l.Pods, lab.Pod{Name: n.ID, Nodes: []string{n.Name}})
	}
	return l, a
}

// lastDeadline is about the last one that is tried when shorter ones end before the
// program has begun. A fake hangs for longer.
const lastDeadline = 25 * time.Second

func TestHooksFailures(t *testing.T) {
	for _, tt := range []struct {
		mode string
		code diag.Code
		says string
	}{
		{"crash", CodePlannerFailed, "exit status 2; it said: panic: out of cheese"},
		{"hang", CodePlannerTimeout, "no answer within DEADLINE; it said: still thinking"},
		{"silent", CodePlannerFailed, "ended without an answer"},
		{"garbage", CodePlannerFailed, "not one JSON document"},
		{"partial", CodePlannerFailed, "cut off after"},
		{"trailing", CodePlannerFailed, "not one JSON document"},
		{"mute", CodePlannerTimeout, "no answer within DEADLINE"},
		{"shape", CodePlannerFailed, `unknown field "plans"`},
		{"version", CodePlannerVersion, `speaks version "c9s.dev/planner/v9"`},
		{"plan-version", CodePlannerVersion, "c9s.dev/plan/v9"},
		{"no-plan", CodePlannerFailed, "no plan"},
		{"other-node", CodePlannerFailed, `for node "someone"`},
		{"error", CodePlannerFailed, "the hooks are not built in"},
		{"escape", CodePlannerFailed, "not in the node's folder"},
		{"unknown-ref", CodePlannerFailed, "bytes that the lab does not have"},
		{"step", CodePlannerFailed, "step 1"},
		{"huge", CodePlannerFailed, "larger than 65536 bytes"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			l, n := hooksLab()
			plan := func(deadline time.Duration) *Plan {
				p, err := fake(t, tt.mode, withMaximum(1<<16), WithDeadline(deadline)).Plan(context.Background(), l, n)
				if err != nil {
					t.Fatal(err)
				}
				if len(p.Diagnostics) != 1 {
					t.Fatalf("diagnostics %v, want one", p.Diagnostics)
				}
				return p
			}
			deadline := DefaultDeadline
			if tt.mode == "hang" || tt.mode == "mute" {
				deadline = 300 * time.Millisecond
			}
			p := plan(deadline)
			// What had no time to begin said nothing.
			for tt.mode == "hang" && deadline < lastDeadline && !strings.Contains(p.Diagnostics[0].Message, "it said") {
				deadline *= 2
				p = plan(deadline)
			}
			d, says := p.Diagnostics[0], strings.ReplaceAll(tt.says, "DEADLINE", deadline.String())
			if d.Code != tt.code || d.Severity != diag.Error || d.Pos != n.Pos || d.Hint == "" {
				t.Errorf("%+v, want code %s at %s with a hint", d, tt.code, n.Pos)
			}
			if !strings.Contains(d.Message, `node "a"`) || !strings.Contains(d.Message, says) {
				t.Errorf("%q does not say %q of node a", d.Message, says)
			}
			if p.Node != "a" || p.Version != Version {
				t.Errorf("plan of %s, version %s", p.Node, p.Version)
			}
		})
	}
}

func TestHooksMissingProgram(t *testing.T) {
	l, n := hooksLab()
	p, err := NewHooks(filepath.Join(t.TempDir(), "absent")).Plan(context.Background(), l, n)
	if err != nil || len(p.Diagnostics) != 1 || p.Diagnostics[0].Code != CodePlannerFailed {
		t.Errorf("%v, %v", p, err)
	}
}

func TestHooksGood(t *testing.T) {
	l, n := hooksLab()
	h := fake(t, "look")
	p, err := h.Plan(context.Background(), l, n)
	if err != nil || len(p.Diagnostics) > 0 {
		t.Fatal(err, p.Diagnostics)
	}
	seen := map[string]string{}
	for _, f := range p.Files {
		seen[f.Path] = string(f.Content)
	}
	workspace := seen["workspace"]
	want := strings.Join([]string{"HOME=" + workspace, "LANG=C.UTF-8", "TMPDIR=" + filepath.Join(workspace, "tmp"), "TZ=UTC"}, "\n")
	if env := strings.ReplaceAll(seen["env"], "PWD="+workspace+"\n", ""); env != want {
		t.Errorf("environment %q, want %q", env, want)
	}
	if seen["startup"] != "hello" || seen["nodes"] != "2" || seen["links"] != "1" {
		t.Errorf("saw %v, want the startup-config, node a and its link", seen)
	}
	// Neither lines of the topology nor names of other nodes are in what a plan may
	// depend on.
	for _, foreign := range []string{`"b"`, `"line":1`, "t.clab.yml"} {
		if strings.Contains(seen["lab"], foreign) {
			t.Errorf("the request has %s: %s", foreign, seen["lab"])
		}
	}
	if mode := p.Files[1].Mode; mode != 0o700 {
		t.Errorf("workspace has mode %o", mode)
	}
	if h.Name() != "fake/1.2.3" {
		t.Errorf("name %s", h.Name())
	}
	h.Close()
	if _, err := os.Stat(workspace); !os.IsNotExist(err) {
		t.Errorf("workspace %s is left over: %v", workspace, err)
	}
}

// TestHooksPool: one process plans many nodes; what one node does to its process costs
// the others nothing.
func TestHooksPool(t *testing.T) {
	l, _ := hooksLab()
	h := fake(t, "pid", WithProcesses(1))
	pids := map[string]bool{}
	for _, n := range l.Nodes {
		p, err := h.Plan(context.Background(), l, n)
		if err != nil || len(p.Files) != 1 {
			t.Fatal(err, p)
		}
		pids[string(p.Files[0].Content)] = true
	}
	if len(pids) != 1 {
		t.Errorf("%d processes for four nodes, want one", len(pids))
	}
	l = testLab("t")
	for i, name := range []string{"one", "crash", "two", "last", "three", "silent", "four", "garbage", "five"} {
		testNode(l, name, "linux", i+1)
	}
	h = fake(t, "by-name", WithProcesses(2))
	var wg sync.WaitGroup
	for _, n := range l.Nodes {
		wg.Go(func() {
			p, err := h.Plan(context.Background(), l, n)
			if err != nil {
				t.Error(err)
				return
			}
			broken := n.Name == "crash" || n.Name == "silent" || n.Name == "garbage"
			if broken != (len(p.Diagnostics) > 0) {
				t.Errorf("node %s: %v", n.Name, p.Diagnostics)
			}
		})
	}
	wg.Wait()
}

func TestHooksConcurrent(t *testing.T) {
	l, _ := hooksLab()
	h := fake(t, "good")
	var wg sync.WaitGroup
	for _, n := range l.Nodes {
		wg.Go(func() {
			if p, err := h.Plan(context.Background(), l, n); err != nil || p.Node != n.Name || len(p.Diagnostics) > 0 {
				t.Errorf("%s: %v %v", n.Name, p, err)
			}
		})
	}
	wg.Wait()
}

func TestHooksCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(100*time.Millisecond, cancel)
	l, n := hooksLab()
	if _, err := fake(t, "hang").Plan(ctx, l, n); err != context.Canceled {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestExcerpt(t *testing.T) {
	l, n := hooksLab()
	x := excerpt(l, n)
	if len(x.Links) != 1 || len(x.Nodes) != 2 {
		t.Fatalf("%d links, %d nodes", len(x.Links), len(x.Nodes))
	}
	if ends := x.Nodes[0].Endpoints; x.Nodes[0].Name != "a" || len(ends) != 1 || ends[0].Link != 0 {
		t.Errorf("node %s has ends %+v", x.Nodes[0].Name, ends)
	}
	if n.Endpoints[0].Link != 1 || n.Pos.Line == 0 {
		t.Error("the lab itself was changed")
	}
}

// TestAutoChooses: kinds that the user defines and those that the program does not have
// are the catalogue's.
func TestAutoChooses(t *testing.T) {
	own, problems := kinds.Load(kinds.Builtin(), fstest.MapFS{
		"linux.yaml": {Data: []byte("name: linux\nextends: linux\ncontainer: {env: {MARKER: '1'}}\n")},
	}, "mine")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range []struct {
		catalogue  *kinds.Catalogue
		kind, want string
	}{
		{kinds.Builtin(), "linux", "fake/1.2.3"},
		{kinds.Builtin(), "arista_ceos", BuiltinName}, // which the fake does not have
		{own, "linux", BuiltinName},
	} {
		l := testLab("t")
		n := testNode(l, "n1", tt.kind, 1)
		p, err := NewAuto(fake(t, "good"), NewBuiltin(tt.catalogue), "").Plan(context.Background(), l, n)
		if err != nil || p.Planner != tt.want {
			t.Errorf("%s is planned by %s (%v), want %s", tt.kind, p.Planner, err, tt.want)
		}
	}
}

// TestAutoStartsNothing: a program whose plans are all kept is not started.
func TestAutoStartsNothing(t *testing.T) {
	l, n := hooksLab()
	n.StartupConfig = nil
	dir := t.TempDir()
	ask := func(h *Hooks) *Plan {
		t.Helper()
		auto := NewAuto(h, NewBuiltin(kinds.Builtin()), dir)
		p, err := auto.Plan(context.Background(), l, n)
		if err != nil || len(p.Diagnostics) > 0 || auto.Name() != "fake/1.2.3" {
			t.Fatal(auto.Name(), err, p.Diagnostics)
		}
		return p
	}
	ask(fake(t, "good"))
	// The same program, which would crash now.
	n.Pos.Line += 5
	crash := fake(t, "crash")
	ask(crash)
	if len(crash.idle) > 0 {
		t.Error("the program was started")
	}
}

func TestFindHooks(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := FindHooks(""); err == nil || !strings.Contains(err.Error(), "c9s-planner") {
		t.Error(err)
	}
	if _, err := FindHooks("/nowhere/planner"); err == nil || !strings.Contains(err.Error(), "/nowhere/planner") {
		t.Error(err)
	}
	program := filepath.Join(t.TempDir(), ProgramName)
	script := "#!/bin/sh\necho '{\"version\":\"" + ProtocolVersion + "\",\"planner\":\"script/1\"}'\nread line\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(program))
	for _, path := range []string{program, ""} {
		h, err := FindHooks(path)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name() != "script/1" {
			t.Errorf("%q: %s", path, h.Name())
		}
		h.Close()
	}
}
