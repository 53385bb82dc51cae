//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strings"

	"golang.org/x/term"
	kubectlterm "k8s.io/kubectl/pkg/util/term"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access/sshclient"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// own logs in with c9s' own client, on a machine that has no ssh.
func (f *sshFlags) own(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, node cluster.Node, login lab.Credentials, command []string) error {
	if len(f.options) > 0 || f.agent {
		return fail(errors.New("this machine has no ssh program, and -o and -A need one: install OpenSSH"))
	}
	t := tunnel.Target{Network: tunnel.TCP, Port: f.port}
	t.Addr, _ = parseAddress(f.address)
	nodes := tunnels(client, found.Namespace)
	defer nodes.Close()
	conn, err := dialNode(ctx, nodes, node.Deployment, t)
	if err != nil {
		return fail(err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	code, err := f.login(world, conn, node, login, strings.Join(command, " "))
	if err != nil {
		return fail(err)
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}

// login runs the session.
func (f *sshFlags) login(world IO, conn net.Conn, node cluster.Node, login lab.Credentials, command string) (code int, err error) {
	name := cmp.Or(f.user, login.Username, currentUser())
	o := sshclient.Options{
		User: name, Keys: f.identity, Agent: envValue(world, "SSH_AUTH_SOCK"), Command: command,
		In: world.In, Out: show.Raw(world.Out), Err: show.Raw(world.Err),
	}
	if len(o.Keys) == 0 {
		if folder, err := sshFolder(); err == nil {
			o.Keys = sshclient.DefaultKeys(folder)
		}
	}
	tty := kubectlterm.TTY{In: world.In, Out: plain(world.Out)}
	switch {
	case f.password:
		o.Password = func() (string, error) { return login.Password, nil }
	case tty.IsTerminalIn():
		o.Password = func() (string, error) { return askPassword(world, name+"@"+node.Name) }
	}
	if (command != "" && !f.tty) || !tty.IsTerminalIn() {
		return sshclient.Run(conn, node.Name, o)
	}
	o.Terminal = &sshclient.Terminal{Name: cmp.Or(envValue(world, "TERM"), "xterm"), Width: 80, Height: 24}
	tty.Raw = true
	if size := tty.GetSize(); size != nil {
		o.Terminal.Width, o.Terminal.Height = int(size.Width), int(size.Height)
		sizes := make(chan [2]int)
		o.Terminal.Sizes = sizes
		queue := tty.MonitorSize(size)
		go func() {
			defer close(sizes)
			for s := queue.Next(); s != nil; s = queue.Next() {
				sizes <- [2]int{int(s.Width), int(s.Height)}
			}
		}()
	}
	err = tty.Safe(func() error {
		code, err = sshclient.Run(conn, node.Name, o)
		return err
	})
	return code, err
}

func currentUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "root"
}

// askPassword asks without showing the answer.
func askPassword(world IO, who string) (string, error) {
	in, ok := world.In.(*os.File)
	if !ok {
		return "", errors.New("there is no terminal to ask for the password")
	}
	fmt.Fprintf(show.Raw(world.Err), "%s's password: ", show.Cell(who))
	answer, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(show.Raw(world.Err))
	return string(answer), err
}
