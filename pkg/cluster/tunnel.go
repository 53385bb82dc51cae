package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// usageCode is the exit code of a sidecar that does not know a command.
const usageCode = 2

// Tunnel runs the far end of a tunnel in the present Pod of a Deployment, until the streams or
// ctx end. The error wraps access.ErrAway if the Pod's sidecar is not running.
func (c *Client) Tunnel(ctx context.Context, namespace, deployment string, in io.Reader, out, errs io.Writer) error {
	return c.stream(ctx, namespace, deployment, "dial", in, out, errs)
}

// Capture runs a capture in the present Pod of a Deployment, until the streams or ctx end. The
// error wraps access.ErrAway if the Pod's sidecar is not running.
func (c *Client) Capture(ctx context.Context, namespace, deployment string, in io.Reader, out, errs io.Writer) error {
	return c.stream(ctx, namespace, deployment, "capture", in, out, errs)
}

// stream runs a command of the sidecar's program in the present Pod of a Deployment.
func (c *Client) stream(ctx context.Context, namespace, deployment, command string, in io.Reader, out, errs io.Writer) error {
	pod, err := c.Pod(ctx, namespace, deployment)
	if err != nil {
		return err
	}
	if !sidecarRuns(pod) {
		return fmt.Errorf("the sidecar of Pod %s %w", pod.Name, access.ErrAway)
	}
	executor, err := c.bulkExecutor(namespace, pod.Name, "exec", &corev1.PodExecOptions{
		Container: contract.WireContainer, Command: []string{contract.SidecarProgram, command}, Stdin: true, Stdout: true, Stderr: true,
	})
	if err != nil {
		return err
	}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errs})
	var exit utilexec.CodeExitError
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err), strings.Contains(err.Error(), "is forbidden: User"):
		return fmt.Errorf("you lack the right to create pods/exec in namespace %s, by which c9s reaches the nodes (docs/reference/rights.md)", namespace)
	case errors.As(err, &exit) && exit.Code == usageCode:
		return fmt.Errorf("the sidecar of Pod %s is of an older c9s and has no %q: deploy the lab again", pod.Name, command)
	case apierrors.IsNotFound(err), strings.Contains(err.Error(), "container not found"):
		return fmt.Errorf("the sidecar of Pod %s %w", pod.Name, access.ErrAway)
	}
	return fmt.Errorf("Pod %s: %w", pod.Name, err)
}

// sidecarRuns reports whether the container of the sidecar, an init container that stays, runs.
func sidecarRuns(pod *corev1.Pod) bool {
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Name == contract.WireContainer {
			return s.State.Running != nil
		}
	}
	return false
}

// executor opens the streams of a subresource. It uses WebSockets, or SPDY where the API server
// or a proxy does not take those, as kubectl does.
func (c *Client) executor(namespace, pod, subresource string, options runtime.Object) (remotecommand.Executor, error) {
	sockets, spdy, err := c.executors(namespace, pod, subresource, options)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(sockets, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// bulkExecutor is an executor for much data. It prefers SPDY: the API server passes its bytes
// on, while it translates each message of a WebSocket to SPDY, which kubelets speak.
func (c *Client) bulkExecutor(namespace, pod, subresource string, options runtime.Object) (remotecommand.Executor, error) {
	sockets, spdy, err := c.executors(namespace, pod, subresource, options)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(spdy, sockets, func(err error) bool {
		return strings.Contains(err.Error(), "unable to upgrade connection") || httpstream.IsHTTPSProxyError(err)
	})
}

// executors returns both kinds of executor.
func (c *Client) executors(namespace, pod, subresource string, options runtime.Object) (sockets, spdy remotecommand.Executor, err error) {
	url := c.Typed.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource(subresource).
		VersionedParams(options, scheme.ParameterCodec).URL()
	config := c.coreConfig()
	if spdy, err = remotecommand.NewSPDYExecutor(config, "POST", url); err != nil {
		return nil, nil, err
	}
	sockets, err = remotecommand.NewWebSocketExecutor(config, "GET", url.String())
	return sockets, spdy, err
}
