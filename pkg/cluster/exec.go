package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
)

// Streams are a command's. In is nil for none; TTY asks for a terminal.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	TTY      bool
}

// Exec runs a command in a container and returns its exit code. The error is for
// what kept it from running.
func (c *Client) Exec(ctx context.Context, namespace, pod, container string, argv []string, s Streams) (code int, err error) {
	options := kubectlexec.ExecOptions{
		StreamOptions: kubectlexec.StreamOptions{
			Namespace: namespace, PodName: pod, ContainerName: container,
			Stdin: s.In != nil, TTY: s.TTY, Quiet: true,
			IOStreams: genericiooptions.IOStreams{In: s.In, Out: s.Out, ErrOut: s.Err},
		},
		Command:   argv,
		Executor:  &kubectlexec.DefaultRemoteExecutor{},
		PodClient: c.Typed.CoreV1(),
		Config:    c.coreConfig(),
	}
	done := make(chan error, 1)
	go func() { done <- options.Run() }()
	select {
	case err = <-done:
	case <-ctx.Done(): // kubectl's exec takes no context; its connection ends with the process
		return 0, ctx.Err()
	}
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		return exit.Code, nil
	}
	if failed := notRun(err, argv[0]); failed != nil {
		return 0, failed
	}
	if err != nil {
		return 0, fmt.Errorf("container %s of Pod %s: %w", container, pod, err)
	}
	return 0, nil
}

// Pipe runs a command in a container without a terminal, for what is read by a program. It ends
// with ctx.
func (c *Client) Pipe(ctx context.Context, namespace, pod, container string, argv []string, s Streams) (code int, err error) {
	executor, err := c.bulkExecutor(namespace, pod, "exec", &corev1.PodExecOptions{
		Container: container, Command: argv, Stdin: s.In != nil, Stdout: s.Out != nil, Stderr: s.Err != nil,
	})
	if err != nil {
		return 0, err
	}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: s.In, Stdout: s.Out, Stderr: s.Err})
	var exit utilexec.CodeExitError
	if errors.As(err, &exit) {
		return exit.Code, nil
	}
	if failed := notRun(err, argv[0]); failed != nil {
		return 0, failed
	}
	if err != nil {
		return 0, fmt.Errorf("container %s of Pod %s: %w", container, pod, err)
	}
	return 0, nil
}

// ProgramError reports a program that could not be run in a container. Code is the exit code
// that shells have for it.
type ProgramError struct {
	Program string
	Code    int
}

func (e *ProgramError) Error() string {
	if e.Code == codeNotFound {
		return fmt.Sprintf("there is no program %q", e.Program)
	}
	return fmt.Sprintf("%q is not an executable program", e.Program)
}

// Exit codes of shells (POSIX, 2.8.2).
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// notRun finds what runc and crun say about a program that is not there, or cannot be run, in
// the errors that the kubelet wraps it in; nil for another error.
func notRun(err error, program string) error {
	if err == nil {
		return nil
	}
	text := strings.ToLower(err.Error())
	starts := strings.Contains(text, "exec failed") || strings.Contains(text, "unable to start container process") || strings.Contains(text, "executable file")
	switch {
	case starts && (strings.Contains(text, "not found in $path") || strings.Contains(text, "no such file or directory")):
		return &ProgramError{program, codeNotFound}
	case starts && (strings.Contains(text, "permission denied") || strings.Contains(text, "exec format error") || strings.Contains(text, "is a directory")):
		return &ProgramError{program, codeNotExecutable}
	}
	return nil
}

// coreConfig is the connection as kubectl's exec wants it: to the core API.
func (c *Client) coreConfig() *rest.Config {
	config := rest.CopyConfig(c.Config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

// Logs copies a container's log.
func (c *Client) Logs(ctx context.Context, namespace, pod string, o corev1.PodLogOptions, w io.Writer) error {
	stream, err := c.Typed.CoreV1().Pods(namespace).GetLogs(pod, &o).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = io.Copy(w, stream)
	return err
}
