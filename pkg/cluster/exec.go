package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
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
	if err != nil {
		return 0, fmt.Errorf("container %s of Pod %s: %w", container, pod, err)
	}
	return 0, nil
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
