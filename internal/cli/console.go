//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/remotecommand"
	kubectlterm "k8s.io/kubectl/pkg/util/term"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access/console"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// consolePort is where the serial console of a virtual machine is, in vrnetlab's images.
const consolePort = 5000

// escapeKey leaves a console.
const escapeKey = "ctrl-]"

type consoleFlags struct {
	nodeRef
	port uint16
}

func newConsole(world IO) *cobra.Command {
	f := &consoleFlags{}
	cmd := &cobra.Command{
		Use:   "console NODE",
		Short: "Connect to the console of a node",
		Long: `Console connects to the serial console of a node whose kind is a virtual machine, and to
the main process of any other node. Several users can connect to a main process at the same
time. A serial console serves one connection at a time, the image's launch script first.
Press Ctrl-] to leave; the main process keeps running. Ctrl-C and all other keys go to the
node.`,
		Example: `  c9s console vsrx1
  c9s console vmx1 --port 5001
  c9s console R1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args[0])
		},
	}
	f.add(cmd, world, "t")
	cmd.Flags().Uint16Var(&f.port, "port", 0, "TCP port of a serial console in the node (default: 5000 for virtual machines)")
	return cmd
}

func (f *consoleFlags) run(ctx context.Context, world IO, name string) error {
	client, found, node, err := f.runningNode(ctx, world, name)
	if err != nil {
		return err
	}
	if f.port == 0 && kindOf(node).VM {
		f.port = consolePort
	}
	if f.port != 0 {
		return fail(f.serial(ctx, world, client, found, node))
	}
	return fail(f.attach(ctx, world, client, found, node))
}

// serial connects to a serial console: a Telnet server on a port of the node's container.
func (f *consoleFlags) serial(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, node cluster.Node) error {
	lab := tunnels(client, found.Namespace)
	defer lab.Close()
	conn, err := dialNode(ctx, lab, node.Deployment, tunnel.Target{Network: tunnel.TCP, Addr: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Port: f.port})
	if err != nil {
		return fmt.Errorf("console of node %s at port %d: %w", node.Name, f.port, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return onTerminal(world, node.Name, func(t kubectlterm.TTY, in io.Reader) error {
		line := console.NewTelnet(conn)
		go func() {
			_, err := io.Copy(line, in)
			if t.Raw || err != nil { // the escape key
				conn.Close()
			}
		}()
		_, err := io.Copy(show.Raw(world.Out), line)
		if errors.Is(err, io.ErrClosedPipe) {
			err = nil
		}
		return err
	})
}

// attach connects to the main process.
func (f *consoleFlags) attach(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, node cluster.Node) error {
	if len(node.Containers) == 0 {
		return noContainer(node)
	}
	pod, err := client.Pod(ctx, found.Namespace, node.Deployment)
	if err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	has := cluster.TerminalOf(pod, node.Containers[0])
	if !has.Stdin {
		fmt.Fprintf(world.Err, "the main process of %s reads no input; use 'c9s shell %[1]s' for a shell\n", node.Name)
	}
	return onTerminal(world, node.Name, func(t kubectlterm.TTY, in io.Reader) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		s := cluster.Streams{Out: show.Raw(world.Out), Err: show.Raw(world.Err), TTY: has.TTY}
		keys := in
		if t.Raw { // the escape key ends it, whether or not the process reads input
			r, w := io.Pipe()
			go func() {
				_, _ = io.Copy(w, in)
				cancel()
			}()
			keys = r
			if !has.Stdin {
				go func() { _, _ = io.Copy(io.Discard, r) }()
			}
		}
		if has.Stdin {
			s.In = keys
		}
		var sizes remotecommand.TerminalSizeQueue
		if has.TTY && t.Raw {
			sizes = sizesOf(t)
		}
		err := client.Attach(ctx, found.Namespace, pod.Name, node.Containers[0], s, sizes)
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return err
	})
}

// sizesOf returns the sizes of a terminal, nil if the output is none.
func sizesOf(t kubectlterm.TTY) remotecommand.TerminalSizeQueue {
	queue := t.MonitorSize(t.GetSize())
	if queue == nil {
		return nil
	}
	return terminalSizes{queue}
}

// terminalSizes are the sizes of the terminal, in the type of the other package.
type terminalSizes struct{ kubectlterm.TerminalSizeQueue }

func (s terminalSizes) Next() *remotecommand.TerminalSize {
	if size := s.TerminalSizeQueue.Next(); size != nil {
		return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
	}
	return nil
}

// onTerminal runs f with the terminal to itself, and the escape key taken out of its input. With
// another input, that is all of it.
func onTerminal(world IO, name string, f func(t kubectlterm.TTY, in io.Reader) error) error {
	t := kubectlterm.TTY{In: world.In, Out: plain(world.Out)}
	if t.Raw = t.IsTerminalIn(); !t.Raw {
		return f(t, world.In)
	}
	in, err := kubectlterm.NewDetachableReader(world.In, escapeKey)
	if err != nil {
		return err
	}
	fmt.Fprintf(world.Err, "console of %s; press Ctrl-] to leave\n", name)
	defer fmt.Fprintln(world.Err)
	return t.Safe(func() error { return f(t, in) })
}

// noContainer is the error for a node that is a network.
func noContainer(n cluster.Node) error {
	return fmt.Errorf("node %s is a bridge and has no container; 'c9s exec %[1]s -- bridge fdb' (or link, vlan, mdb) shows it", n.Name)
}
