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
	// DefaultDeadline is how long a planner program may take for one node, and to
	// get ready.
	DefaultDeadline = 60 * time.Second
	// MaxAnswer is how large an answer may be, in bytes.
	MaxAnswer = 64 << 20
)

// Hooks plans with a planner program. It keeps a pool of long-lived processes, one
// a core, each of which plans one node after the other. A process that crashes, is
// late or answers badly is killed with all its children and costs its node only.
// Close ends the pool.
type Hooks struct {
	path     string
	args     []string
	deadline time.Duration
	maximum  int
	full     bool

	// slots bounds the processes.
	slots chan struct{}
	mu    sync.Mutex
	// idle are processes that wait for a request.
	idle  []*process
	hello *Response
	// helloFile keeps what the program says of itself, so that it is not started for
	// that alone; "" for no file.
	helloFile string
}

// HooksOption changes how a Hooks runs its program.
type HooksOption func(*Hooks)

// WithDeadline sets how long the program may take for one node.
func WithDeadline(d time.Duration) HooksOption { return func(h *Hooks) { h.deadline = d } }

// WithArgs gives arguments to the program.
func WithArgs(args ...string) HooksOption { return func(h *Hooks) { h.args = args } }

// WithFull asks the program for all steps.
func WithFull() HooksOption { return func(h *Hooks) { h.full = true } }

// WithProcesses sets how many processes there may be at a time.
func WithProcesses(n int) HooksOption { return func(h *Hooks) { h.slots = make(chan struct{}, n) } }

// withMaximum sets the largest answer, in bytes.
func withMaximum(n int) HooksOption { return func(h *Hooks) { h.maximum = n } }

// NewHooks returns a planner that uses the program at path.
func NewHooks(path string, options ...HooksOption) *Hooks {
	h := &Hooks{path: path, deadline: DefaultDeadline, maximum: MaxAnswer, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	for _, o := range options {
		o(h)
	}
	return h
}

// unknownName stands for a program that has not said its name.
const unknownName = "hooks/unknown"

// Name returns what the program calls itself; it starts the program if need be. It
// is "hooks/unknown" if the program does not answer.
func (h *Hooks) Name() string {
	if hello, err := h.Hello(); err == nil {
		return hello.Planner
	}
	return unknownName
}

// Fingerprint returns a text that differs from one build of the program to another.
func (h *Hooks) Fingerprint() string {
	info, err := os.Stat(h.path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", h.path, info.Size(), info.ModTime().UnixNano())
}

// Hello returns what the program says of itself. It starts the program if that is
// not known from before.
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

// ask puts one request to a process of the pool.
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

// acquire returns an idle process, or starts one once there is room for it.
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

// Plans reports whether the program can plan a kind, by any of its names. A program
// that does not answer can: what is wrong with it is said at its nodes.
func (h *Hooks) Plans(kind string) bool {
	hello, err := h.Hello()
	return err != nil || slices.Contains(hello.Kinds, kind)
}
