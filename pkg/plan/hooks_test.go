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
	"time"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
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

// fakePlanner misbehaves as its first argument says.
func fakePlanner(args []string) {
	if args[0] == "sleep" {
		time.Sleep(time.Minute)
		return
	}
	var req Request
	if err := json.NewDecoder(os.Stdin).Decode(&req); err != nil {
		fmt.Fprintln(os.Stderr, "no request:", err)
		os.Exit(3)
	}
	answer := Response{Version: ProtocolVersion, Planner: "fake/1.2.3"}
	if req.Node != "" {
		answer.Plan = &Plan{
			Version: Version, Node: req.Node, Kind: req.Lab.Nodes[0].Kind, Planner: "fake/1.2.3",
			Containers: []Container{{Image: "img"}},
		}
	}
	text, _ := json.Marshal(answer)
	switch args[0] {
	case "good":
	case "crash":
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(2)
	case "hang", "hang-child":
		if args[0] == "hang-child" {
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
		text = nil
	case "garbage":
		text = []byte("Segmentation fault\n")
	case "partial":
		text = text[:len(text)/2]
	case "trailing":
		text = append(text, "\nand more"...)
	case "shape":
		text = []byte(`{"version":"` + ProtocolVersion + `","planner":"fake/1","plans":[]}`)
	case "version":
		text = []byte(`{"version":"c9s.dev/planner/v9","result":[1,2]}`)
	case "plan-version":
		answer.Plan.Version = "c9s.dev/plan/v9"
		text, _ = json.Marshal(answer)
	case "no-plan":
		answer.Plan = nil
		text, _ = json.Marshal(answer)
	case "other-node":
		answer.Plan.Node = "someone"
		text, _ = json.Marshal(answer)
	case "error":
		answer.Plan, answer.Error = nil, "the hooks are not built in"
		text, _ = json.Marshal(answer)
	case "escape":
		answer.Plan.Files = []File{{Path: "config/../../etc/passwd"}}
		text, _ = json.Marshal(answer)
	case "unknown-ref":
		answer.Plan.Files = []File{{Path: "a", Ref: &lab.FileRef{Digest: "sha256:ff"}}}
		text, _ = json.Marshal(answer)
	case "step":
		answer.Plan.Steps = []Step{{Name: "nothing"}}
		text, _ = json.Marshal(answer)
	case "huge":
		text = append(text[:len(text)-1], ',')
		text = append(text, `"error":"`...)
		text = append(text, strings.Repeat("x", 1<<20)...)
		text = append(text, `"}`...)
	case "look":
		answer.Plan.Files = lookAround(&req)
		text, _ = json.Marshal(answer)
	}
	os.Stdout.Write(text)
}

// lookAround reports what the program sees as files of the plan.
func lookAround(req *Request) []File {
	env := os.Environ()
	slices.Sort(env)
	dir, _ := os.Getwd()
	var content []byte
	for _, n := range req.Lab.Nodes {
		if n.StartupConfig != nil {
			name := strings.TrimPrefix(string(n.StartupConfig.File.Digest), "sha256:")
			content, _ = os.ReadFile(filepath.Join(req.Files, name))
		}
	}
	info, _ := os.Stat(req.Workspace)
	return []File{
		{Path: "env", Content: []byte(strings.Join(env, "\n"))},
		{Path: "cwd", Content: []byte(dir)},
		{Path: "workspace", Content: []byte(req.Workspace), Mode: uint32(info.Mode().Perm())},
		{Path: "startup", Content: content},
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
	return NewHooks(self, all...)
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
			if tt.mode == "hang" {
				deadline = 300 * time.Millisecond
			}
			p := plan(deadline)
			// What had no time to begin said nothing.
			for deadline < lastDeadline && !strings.Contains(p.Diagnostics[0].Message, "it said") {
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
		t.Errorf("saw %v, want the startup-config, nodes a and b, and their link", seen)
	}
	if mode := p.Files[2].Mode; mode != 0o700 {
		t.Errorf("workspace has mode %o", mode)
	}
	if _, err := os.Stat(workspace); !os.IsNotExist(err) {
		t.Errorf("workspace %s is left over: %v", workspace, err)
	}
	if h.Name() != "fake/1.2.3" {
		t.Errorf("name %s", h.Name())
	}
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

func TestExcerptKeepsNumbers(t *testing.T) {
	l, n := hooksLab()
	x := excerpt(l, n)
	if len(x.Links) != 1 || len(x.Nodes) != 2 || len(x.Pods) != 1 {
		t.Fatalf("%d links, %d nodes, %d pods", len(x.Links), len(x.Nodes), len(x.Pods))
	}
	for _, node := range x.Nodes {
		if len(node.Endpoints) != 1 || node.Endpoints[0].Link != 0 {
			t.Errorf("node %s has ends %+v", node.Name, node.Endpoints)
		}
	}
	if n.Endpoints[0].Link != 1 {
		t.Error("the lab itself was changed")
	}
}

func TestAuto(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	builtin := NewBuiltin(nil)
	p, notice := Auto("", builtin)
	if p != Planner(builtin) || !strings.Contains(notice, "c9s-planner") || !strings.Contains(notice, BuiltinName) {
		t.Errorf("%v, %q", p, notice)
	}
	if p, notice := Auto("/nowhere/planner", nil); p != nil || !strings.Contains(notice, "/nowhere/planner") {
		t.Errorf("%v, %q", p, notice)
	}
	program := filepath.Join(t.TempDir(), ProgramName)
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho '{\"version\":\""+ProtocolVersion+"\",\"planner\":\"script/1\"}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if p, notice := Auto(program, builtin); notice != "" || p.Name() != "script/1" {
		t.Errorf("%s, %q", p.Name(), notice)
	}
	t.Setenv("PATH", filepath.Dir(program))
	if p, _ := Auto("", nil); p == nil || p.Name() != "script/1" {
		t.Errorf("%v is not found in PATH", p)
	}
}
