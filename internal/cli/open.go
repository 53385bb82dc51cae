//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"sync/atomic"

	"github.com/google/shlex"
	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/access/forward"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

type openFlags struct {
	nodeRef
	port  uint16
	http  bool
	print bool
}

func newOpen(world IO) *cobra.Command {
	f := &openFlags{}
	cmd := &cobra.Command{
		Use:   "open NODE",
		Short: "Open the web page of a node in a browser",
		Long: `Open forwards a loopback port of this machine to the web server of a node, and opens
the page in your browser: $BROWSER, or the system's. The page is available until
you press Ctrl-C. The port is the kind's port for HTTPS, or else for HTTP, or else 443.`,
		Example: `  c9s open fw1
  c9s open H1 --port 80 --http
  c9s open fw1 --print`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args[0])
		},
	}
	f.add(cmd, world, "t")
	fs := cmd.Flags()
	fs.Uint16VarP(&f.port, "port", "p", 0, "port of the node's web server")
	fs.BoolVar(&f.http, "http", false, "use HTTP where the kind does not say so, not HTTPS")
	fs.BoolVar(&f.print, "print", false, "print the URL and open no browser")
	return cmd
}

func (f *openFlags) run(ctx context.Context, world IO, name string) error {
	client, found, node, err := f.runningNode(ctx, world, name)
	if err != nil {
		return err
	}
	scheme, port := webPort(kindOf(node), f.port, f.http)
	at := loopbacks(found, []cluster.Node{node})[node.Name]
	l, err := net.Listen("tcp", net.JoinHostPort(at.String(), "0"))
	if err != nil {
		return fail(err)
	}
	lab := tunnels(client, found.Namespace)
	defer lab.Close()
	target := tunnel.Target{Network: tunnel.TCP, Port: port}
	// Whoever waits for a page should not find out in the browser that there is none.
	conn, err := dialNode(ctx, lab, node.Deployment, target)
	if err != nil {
		l.Close()
		return fail(fmt.Errorf("web server of node %s at port %d: %w", node.Name, port, err))
	}
	conn.Close()
	url := fmt.Sprintf("%s://%s/", scheme, l.Addr())
	fmt.Fprintln(world.Out, url)
	if !f.print {
		if err := browse(envValue(world, "BROWSER"), url); err != nil {
			fmt.Fprintf(world.Err, "warning: no browser was opened: %v\n", err)
		}
	}
	fmt.Fprintln(world.Err, "press Ctrl-C to end it")
	var told atomic.Bool
	dial := func(ctx context.Context, first []byte) (net.Conn, error) {
		return dialNodeEarly(ctx, lab, node.Deployment, target, first)
	}
	forward.TCP(ctx, l, dial, forward.Events{Open: func(int) {}, Failed: func(err error) {
		if told.CompareAndSwap(false, true) {
			fmt.Fprintf(world.Err, "%s: %v\n", node.Name, err)
		}
	}})
	return exitCode(exitInterrupted)
}

// webPort returns the scheme and the port of the web server of a kind. port and http are what the
// user says.
func webPort(kind *kinds.Kind, port uint16, http bool) (string, uint16) {
	named := map[string]uint16{}
	for _, p := range kind.Ports {
		named[p.Name] = uint16(p.Port)
	}
	switch {
	case port != 0 && (http || port == named["http"] || port == 80):
		return "http", port
	case port != 0:
		return "https", port
	case named["https"] != 0 && !http:
		return "https", named["https"]
	case named["http"] != 0:
		return "http", named["http"]
	case http:
		return "http", 80
	}
	return "https", 443
}

// browse opens a URL in the browser that the user has chosen, or in the system's.
func browse(browser, url string) error {
	words, err := shlex.Split(browser)
	switch {
	case err != nil:
		return fmt.Errorf("BROWSER: %w", err)
	case len(words) > 0:
		words = append(words, url)
	case runtime.GOOS == "darwin":
		words = []string{"open", url}
	case runtime.GOOS == "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	default:
		words = []string{"xdg-open", url}
	}
	cmd := exec.Command(words[0], words[1:]...)
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("%s is not installed; open %s yourself", words[0], url)
		}
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}
