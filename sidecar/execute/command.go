package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// notFound is a shell's exit code for a command that does not exist (POSIX.1-2017,
// XCU 2.8.2).
const notFound = 127

// command runs a command. A detached command, or one that exceeds its time, continues while the
// next step starts, and reports its end.
func (r *runner) command(ctx context.Context, index int, run contract.Run) error {
	if len(run.Argv) == 0 {
		return r.results.outcome(index, errors.New("no command"))
	}
	output := &tail{}
	cmd := exec.Command(run.Argv[0], run.Argv[1:]...)
	cmd.Stdin = strings.NewReader(run.Input)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// A command may leave a server behind that holds its streams.
	cmd.WaitDelay = time.Second
	r.results.set(contract.StepResult{Index: index, Running: true})
	if err := cmd.Start(); err != nil {
		r.results.set(contract.StepResult{Index: index, ExitCode: notFound, Error: err.Error()})
		return err
	}
	ended := make(chan error, 1)
	r.left.Go(func() {
		err := waitError(cmd.Wait())
		res := contract.StepResult{Index: index, ExitCode: cmd.ProcessState.ExitCode(), Output: output.String()}
		if err != nil {
			res.Error = err.Error()
		}
		r.results.set(res)
		ended <- err
	})
	if run.Detach {
		return nil
	}
	patience := time.NewTimer(r.patience)
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-patience.C:
		r.results.set(contract.StepResult{Index: index, Running: true, Output: output.String(),
			Error: fmt.Sprintf("still running after %s; the next step has begun", r.patience)})
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitError leaves out that a child of the command still has its streams.
func waitError(err error) error {
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// tryTimeout bounds one try of a wait, in which a device that boots may hang.
const tryTimeout = 30 * time.Second

// wait repeats a command until it answers as expected.
func (r *runner) wait(ctx context.Context, index int, w contract.Wait) error {
	if w.TimeoutSeconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(w.TimeoutSeconds)*time.Second)
		defer cancel()
	}
	last := contract.StepResult{Index: index, Running: true}
	r.results.set(last)
	for first := true; ; first = false {
		res, ok := try(ctx, w)
		res.Index = index
		if ok {
			r.results.set(res)
			return nil
		}
		// An attempt that the time limit interrupted or prevented does not show what is
		// wrong, but the attempt before it does.
		if over := ctx.Err() != nil; first || !over {
			res.Running = true
			changed := res.Output+res.Error != last.Output+last.Error
			last = res
			if changed && !over { // written once, however long it takes
				r.results.set(res)
			}
		}
		select {
		case <-time.After(time.Duration(w.IntervalSeconds) * time.Second):
		case <-ctx.Done():
			last.Running, last.ExitCode = false, max(last.ExitCode, 1)
			last.Error = fmt.Sprintf("not as expected within %d s: %s", w.TimeoutSeconds, last.Error)
			r.results.set(last)
			return errors.New(last.Error)
		}
	}
}

// try runs a wait's command once.
func try(ctx context.Context, w contract.Wait) (contract.StepResult, bool) {
	if len(w.Argv) == 0 {
		return contract.StepResult{Error: "no command"}, true
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, w.Argv[0], w.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = &limited{&stdout}, &limited{&stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := waitError(cmd.Run())
	out := &tail{}
	out.Write(stdout.Bytes())
	out.Write(stderr.Bytes())
	res := contract.StepResult{Output: out.String()}
	if cmd.ProcessState != nil {
		res.ExitCode = cmd.ProcessState.ExitCode()
	}
	switch {
	case w.Contains == "" && err != nil:
		res.Error = err.Error()
	case !strings.Contains(stdout.String(), w.Contains):
		res.Error = fmt.Sprintf("the output lacks %q", w.Contains)
	case w.EmptyStderr && stderr.Len() > 0:
		res.Error = "it wrote to standard error"
	default:
		return res, true
	}
	return res, false
}

// maxOutput bounds what is searched for a wait's text, in bytes.
const maxOutput = 1 << 20

// limited is a buffer that stops growing.
type limited struct{ *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
