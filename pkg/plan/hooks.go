package plan

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

const (
	// DefaultDeadline is how long a planner program may take to start, and for one node.
	DefaultDeadline = 60 * time.Second
	// MaxAnswer is the maximum size of an answer in bytes.
	MaxAnswer = 64 << 20
)

// Hooks plans with a planner program. It has a pool of long-lived processes, one per core,
// each of which plans one node after the other. If a process crashes, misses its deadline
// or returns an invalid answer, it is killed with all its children, and only its node
// fails. Close ends the pool.
type Hooks struct {
	path     string
	args     []string
	deadline time.Duration
	maximum  int
	full     bool

	// slots limits the number of processes.
	slots chan struct{}
	mu    sync.Mutex
	// idle holds the processes that wait for a request.
	idle  []*process
	hello *Response
	// helloFile stores the program's first response, so that the program does not have to
	// be started for it; "" for no file.
	helloFile string
}

// A HooksOption configures a Hooks.
type HooksOption func(*Hooks)

// WithDeadline sets how long the program may take for one node.
func WithDeadline(d time.Duration) HooksOption { return func(h *Hooks) { h.deadline = d } }

// WithArgs passes arguments to the program.
func WithArgs(args ...string) HooksOption { return func(h *Hooks) { h.args = args } }

// WithFull requests all steps from the program.
func WithFull() HooksOption { return func(h *Hooks) { h.full = true } }

// WithProcesses sets the maximum number of processes.
func WithProcesses(n int) HooksOption { return func(h *Hooks) { h.slots = make(chan struct{}, n) } }

// withMaximum sets the maximum size of an answer in bytes.
func withMaximum(n int) HooksOption { return func(h *Hooks) { h.maximum = n } }

// NewHooks returns a planner that uses the program at path.
func NewHooks(path string, options ...HooksOption) *Hooks {
	h := &Hooks{path: path, deadline: DefaultDeadline, maximum: MaxAnswer, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	for _, o := range options {
		o(h)
	}
	return h
}

// unknownName is the name of a program that has not reported one.
const unknownName = "hooks/unknown"

// Name returns the name that the program reports, "hooks/unknown" if it does not answer.
// It starts the program if necessary.
func (h *Hooks) Name() string {
	if hello, err := h.Hello(); err == nil {
		return hello.Planner
	}
	return unknownName
}

// Fingerprint returns a text that is different for every build of the program.
func (h *Hooks) Fingerprint() string {
	info, err := os.Stat(h.path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", h.path, info.Size(), info.ModTime().UnixNano())
}

// Hello returns the program's first response. It starts the program unless the response is
// known.
func (h *Hooks) Hello() (*Response, error) {
	if hello := h.known(); hello != nil {
		return hello, nil
	}
	if hello := readHello(h.helloFile); hello != nil {
		h.setHello(hello)
		return hello, nil
	}
	p, problem := h.acquire(context.Background())
	if problem != nil {
		return nil, fmt.Errorf("planner program %s: %s", h.path, problem.text)
	}
	h.release(p)
	hello := h.known()
	writeHello(h.helloFile, hello)
	return hello, nil
}

func (h *Hooks) known() *Response {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hello
}

func (h *Hooks) setHello(hello *Response) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hello = hello
}

// Close ends the processes of the pool.
func (h *Hooks) Close() error {
	h.mu.Lock()
	idle := h.idle
	h.idle = nil
	h.mu.Unlock()
	for _, p := range idle {
		p.end()
	}
	return nil
}

// problem describes why a program gave no usable answer.
type problem struct {
	code diag.Code
	text string
}

func failed(format string, args ...any) *problem {
	return &problem{code: CodePlannerFailed, text: fmt.Sprintf(format, args...)}
}

// Plan requests the plan of n from the program. If the program fails, the plan has an
// error in its Diagnostics. The returned error is that of ctx.
func (h *Hooks) Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error) {
	answer, problem := h.ask(ctx, &Request{Version: ProtocolVersion, Node: n.Name, Lab: excerpt(l, n), Files: contents(l, n), Full: h.full})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if problem == nil {
		problem = checkAnswer(answer, l, n)
	}
	if problem == nil {
		place(answer.Plan, n)
		return answer.Plan, nil
	}
	var problems diag.List
	problems.Errorf(problem.code, n.Pos, "run it again with --planner builtin, or update the planner program",
		"node %q: planner program %s: %s", n.Name, h.path, problem.text)
	name := unknownName
	if hello := h.known(); hello != nil {
		name = hello.Planner
	}
	return &Plan{Version: Version, Node: n.Name, Kind: n.Kind, Planner: name, Diagnostics: problems.All()}, nil
}

// ask sends one request to a process of the pool.
func (h *Hooks) ask(ctx context.Context, req *Request) (*Response, *problem) {
	p, problem := h.acquire(ctx)
	if problem != nil {
		return nil, problem
	}
	answer, problem := p.ask(ctx, req)
	if problem != nil || answer.Last {
		p.kill()
		<-h.slots
		return answer, problem
	}
	h.release(p)
	return answer, nil
}

// acquire returns an idle process, or starts one when the pool has room for it.
func (h *Hooks) acquire(ctx context.Context) (*process, *problem) {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, failed("%v", ctx.Err())
	}
	h.mu.Lock()
	if n := len(h.idle); n > 0 {
		p := h.idle[n-1]
		h.idle = h.idle[:n-1]
		h.mu.Unlock()
		return p, nil
	}
	h.mu.Unlock()
	p, hello, problem := h.start(ctx)
	if problem != nil {
		<-h.slots
		return nil, problem
	}
	h.setHello(hello)
	return p, nil
}

func (h *Hooks) release(p *process) {
	h.mu.Lock()
	h.idle = append(h.idle, p)
	h.mu.Unlock()
	<-h.slots
}

// Plans reports whether the program can plan a kind, by any of its names. It returns true
// for a program that does not answer, so that the problem is reported at its nodes.
func (h *Hooks) Plans(kind string) bool {
	hello, err := h.Hello()
	return err != nil || slices.Contains(hello.Kinds, kind)
}
