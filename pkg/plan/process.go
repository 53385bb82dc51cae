package plan

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// stderrTail is the maximum length of standard error in a diagnostic, in bytes.
const stderrTail = 2 << 10

// process is one running planner program. One goroutine at a time uses it.
type process struct {
	cmd       *exec.Cmd
	workspace string
	in        io.WriteCloser
	answers   chan []byte
	// ended is closed when the program has exited; err is then its error.
	ended    chan struct{}
	err      error
	stderr   *endsBuffer
	deadline time.Duration
	maximum  int
}

// start runs the program in its own workspace, without c9s' environment, and waits until it
// is ready.
func (h *Hooks) start(ctx context.Context) (*process, *Response, *problem) {
	workspace, err := os.MkdirTemp("", "c9s-planner-")
	if err != nil {
		return nil, nil, failed("no workspace: %v", err)
	}
	p := &process{workspace: workspace, answers: make(chan []byte), ended: make(chan struct{}), deadline: h.deadline, maximum: h.maximum}
	if err := p.run(h.path, h.args); err != nil {
		os.RemoveAll(workspace)
		return nil, nil, failed("%v", err)
	}
	hello, problem := p.receive(ctx)
	if problem == nil && hello.Planner == "" {
		problem = failed("it does not say its name")
	}
	if problem != nil {
		p.kill()
		return nil, nil, problem
	}
	return p, hello, nil
}

func (p *process) run(path string, args []string) error {
	p.cmd = exec.Command(path, args...)
	p.cmd.Dir = p.workspace
	p.cmd.Env = []string{"HOME=" + p.workspace, "TMPDIR=" + filepath.Join(p.workspace, "tmp"), "TZ=UTC", "LANG=C.UTF-8"}
	p.stderr = &endsBuffer{limit: stderrTail}
	p.cmd.Stderr = p.stderr
	ownGroup(p.cmd)
	// Don't wait for children that keep the pipes open.
	p.cmd.WaitDelay = time.Second
	if err := os.Mkdir(filepath.Join(p.workspace, "tmp"), 0o700); err != nil {
		return err
	}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stdout = writer
	err = p.cmd.Start()
	writer.Close()
	if err != nil {
		out.Close()
		return err
	}
	go p.read(out)
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
		out.SetReadDeadline(time.Now().Add(time.Second)) //nolint:errcheck // a pipe takes deadlines
	}()
	return nil
}

// read passes on the lines that the program writes.
func (p *process) read(out *os.File) {
	defer out.Close()
	defer close(p.answers)
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := readLine(r, p.maximum)
		if len(line) > 0 || errors.Is(err, errTooLong) {
			p.answers <- line
		}
		if err != nil {
			return
		}
	}
}

var errTooLong = errors.New("too long")

// readLine reads up to and including a line feed, and at most limit+1 bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var out []byte
	for {
		part, err := r.ReadSlice('\n')
		out = append(out, part...)
		if len(out) > limit {
			return out[:limit+1], errTooLong
		}
		if err != bufio.ErrBufferFull {
			return out, err
		}
	}
}

// ask sends a request and waits for the answer.
func (p *process) ask(ctx context.Context, req *Request) (*Response, *problem) {
	input, err := json.Marshal(req)
	if err != nil {
		return nil, failed("the request cannot be written: %v", err)
	}
	// Writing blocks if the program does not read: the answer's deadline covers both.
	go p.in.Write(append(input, '\n')) //nolint:errcheck // a program that has exited gives no answer
	return p.receive(ctx)
}

func (p *process) receive(ctx context.Context) (*Response, *problem) {
	timer := time.NewTimer(p.deadline)
	defer timer.Stop()
	select {
	case line, ok := <-p.answers:
		switch {
		case len(line) > p.maximum:
			return nil, failed("the answer is larger than %d bytes", p.maximum)
		case !ok:
			return nil, p.ending("it ended without an answer")
		case !bytes.HasSuffix(line, []byte("\n")):
			// Only a program that has exited leaves an incomplete line.
			if problem := p.ending(""); problem != nil {
				return nil, problem
			}
			return nil, failed("the answer is cut off after %d bytes", len(line))
		}
		return decodeAnswer(line)
	case <-timer.C:
		p.kill()
		return nil, &problem{code: CodePlannerTimeout, text: fmt.Sprintf("no answer within %s%s", p.deadline, p.stderr)}
	case <-ctx.Done():
		return nil, failed("%v", ctx.Err())
	}
}

// ending describes how the program exited, by its error or else by otherwise, and quotes
// standard error. It returns nil without either.
func (p *process) ending(otherwise string) *problem {
	p.kill()
	if p.err != nil && !errors.Is(p.err, exec.ErrWaitDelay) && !strings.Contains(p.err.Error(), "signal: killed") {
		return failed("%v%s", p.err, p.stderr)
	}
	if otherwise == "" {
		return nil
	}
	return failed("%s%s", otherwise, p.stderr)
}

// end closes the program's input, at whose end the program exits.
func (p *process) end() {
	p.in.Close()
	select {
	case <-p.ended:
	case <-time.After(time.Second):
	}
	p.kill()
}

// kill kills the program with all its children, and removes its workspace.
func (p *process) kill() {
	select {
	case <-p.ended:
	case <-time.After(50 * time.Millisecond): // it may be about to exit with a reason
	}
	_ = killGroup(p.cmd)
	go func() { //nolint:revive // what is left unread must not keep the reader
		for range p.answers {
		}
	}()
	<-p.ended
	os.RemoveAll(p.workspace)
}
