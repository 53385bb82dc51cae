package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// forwarded starts a program that forwards a port, and returns where it listens.
func forwarded(t *testing.T, cmd *exec.Cmd, where func(*bufio.Reader) (string, error)) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	reader := bufio.NewReader(out)
	address, err := where(reader)
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	return address
}

// forward starts c9s forward for one port.
func (l *lab) forward(t *testing.T, what string) string {
	t.Helper()
	return forwarded(t, l.command(t.Context(), "forward", what, "-n", l.ns, "-o", "json"), func(r *bufio.Reader) (string, error) {
		var ports []struct{ Local netip.AddrPort }
		if err := json.NewDecoder(r).Decode(&ports); err != nil || len(ports) != 1 {
			return "", fmt.Errorf("%d ports: %w", len(ports), err)
		}
		return ports[0].Local.String(), nil
	})
}

// kubectlForward starts kubectl port-forward for one port of a node's Pod.
func (l *lab) kubectlForward(t *testing.T, node string, port int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", "--kubeconfig", l.Kubeconfig(), "-n", l.ns, "port-forward", "pod/"+l.pod(t, node).Name, fmt.Sprintf(":%d", port))
	return forwarded(t, cmd, func(r *bufio.Reader) (string, error) {
		line, err := r.ReadString('\n')
		_, rest, _ := strings.Cut(line, "Forwarding from ")
		address, _, _ := strings.Cut(rest, " ")
		return address, err
	})
}

// get requests a path of the node's web server over a new connection, and returns the time to
// the first byte and, if all of it is wanted, the time in all and how many bytes came.
func get(ctx context.Context, address, path string, whole bool) (first, all time.Duration, n int64, err error) {
	began := time.Now()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, 0, 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // kubectl port-forward may lose the end of a connection
	fmt.Fprintf(c, "GET %s HTTP/1.0\r\nHost: h1\r\n\r\n", path)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		return 0, 0, 0, err
	}
	first = time.Since(began)
	if !whole {
		return first, first, 1, nil
	}
	n, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 256<<10))
	return first, time.Since(began), n, err
}

// bareExec reads a file of H1 by kubectl exec over SPDY, and returns how long that takes.
func (l *lab) bareExec(t *testing.T, file string, size int64) (time.Duration, error) {
	cmd := exec.CommandContext(t.Context(), "kubectl", "--kubeconfig", l.Kubeconfig(), "-n", l.ns, "exec", l.pod(t, "h1").Name, "--", "cat", file)
	cmd.Env = append(os.Environ(), "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		return 0, err
	}
	began := time.Now() // the program runs
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{out}, make([]byte, 256<<10))
	took := time.Since(began)
	if failed := cmd.Wait(); err == nil {
		err = failed
	}
	if err == nil && n < size-1 {
		err = fmt.Errorf("%d bytes came", n)
	}
	return took, err
}

// bareEcho returns the median of the round trips of a request's length to cat in H1, by kubectl
// exec over SPDY.
func (l *lab) bareEcho(t *testing.T) (time.Duration, error) {
	cmd := exec.CommandContext(t.Context(), "kubectl", "--kubeconfig", l.Kubeconfig(), "-n", l.ns, "exec", "-i", l.pod(t, "h1").Name, "--", "cat")
	cmd.Env = append(os.Environ(), "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false")
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var trips []time.Duration
	message := make([]byte, 80)
	for range 201 { // the first one waits for the program's start
		began := time.Now()
		if _, err := in.Write(message); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(out, message); err != nil {
			return 0, err
		}
		trips = append(trips, time.Since(began))
	}
	in.Close()
	slices.Sort(trips)
	return trips[100], cmd.Wait()
}

// TestAccessSpeed measures c9s forward beside kubectl port-forward, in turns: throughput, and the time
// to the first byte of new connections, one after the other and one every 20 ms.
func TestAccessSpeed(t *testing.T) {
	if os.Getenv("C9S_ACCESS_SPEED") == "" {
		t.Skip("a measurement: set C9S_ACCESS_SPEED=1")
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("needs kubectl, to compare with")
	}
	l, _ := accessLab(t)
	const size = 256 << 20
	if out, err := l.in(t.Context(), "H1", "truncate", "-s", fmt.Sprint(size), "/var/www/html/big"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	type way struct {
		name, address string
		rates         []float64
		setup         []time.Duration
	}
	ways := []way{{name: "kubectl port-forward", address: l.kubectlForward(t, "h1", 80)}, {name: "c9s forward", address: l.forward(t, "H1:80")}}
	bare := way{name: "bare exec stream"}
	for range 5 {
		for i := range ways {
			_, took, n, err := get(t.Context(), ways[i].address, "/big", true)
			if err != nil || n < size {
				t.Fatalf("%s: %d bytes, %v", ways[i].name, n, err)
			}
			ways[i].rates = append(ways[i].rates, float64(n)/took.Seconds()/1e6)
		}
		took, err := l.bareExec(t, "/var/www/html/big", size)
		if err != nil {
			t.Fatal(err)
		}
		bare.rates = append(bare.rates, size/took.Seconds()/1e6)
	}
	slices.Sort(bare.rates)
	t.Logf("%s: %.0f MB/s (%.0f to %.0f), which no tunnel over it can exceed", bare.name, bare.rates[2], bare.rates[0], bare.rates[4])
	echo, err := l.bareEcho(t)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: a round trip takes %s, which no new connection over it can beat", bare.name, echo)
	// In blocks, so that each way pays for the end of its own connections.
	for n := range 40 {
		for i := range ways {
			for range 10 {
				if n >= 20 {
					time.Sleep(20 * time.Millisecond) // an idle machine wakes up more slowly
				}
				first, _, _, err := get(t.Context(), ways[i].address, "/", false)
				if err != nil {
					t.Fatalf("%s: %v", ways[i].name, err)
				}
				ways[i].setup = append(ways[i].setup, first)
			}
		}
	}
	set := func(w way, half int) time.Duration {
		times := slices.Sorted(slices.Values(w.setup[half*200 : half*200+200]))
		return times[100]
	}
	for i := range ways {
		slices.Sort(ways[i].rates)
		t.Logf("%s: %.0f MB/s (%.0f to %.0f), first byte of a new connection after %s, of one every 20 ms after %s", ways[i].name,
			ways[i].rates[2], ways[i].rates[0], ways[i].rates[4], set(ways[i], 0), set(ways[i], 1))
	}
	t.Logf("throughput %.2f times, set-up %.2f and %.2f times that of kubectl port-forward", ways[1].rates[2]/ways[0].rates[2],
		float64(set(ways[1], 0))/float64(set(ways[0], 0)), float64(set(ways[1], 1))/float64(set(ways[0], 1)))
}
