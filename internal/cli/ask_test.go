//go:build !nocluster && linux

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAsk(t *testing.T) {
	for answer, want := range map[string]string{
		"y\n": "yes", "Yes \n": "yes", "n\n": "no", "\n": "no", "yes please\n": "no", "": "none", "y": "none",
	} {
		var out bytes.Buffer
		ok, err := ask(t.Context(), strings.NewReader(answer), &out, "Go on?")
		got := map[bool]string{true: "yes", false: "no"}[ok]
		if err != nil {
			got = "none"
		}
		if got != want {
			t.Errorf("%q is %s, want %s", answer, got, want)
		}
		if !strings.HasPrefix(out.String(), "Go on? [y/N] ") {
			t.Errorf("%q: says %q", answer, out.String())
		}
	}
}

// Ctrl-C at a question ends it, whatever the terminal does.
func TestAskInterrupted(t *testing.T) {
	silent, keyboard := io.Pipe()
	defer keyboard.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, interrupt)
	ok, err := ask(ctx, silent, io.Discard, "Go on?")
	if ok || err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("an interrupted question: %t, %v", ok, err)
	}
}

// A question takes one line, and leaves the next to the next question.
func TestAskTwice(t *testing.T) {
	in := strings.NewReader("y\nn\n")
	for i, want := range []bool{true, false} {
		if got, err := ask(t.Context(), in, io.Discard, "Go on?"); got != want || err != nil {
			t.Errorf("question %d: %t, %v", i+1, got, err)
		}
	}
}

// Where nobody can answer, a question is an error that names the flag.
func TestNoTerminal(t *testing.T) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, in := range map[string]io.Reader{"a pipe that says no": strings.NewReader("n\n"), "a pipe that says yes": strings.NewReader("y\n"), "/dev/null": file, "nothing": nil} {
		var out bytes.Buffer
		code := Main([]string{"destroy", "mylab"}, IO{In: in, Out: io.Discard, Err: &out})
		if code != ExitUsage || !strings.Contains(out.String(), "--yes") || !strings.Contains(out.String(), "not a terminal") {
			t.Errorf("%s: exit code %d, %s", name, code, out.String())
		}
	}
}

// At a terminal "no" has an exit code of its own.
func TestTerminal(t *testing.T) {
	for answer, want := range map[string]int{"n\n": ExitDeclined, "\n": ExitDeclined, "y\n": ExitOK} {
		keyboard, screen := pseudoterminal(t)
		if _, err := keyboard.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := confirm(t.Context(), IO{In: screen, Err: &out}, "Go on?", "--yes")
		var code exitCode
		errors.As(err, &code)
		if int(code) != want || (err == nil) != (want == ExitOK) {
			t.Errorf("%q: %v, %s", answer, err, out.String())
		}
	}
}

// pseudoterminal is a terminal (pty(7)): what is written to keyboard is typed at screen.
func pseudoterminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	return keyboard, screen
}
