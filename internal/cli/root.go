// Package cli is c9s' command line: it parses flags, calls the stages and prints.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/c9s-lab/c9s/internal/cli/show"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitFailure = 1 // diagnostics, or something failed
	ExitUsage   = 2

	exitInterrupted = 130 // a shell's 128 and SIGINT
)

// IO is the command line's environment.
type IO struct {
	In io.Reader
	// Out and Err receive the output of commands. Main wraps each in a show.Writer, so
	// that output cannot control a terminal. show.Raw, show.Document and show.Stream
	// bypass it.
	Out, Err io.Writer
	// Env is the environment as NAME=value.
	Env []string
	// Color reports whether Err is a terminal which takes colours.
	Color bool
}

// System returns the environment of the process.
func System() IO {
	color := term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(), Color: color}
}

// errFailed is returned by commands that have already reported the error.
var errFailed = errors.New("failed")

// exitCode ends c9s with a command's own exit code.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// failure is an error that is not the caller's way of calling.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func fail(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

// Arguments returns the arguments of a process. Under the name of docker or containerlab, c9s
// answers in place of these.
func Arguments(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(argv[0])), ".exe")
	switch name {
	case "docker":
		return append([]string{"shim", "docker"}, argv[1:]...)
	case "containerlab", "clab":
		return append([]string{"shim", "containerlab"}, argv[1:]...)
	case "c9s-extcap":
		return append([]string{"extcap"}, argv[1:]...)
	}
	return argv[1:]
}

// Main runs one command line and returns the exit code.
func Main(args []string, world IO) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, errs := show.New(world.Out), show.New(world.Err)
	defer errs.Flush()
	world.Out, world.Err = out, errs
	if answersPassword(args, world) {
		return ExitOK
	}
	context.AfterFunc(ctx, stop) // a second signal ends what does not heed the first
	root := newRoot(world)
	strictCompletion(root)
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for the process's own
	err := root.ExecuteContext(ctx)
	// Errors of writing that a command ignored are reported here.
	if lost := out.Flush(); err == nil && lost != nil {
		err = fail(lost)
	}
	var code exitCode
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil && !errors.As(err, &code):
		word := "interrupted"
		if strings.HasPrefix(err.Error(), word) {
			word = err.Error() // it says more
		}
		fmt.Fprintln(world.Err, word)
		return exitInterrupted
	case errors.Is(err, errFailed):
		return ExitFailure
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &failure{}):
		fmt.Fprintf(world.Err, "Error: %v\n", err)
		return ExitFailure
	default:
		fmt.Fprintf(world.Err, "Error: %v\nRun '%s --help' for usage.\n", err, commandPath(root, args))
		return ExitUsage
	}
}

// commandPath is the deepest command that args reach.
func commandPath(root *cobra.Command, args []string) string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd == nil {
		cmd = root
	}
	return cmd.CommandPath()
}

func newRoot(world IO) *cobra.Command {
	root := &cobra.Command{
		Use:   "c9s",
		Short: "Run containerlab topologies on Kubernetes",
		Long: `c9s compiles a containerlab topology file to plain Kubernetes objects: Deployments,
Services and ConfigMaps that you can apply with kubectl alone.`,
		Example: `  c9s render topo.clab.yml | kubectl apply -f -
  c9s render topo.clab.yml -o manifests/
  c9s validate topo.clab.yml`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetIn(world.In)
	root.SetOut(world.Out)
	root.SetErr(world.Err)
	root.AddCommand(
		newRender(world), newValidate(world), newConvert(world), newGenerate(world), newPlan(world), newFabric(world), newGraph(world),
		newKinds(world), newExplain(world), newVersion(world),
	)
	if commands := clusterCommands(world); len(commands) > 0 {
		root.AddCommand(commands...)
		root.Example = "  c9s deploy topo.clab.yml\n" + root.Example
	}
	return root
}

// strictCompletion has a shell that is not known rejected, as other commands are: cobra
// prints its help.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
