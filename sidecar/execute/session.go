package execute

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// How lines are typed: the next one once the program has been quiet for a
// moment, since prompts differ, and in any case after a while.
const (
	quiet     = 300 * time.Millisecond
	lineLimit = 20 * time.Second
)

// session types lines into a program on a terminal, then end-of-file.
func (r *runner) session(ctx context.Context, index int, cli contract.CLI) error {
	r.results.set(contract.StepResult{Index: index, Running: true})
	output, code, err := r.converse(ctx, cli)
	res := contract.StepResult{Index: index, ExitCode: code, Output: output}
	if err != nil {
		res.ExitCode, res.Error = max(code, 1), err.Error()
	}
	r.results.set(res)
	return err
}

func (r *runner) converse(ctx context.Context, cli contract.CLI) (output string, code int, err error) {
	if len(cli.Argv) == 0 {
		return "", 1, fmt.Errorf("no command")
	}
	master, slave, err := openTerminal()
	if err != nil {
		return "", 1, fmt.Errorf("opening a terminal: %w", err)
	}
	defer master.Close()
	ctx, cancel := context.WithTimeout(ctx, r.patience+time.Duration(len(cli.Lines))*lineLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, cli.Argv[0], cli.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(os.Environ(), "TERM=dumb")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		slave.Close()
		return "", notFound, err
	}
	slave.Close()
	screen := &tail{}
	heard := &listener{w: screen, began: time.Now()}
	closed := make(chan struct{})
	go func() { // ends with EIO when the last of the program has gone
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			heard.write(buffer[:n])
			if err != nil {
				close(closed)
				return
			}
		}
	}()
	for _, line := range cli.Lines {
		heard.untilQuiet(ctx, closed)
		if _, err := master.WriteString(line + "\n"); err != nil {
			break // it has ended; its exit code tells
		}
	}
	heard.untilQuiet(ctx, closed)
	_, _ = master.Write([]byte{4}) // end-of-transmission, where it still listens
	err = cmd.Wait()
	return screen.String(), cmd.ProcessState.ExitCode(), err
}

// listener notes when something was last heard, as the time since it began.
type listener struct {
	w     *tail
	began time.Time
	last  atomic.Int64
}

func (l *listener) write(p []byte) {
	if len(p) > 0 {
		l.last.Store(int64(time.Since(l.began)))
		l.w.Write(p)
	}
}

// untilQuiet waits for an answer that has come to a pause.
func (l *listener) untilQuiet(ctx context.Context, closed <-chan struct{}) {
	began := time.Since(l.began)
	tick := time.NewTicker(quiet / 6)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-closed:
			return
		case <-ctx.Done():
			return
		}
		last, now := time.Duration(l.last.Load()), time.Since(l.began)
		if last > began && now-last > quiet || now-began > lineLimit {
			return
		}
	}
}

// openTerminal opens a pseudo-terminal (pty(7), ioctl_tty(2)).
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 1000, Col: 500}); err != nil {
		slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}
