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

// stderrTail is how much of standard error a diagnostic quotes, in bytes.
const stderrTail = 2 << 10

// process is one running planner program. One goroutine at a time uses it.
type process struct {
	cmd       *exec.Cmd
	workspace string
	in        io.WriteCloser
	answers   chan []byte
	// ended is closed once the program has ended; err then says how.
	ended    chan struct{}
	err      error
	stderr   *endsBuffer
	deadline time.Duration
	maximum  int
}

// start runs the program in a workspace of its own, without c9s' environment, and
// waits until it is ready.
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
	// Children that keep the pipes open do not keep c9s waiting.
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

// read hands on what the program writes, a line at a time.
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

// readLine reads up to and with a line feed, and at most limit bytes and one.
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
	// A program that does not read would keep this one waiting: the answer's deadline
	// holds for both.
	go p.in.Write(append(input, '\n')) //nolint:errcheck // a program that is gone gives no answer
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
			// Only a program that ended leaves a line without its end.
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

// ending says how the program ended: in an error, or as otherwise says, with what it
// wrote to standard error. It is nil for neither.
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

// end lets the program end by itself, which it does when its input ends.
func (p *process) end() {
	p.in.Close()
	select {
	case <-p.ended:
	case <-time.After(time.Second):
	}
	p.kill()
}

// kill ends the program with all that it started, and removes its workspace.
func (p *process) kill() {
	select {
	case <-p.ended:
	case <-time.After(50 * time.Millisecond): // it may be about to end with a reason
	}
	_ = killGroup(p.cmd)
	go func() { //nolint:revive // what is left unread must not keep the reader
		for range p.answers {
		}
	}()
	<-p.ended
	os.RemoveAll(p.workspace)
}
