//go:build !nocluster

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// ExitDeclined is the exit code where the answer to a question was no.
const ExitDeclined = 3

// confirm asks a question that flag answers, and returns nil for yes. Without a
// terminal it returns an error of the command line.
func confirm(ctx context.Context, world IO, question, flag string) error {
	yes, err := askTerminal(ctx, world, question, flag)
	if err == nil && !yes {
		fmt.Fprintln(world.Err, "nothing was changed")
		err = exitCode(ExitDeclined)
	}
	return err
}

// askTerminal asks a question that flag answers, and reports whether the answer is yes.
func askTerminal(ctx context.Context, world IO, question, flag string) (bool, error) {
	in, err := terminal(world, question, flag)
	if err != nil {
		return false, err
	}
	return ask(ctx, in, world.Err, question)
}

// terminal is standard input, if somebody can answer there.
func terminal(world IO, question, flag string) (io.Reader, error) {
	f, ok := world.In.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, fmt.Errorf("%s Standard input is not a terminal, so nobody can answer: use %s", question, flag)
	}
	return f, nil
}

// ask reads an answer, yes or no.
func ask(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	answer, err := askLine(ctx, in, out, question+" [y/N]")
	switch strings.ToLower(answer) {
	case "y", "yes":
		return err == nil, err
	}
	return false, err
}

// askLine reads an answer without the spaces around it. If ctx ends first, for example by
// Ctrl-C, there is no answer.
func askLine(ctx context.Context, in io.Reader, out io.Writer, question string) (string, error) {
	fmt.Fprintf(out, "%s ", question)
	answered := make(chan string, 1)
	go func() { answered <- readLine(in) }()
	var answer string
	select {
	case answer = <-answered:
	case <-ctx.Done():
	}
	if !strings.HasSuffix(answer, "\n") {
		fmt.Fprintln(out)
		return "", fail(errors.New("no answer; nothing was changed"))
	}
	return strings.TrimSpace(answer), nil
}

// readLine reads one line and nothing after it, which may be the answer to the next
// question. What was typed before an error is no answer.
func readLine(in io.Reader) string {
	line, _ := bufio.NewReaderSize(oneByte{in}, 16).ReadString('\n')
	return line
}

// oneByte reads one byte at a time.
type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(1, len(p))]) }
