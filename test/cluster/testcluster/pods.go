package testcluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
)

// execTimeout bounds every command in a Pod.
const execTimeout = time.Minute

// TryExec runs a command in a container ("" for the first) and returns what it
// printed, its standard output first.
func (c *Cluster) TryExec(ctx context.Context, namespace, pod, container string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	request := c.Typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(c.Config, http.MethodPost, request.URL())
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer // two, since they are written at the same time
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	output := stdout.String() + stderr.String()
	if err != nil {
		return output, fmt.Errorf("%s in Pod %s: %w: %s", strings.Join(command, " "), pod, err, strings.TrimSpace(output))
	}
	return output, nil
}

// Exec is TryExec for commands that must not fail.
func (c *Cluster) Exec(t testing.TB, namespace, pod, container string, command ...string) string {
	t.Helper()
	output, err := c.TryExec(t.Context(), namespace, pod, container, command...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// Logs reads what a container printed.
func (c *Cluster) Logs(t testing.TB, namespace, pod, container string) string {
	t.Helper()
	text, err := c.Typed.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("reading the logs of %s/%s: %v", pod, container, err)
	}
	return string(text)
}

// PortForward forwards a local port to a Pod's until the test ends, and returns
// the local address.
func (c *Cluster) PortForward(t testing.TB, namespace, pod string, port int) string {
	t.Helper()
	url := c.Typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	t.Cleanup(func() { close(stop); <-ended })
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("forwarding port %d of Pod %s: %v", port, pod, err)
	case <-time.After(execTimeout):
		t.Fatalf("forwarding port %d of Pod %s: not ready within %s", port, pod, execTimeout)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}

// KillContainer kills a container's processes on its worker, as the kernel would.
func (c *Cluster) KillContainer(t testing.TB, pod *corev1.Pod, container string) {
	t.Helper()
	killed, err := c.TryKillContainer(t.Context(), pod, container)
	if err == nil && !killed {
		err = fmt.Errorf("container %s of Pod %s does not run", container, pod.Name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TryKillContainer is KillContainer for a container that may have ended: it reports
// whether there was something to kill.
func (c *Cluster) TryKillContainer(ctx context.Context, pod *corev1.Pod, container string) (bool, error) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name != container {
			continue
		}
		_, id, _ := strings.Cut(s.ContainerID, "://")
		out, err := c.TryOnNode(ctx, pod.Spec.NodeName, "sh", "-c", `
n=0
for p in /proc/[0-9]*; do
	if grep -q `+id+` $p/cgroup 2>/dev/null; then kill -9 ${p#/proc/} && n=$((n+1)); fi
done
echo killed $n`)
		return err == nil && !strings.Contains(out, "killed 0"), err
	}
	return false, fmt.Errorf("Pod %s has no container %s", pod.Name, container)
}
