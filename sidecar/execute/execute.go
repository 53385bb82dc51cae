// Package execute is the helper that runs a node's program inside the device's
// container: commands, waits, files and command-line sessions, each with its
// outcome in result.json.
package execute

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// Patience is how long a command may take before it is left to itself and the
// next step begins. Commands that never end (a server in the foreground) are as
// common in exec lists as those that take their time.
const Patience = 60 * time.Second

// Options say where a program is and how it runs.
type Options struct {
	// Steps is the path of the program; payloads are beside it, and the folder
	// "run", where the result goes.
	Steps string
	// Foreground runs the program here and now, whether it is strict or not.
	Foreground bool
	// Patience replaces the constant of that name, where it is set.
	Patience time.Duration
	// Stages is the URL that answers whether a stage is over; the own sidecar's
	// socket beside the program if empty.
	Stages string
}

// Main runs a program as the postStart hook does. A strict one is run to its end,
// and its first failure is returned. Any other goes to the background.
func Main(ctx context.Context, o Options) error {
	program, err := load(o.Steps)
	if err != nil {
		return err
	}
	if program.Hold && !o.Foreground {
		if err := background("hold", "--socket", filepath.Join(filepath.Dir(o.Steps), contract.HoldSocket)); err != nil {
			return err
		}
	}
	if !program.Strict && !o.Foreground && len(program.Steps) > 0 {
		return background("run", "--steps", o.Steps, "--foreground")
	}
	r := newRunner(o, program)
	return r.run(ctx)
}

func load(file string) (*contract.Program, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := contract.ParseProgram(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// background starts this program again in its own session, without the hook's streams.
// Otherwise the kubelet's exec would last until they are closed.
func background(args ...string) error {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// runner runs one program.
type runner struct {
	program  *contract.Program
	dir      string
	patience time.Duration
	stages   string
	sidecar  *http.Client
	results  *recorder
	// left are commands that were left to themselves.
	left sync.WaitGroup
}

func newRunner(o Options, p *contract.Program) *runner {
	dir := filepath.Dir(o.Steps)
	r := &runner{
		program: p, dir: dir, patience: o.Patience, stages: o.Stages, sidecar: api.Client(),
		results: newRecorder(filepath.Join(dir, contract.RunDir, contract.ResultFile), p.Steps),
	}
	if r.patience == 0 {
		r.patience = Patience
	}
	if r.stages == "" {
		r.stages = "http://sidecar" + api.PathStages
		r.sidecar = api.SocketClient(filepath.Join(dir, contract.SocketFile))
	}
	return r
}

// run runs the steps. A failure ends a strict program; others continue.
func (r *runner) run(ctx context.Context) error {
	r.results.save()
	for i, s := range r.program.Steps {
		if err := r.step(ctx, i, s); err != nil && r.program.Strict {
			return fmt.Errorf("step %d %s: %w", i+1, s.Name, err)
		}
		if ctx.Err() != nil {
			r.results.abandon("the helper was ended while it ran")
			return ctx.Err()
		}
	}
	r.results.finish()
	if r.program.Strict { // the hook waits for this process
		r.results.abandon("it still ran when the program ended, and nobody waits for its end")
		return nil
	}
	return r.stay(ctx)
}

// stay waits for the commands that were left to themselves: only their parent learns
// how they end, and reads what they write.
func (r *runner) stay(ctx context.Context) error {
	all := make(chan struct{})
	go func() { r.left.Wait(); close(all) }()
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		r.results.abandon("the helper was ended while it ran")
		return ctx.Err()
	}
}

func (r *runner) step(ctx context.Context, i int, s contract.Step) error {
	switch {
	case s.Run != nil:
		return r.command(ctx, i, *s.Run)
	case s.Wait != nil:
		return r.wait(ctx, i, *s.Wait)
	case s.Write != nil:
		return r.results.outcome(i, r.write(*s.Write))
	case s.CLI != nil:
		return r.session(ctx, i, *s.CLI)
	case s.Over != "":
		r.results.over(s.Over)
	case len(s.WaitFor) > 0:
		return r.waitFor(ctx, i, s.WaitFor)
	}
	return nil
}
