//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// dialTime is how long a connection to a node may take, with the wait for a Pod that is being
// replaced.
const dialTime = 30 * time.Second

// tunnelGC is how much the heap may grow before it is collected, in percent. Every 32 kB that come
// through an exec stream are allocated, and a small heap would be collected 30 times a second.
const tunnelGC = 800

// tunnels returns the dialler of a lab in a namespace.
func tunnels(client *cluster.Client, namespace string) *access.Lab {
	debug.SetGCPercent(tunnelGC)
	return access.New(func(ctx context.Context, pod string, in io.Reader, out, errs io.Writer) error {
		return client.Tunnel(ctx, namespace, pod, in, out, errs)
	})
}

// dialNode connects to a node with a time limit.
func dialNode(ctx context.Context, dialler *access.Lab, pod string, t tunnel.Target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return dialler.Dial(ctx, pod, t)
}

// dialNodeEarly is dialNode that does not wait until the node has taken the connection.
func dialNodeEarly(ctx context.Context, dialler *access.Lab, pod string, t tunnel.Target, first []byte) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return dialler.DialEarly(ctx, pod, t, first)
}

// runningNode finds one node of a lab that is to be reached. A stopped one is an error.
func (f *nodeRef) runningNode(ctx context.Context, world IO, name string) (*cluster.Client, cluster.Found, cluster.Node, error) {
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return nil, found, cluster.Node{}, err
	}
	chosen, err := cluster.Select(nodes, []string{name})
	if err == nil {
		err = notStopped(chosen[0])
	}
	if err != nil {
		return nil, found, cluster.Node{}, fail(err)
	}
	return client, found, chosen[0], nil
}

// notStopped is the error for a node that has been stopped.
func notStopped(n cluster.Node) error {
	if n.Stopped {
		return fmt.Errorf("node %s is stopped; start it with 'c9s start %[1]s'", n.Name)
	}
	return nil
}

// kindOf returns a node's kind as the built-in catalogue has it; of an unknown kind nothing is
// known.
func kindOf(n cluster.Node) *kinds.Kind {
	if k, ok := kinds.Builtin().Lookup(n.Kind); ok {
		return k
	}
	return &kinds.Kind{Name: n.Kind}
}

// loginOf returns the login of a node: its kind's, or what the topology gives it instead. The
// password is "" if it is not known.
func loginOf(n cluster.Node) lab.Credentials { return loginWith(n, kindOf(n)) }

// loginWith is loginOf a node whose kind may be one of the user's own. The launcher of a virtual
// machine makes the user that its container gets, whatever the kind's is.
func loginWith(n cluster.Node, kind *kinds.Kind) lab.Credentials {
	login := kind.Credentials
	if n.Login != nil {
		login.Username = n.Login.Username
	}
	own := n.Login != nil && n.Login.Password
	switch {
	case kind.VM, n.Launcher:
		login.Username = cmp.Or(n.Given.Username, login.Username)
		if own || n.Given.Password != "" {
			login.Password = n.Given.Password
		}
	case own:
		login.Password = n.Given.Password
	}
	return login
}

// parseAddress reads --address; the zero value is the management address.
func parseAddress(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return a, fmt.Errorf("--address %q: use an IP address of the node, such as 127.0.0.1", text)
	}
	return a.Unmap(), nil
}

// splitPort splits NODE:PORT.
func splitPort(text string) (node string, port uint16, err error) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, 0, nil
	}
	port, err = parsePort(text[i+1:])
	return text[:i], port, err
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("port %q: use a number from 1 to 65535", text)
	}
	return uint16(n), nil
}
