//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/access/proxy"
)

type proxyFlags struct {
	labRef
	listen string
}

func newProxy(world IO) *cobra.Command {
	f := &proxyFlags{}
	cmd := &cobra.Command{
		Use:   "proxy [LAB|TOPO]",
		Short: "Run a proxy into a lab on this machine",
		Long: `Proxy runs a SOCKS5 and HTTP proxy on a loopback port of this machine. Through it,
browsers, curl and gNMI clients reach every port of the lab's nodes, by the names and
management addresses that they have inside the lab. It connects to nothing else, and
keeps running when Pods are replaced. Press Ctrl-C to end it.`,
		Example: `  c9s proxy
  curl -x socks5h://127.0.0.1:1080 http://R1/
  HTTPS_PROXY=127.0.0.1:1080 gnmic -a R1:57400 capabilities
  c9s proxy mylab --listen 127.0.0.1:8888`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:1080", "loopback address and port to listen on; port 0 chooses one")
	return cmd
}

func (f *proxyFlags) run(ctx context.Context, world IO, args []string) error {
	if err := loopback(f.listen); err != nil {
		return err
	}
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	names, err := readNames(ctx, client, found)
	if err != nil {
		return fail(err)
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fail(err)
	}
	lab := tunnels(client, found.Namespace)
	defer lab.Close()
	at := l.Addr().String()
	fmt.Fprintf(world.Err, "proxy into lab %s: socks5h://%s and http://%[2]s; press Ctrl-C to end it\n", found.Name, at)
	proxy.Serve(ctx, l, func(ctx context.Context, host string, port uint16) (net.Conn, error) {
		return names.dial(ctx, lab, host, port)
	})
	return exitCode(exitInterrupted)
}

// loopback reports an address that others than this machine reach: whoever does needs no
// right in the cluster.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err == nil && host != "localhost" {
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			err = fmt.Errorf("%s is no loopback address", host)
		}
	}
	if err != nil {
		return fmt.Errorf("--listen %q: %w; use one such as 127.0.0.1:1080", address, err)
	}
	return nil
}
