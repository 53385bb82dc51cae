package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

const (
	// DefaultDeadline is how long a planner program may take for one node.
	DefaultDeadline = 60 * time.Second
	// MaxAnswer is how large an answer may be, in bytes.
	MaxAnswer = 64 << 20
	// stderrTail is how much of standard error a diagnostic quotes, in bytes.
	stderrTail = 2 << 10
)

// Hooks plans with a planner program: one process per node, which gets a Request
// and answers with a Response. The process has a workspace of its own, no
// inherited environment, a deadline and a limit on its answer, and is killed with
// all its children when it exceeds either.
type Hooks struct {
	path     string
	args     []string
	deadline time.Duration
	maximum  int
	name     func() (string, error)
	// known is the name once the program has told it.
	known atomic.Pointer[string]
}

// HooksOption changes how a Hooks runs its program.
type HooksOption func(*Hooks)

// WithDeadline sets how long the program may take for one node.
func WithDeadline(d time.Duration) HooksOption { return func(h *Hooks) { h.deadline = d } }

// WithArgs gives arguments to the program.
func WithArgs(args ...string) HooksOption { return func(h *Hooks) { h.args = args } }

// withMaximum sets the largest answer, in bytes.
func withMaximum(n int) HooksOption { return func(h *Hooks) { h.maximum = n } }

// NewHooks plans with the program at path.
func NewHooks(path string, options ...HooksOption) *Hooks {
	h := &Hooks{path: path, deadline: DefaultDeadline, maximum: MaxAnswer}
	for _, o := range options {
		o(h)
	}
	h.name = sync.OnceValues(h.askName)
	return h
}

// Name is what the program calls itself, asked at the first call; "hooks/unknown"
// if it does not say.
func (h *Hooks) Name() string {
	if name := h.known.Load(); name != nil {
		return *name
	}
	if name, err := h.name(); err == nil {
		return name
	}
	return unknownName
}

// Fingerprint tells one build of the program from another: its size and the time
// of its last change.
func (h *Hooks) Fingerprint() string {
	info, err := os.Stat(h.path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// Check tells whether the program answers at all and speaks this version.
func (h *Hooks) Check() error {
	_, err := h.name()
	return err
}

func (h *Hooks) askName() (string, error) {
	answer, problem := h.ask(context.Background(), &Request{}, nil)
	if problem != nil {
		return "", fmt.Errorf("planner program %s: %s", h.path, problem.text)
	}
	if answer.Planner == "" {
		return "", fmt.Errorf("planner program %s does not say its name", h.path)
	}
	h.known.Store(&answer.Planner)
	return answer.Planner, nil
}

// unknownName stands for a program that has not said its name.
const unknownName = "hooks/unknown"

// knownName is the name without asking for it.
func (h *Hooks) knownName() string {
	if name := h.known.Load(); name != nil {
		return *name
	}
	return unknownName
}

// problem is why a program gave no usable answer.
type problem struct {
	code diag.Code
	text string
}

func failed(format string, args ...any) *problem {
	return &problem{code: CodePlannerFailed, text: fmt.Sprintf(format, args...)}
}

// Plan asks the program for the plan of n. A program that fails in any way gives
// a plan with an error in its Diagnostics; the error is that of ctx.
func (h *Hooks) Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error) {
	contents := map[lab.Digest][]byte{}
	for _, digest := range filesOf(n) {
		if data, ok := l.Files[digest]; ok {
			contents[digest] = data
		}
	}
	answer, problem := h.ask(ctx, &Request{Node: n.Name, Lab: excerpt(l, n)}, contents)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if problem == nil {
		problem = checkAnswer(answer, l, n)
	}
	if problem == nil {
		h.known.Store(&answer.Planner)
		return answer.Plan, nil
	}
	var problems diag.List
	problems.Errorf(problem.code, n.Pos, "run it again with --planner builtin, or update the planner program",
		"node %q: planner program %s: %s", n.Name, h.path, problem.text)
	return &Plan{Version: Version, Node: n.Name, Kind: n.Kind, Planner: h.knownName(), Diagnostics: problems.All()}, nil
}

// ask runs the program once, in a workspace of its own.
func (h *Hooks) ask(ctx context.Context, req *Request, contents map[lab.Digest][]byte) (*Response, *problem) {
	workspace, err := os.MkdirTemp("", "c9s-planner-")
	if err != nil {
		return nil, failed("no workspace: %v", err)
	}
	defer os.RemoveAll(workspace)
	req.Version, req.Workspace = ProtocolVersion, workspace
	if err := os.Mkdir(filepath.Join(workspace, "tmp"), 0o700); err != nil {
		return nil, failed("no workspace: %v", err)
	}
	if req.Node != "" {
		req.Files = filepath.Join(workspace, "files")
		if err := writeFiles(req.Files, contents); err != nil {
			return nil, failed("no workspace: %v", err)
		}
	}
	input, err := json.Marshal(req)
	if err != nil {
		return nil, failed("the request cannot be written: %v", err)
	}
	output, problem := h.run(ctx, workspace, input)
	if problem != nil {
		return nil, problem
	}
	return decodeAnswer(output)
}

func writeFiles(dir string, contents map[lab.Digest][]byte) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for digest, data := range contents {
		if err := os.WriteFile(filepath.Join(dir, strings.TrimPrefix(string(digest), "sha256:")), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// run gives input to the program and returns what it writes.
func (h *Hooks) run(ctx context.Context, workspace string, input []byte) ([]byte, *problem) {
	limited, cancel := context.WithTimeout(ctx, h.deadline)
	defer cancel()
	cmd := exec.CommandContext(limited, h.path, h.args...)
	cmd.Dir = workspace
	cmd.Env = []string{"HOME=" + workspace, "TMPDIR=" + filepath.Join(workspace, "tmp"), "TZ=UTC", "LANG=C.UTF-8"}
	cmd.Stdin = bytes.NewReader(input)
	out := &boundedBuffer{limit: h.maximum, full: cancel}
	tail := &endsBuffer{limit: stderrTail}
	cmd.Stdout, cmd.Stderr = out, tail
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	// Children that keep the pipes open do not keep c9s waiting.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	_ = killGroup(cmd)
	switch {
	case out.overflowed:
		return nil, failed("the answer is larger than %d bytes", h.maximum)
	case limited.Err() == context.DeadlineExceeded && ctx.Err() == nil:
		return nil, &problem{code: CodePlannerTimeout, text: fmt.Sprintf("no answer within %s%s", h.deadline, tail)}
	case errors.Is(err, exec.ErrWaitDelay):
		return out.kept.Bytes(), nil
	case err != nil:
		return nil, failed("%v%s", err, tail)
	}
	return out.kept.Bytes(), nil
}
