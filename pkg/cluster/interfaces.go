package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// interfacesTime is how long a Pod may take to list its interfaces.
const interfacesTime = 20 * time.Second

// maxInterfaceLine is the longest line of a sidecar about an interface, in bytes.
const maxInterfaceLine = 64 << 10

// Interfaces returns the interfaces of the devices of a Deployment's present Pod.
func (c *Client) Interfaces(ctx context.Context, namespace, deployment string) ([]contract.InterfaceFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, interfacesTime)
	defer cancel()
	var out bytes.Buffer
	if err := c.sidecar(ctx, namespace, deployment, nil, limit(&out, foreign.MaxStatus), "interfaces"); err != nil {
		return nil, err
	}
	var list []contract.InterfaceFacts
	err := interfaceEvents(&out, func(e contract.InterfaceEvent) { list = append(list, e.Interface) })
	return list, err
}

// WatchInterfaces calls each for the interfaces of a Deployment's present Pod and for every
// change, until ctx is done or the Pod ends. With an interval it is also called for the counters.
func (c *Client) WatchInterfaces(ctx context.Context, namespace, deployment string, interval time.Duration, each func(contract.InterfaceEvent)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, open := io.Pipe() // its end is that of the program
	defer open.Close()
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		err := interfaceEvents(lines, each)
		lines.CloseWithError(errors.Join(err, io.ErrClosedPipe))
		ended <- err
	}()
	err := c.sidecar(ctx, namespace, deployment, in, out, "interfaces", "--watch", "--interval", interval.String())
	out.Close()
	return errors.Join(err, <-ended)
}

// interfaceEvents reads the lines of a sidecar.
func interfaceEvents(r io.Reader, each func(contract.InterfaceEvent)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxInterfaceLine)
	for lines.Scan() {
		var e contract.InterfaceEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("reading the interfaces: %w", err)
		}
		each(e)
	}
	return lines.Err()
}

// sidecar runs a subcommand of the sidecar's program in a Deployment's present Pod.
func (c *Client) sidecar(ctx context.Context, namespace, deployment string, in io.Reader, out io.Writer, args ...string) error {
	pod, err := c.Pod(ctx, namespace, deployment)
	if err != nil {
		return err
	}
	if !sidecarRuns(pod) {
		return fmt.Errorf("the sidecar of Pod %s %w", pod.Name, access.ErrAway)
	}
	var complaint bytes.Buffer
	code, err := c.Pipe(ctx, namespace, pod.Name, contract.WireContainer, append([]string{contract.SidecarProgram}, args...),
		Streams{In: in, Out: out, Err: limit(&complaint, 4<<10)})
	switch {
	case err != nil:
		return err
	case code == usageCode:
		return fmt.Errorf("the sidecar of Pod %s is of an older c9s: deploy the lab again", pod.Name)
	case code != 0:
		return fmt.Errorf("Pod %s: %s", pod.Name, strings.TrimSpace(complaint.String()))
	}
	return nil
}

// limited is a writer that takes only so many bytes.
type limited struct {
	io.Writer
	left int
}

func limit(w io.Writer, n int64) io.Writer { return &limited{w, int(n)} }

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.left {
		return 0, errors.New("the answer is too long")
	}
	l.left -= len(p)
	return l.Writer.Write(p)
}
