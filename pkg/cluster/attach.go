package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
)

// Terminal is what a container's main process has for one.
type Terminal struct {
	// Stdin reports whether it reads input, TTY whether it has a terminal.
	Stdin, TTY bool
}

// TerminalOf returns the terminal of a container of a Pod.
func TerminalOf(pod *corev1.Pod, container string) Terminal {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == container {
			return Terminal{c.Stdin, c.TTY}
		}
	}
	return Terminal{}
}

// Attach connects streams to the main process of a container. sizes is nil without a terminal.
func (c *Client) Attach(ctx context.Context, namespace, pod, container string, s Streams, sizes remotecommand.TerminalSizeQueue) error {
	executor, err := c.executor(namespace, pod, "attach", &corev1.PodAttachOptions{
		Container: container, Stdin: s.In != nil, Stdout: true, Stderr: !s.TTY, TTY: s.TTY,
	})
	if err != nil {
		return err
	}
	options := remotecommand.StreamOptions{Stdin: s.In, Stdout: s.Out, Tty: s.TTY, TerminalSizeQueue: sizes}
	if !s.TTY {
		options.Stderr = s.Err
	}
	if err := executor.StreamWithContext(ctx, options); err != nil {
		return fmt.Errorf("attach to container %s of Pod %s: %w", container, pod, err)
	}
	return nil
}
