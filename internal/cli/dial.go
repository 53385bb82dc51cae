//go:build !nocluster

package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

type dialFlags struct {
	nodeRef
	address string
	pod     bool
}

func newDial(world IO) *cobra.Command {
	f := &dialFlags{}
	cmd := &cobra.Command{
		Use:   "dial NODE[:PORT]",
		Short: "Connect standard input and output to a port of a node",
		Long: `Dial connects standard input and output to a TCP port of a node, 22 by default: what
ssh's ProxyCommand needs. The connection goes through the API server and the node's
sidecar, so it needs no route to the Pod and no listener. --address selects another
address of the node than its management address.`,
		Example: `  c9s dial R1
  ssh -o ProxyCommand='c9s dial R1' admin@R1
  c9s dial R1:5000 --address 127.0.0.1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args[0])
		},
	}
	f.add(cmd, world, "t")
	cmd.Flags().StringVar(&f.address, "address", "", "address of the node (default: its management address)")
	cmd.Flags().BoolVar(&f.pod, "pod", false, "NODE is the name of a Deployment in the namespace of -n; nothing is looked up")
	_ = cmd.Flags().MarkHidden("pod")
	return cmd
}

func (f *dialFlags) run(ctx context.Context, world IO, text string) error {
	name, port, err := splitPort(text)
	if err != nil {
		return err
	}
	if port == 0 {
		port = 22
	}
	t := tunnel.Target{Network: tunnel.TCP, Port: port}
	if t.Addr, err = parseAddress(f.address); err != nil {
		return err
	}
	lab, pod, err := f.dialler(ctx, world, name)
	if err != nil {
		return err
	}
	defer lab.Close()
	conn, err := dialNodeEarly(ctx, lab, pod, t, nil)
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() { // it may still wait for input when the node has closed the connection
		if _, err := io.Copy(conn, world.In); err == nil {
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
		}
	}()
	_, err = io.Copy(show.Raw(world.Out), conn)
	return fail(err)
}

// dialler returns the dialler, and the name of the node's Pod in it.
func (f *dialFlags) dialler(ctx context.Context, world IO, name string) (*access.Lab, string, error) {
	if f.pod {
		client, err := f.connect(ctx, world)
		if err != nil {
			return nil, "", err
		}
		return tunnels(client, f.namespace), name, nil
	}
	client, found, node, err := f.runningNode(ctx, world, name)
	if err != nil {
		return nil, "", err
	}
	return tunnels(client, found.Namespace), node.Deployment, nil
}
