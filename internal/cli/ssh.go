//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access/sshconfig"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

type sshFlags struct {
	nodeRef
	user     string
	port     uint16
	address  string
	identity []string
	options  []string
	tty      bool
	agent    bool
	password bool
}

func newSSH(world IO) *cobra.Command {
	f := &sshFlags{}
	cmd := &cobra.Command{
		Use:   "ssh NODE [COMMAND...]",
		Short: "Log in to a node with ssh",
		Long: `Ssh logs in to a node, or runs a command there. It uses this machine's ssh program, or its
own client if there is none. The connection goes through the API server and the node's
sidecar: it needs no route to the Pod, no load balancer and no root. The default user is that
of the node's kind. Ssh does not check host keys, and uses your keys, agent and configuration
as usual. With --password, it answers the password prompt with the kind's default.`,
		Example: `  c9s ssh R1
  c9s ssh R1 show version
  c9s ssh srl1 --password
  c9s ssh H1 -l root -o ForwardX11=no uptime`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			command, err := afterNode(cmd, args[1:])
			if err != nil {
				return err
			}
			if help, _ := cmd.Flags().GetBool("help"); help {
				return cmd.Help()
			}
			return f.run(cmd.Context(), world, args[0], command)
		},
	}
	f.add(cmd, world, "") // -t is a terminal here, as for ssh
	fs := cmd.Flags()
	fs.SetInterspersed(false) // what follows the command's first word is the command's
	fs.StringVarP(&f.user, "user", "l", "", "user (default: that of the node's kind)")
	fs.Uint16VarP(&f.port, "port", "p", 22, "port of the node")
	fs.StringVar(&f.address, "address", "", "address of the node (default: its management address)")
	fs.StringArrayVarP(&f.identity, "identity", "i", nil, "file with a private key")
	fs.StringArrayVarP(&f.options, "option", "o", nil, "option of ssh_config: KEY=VALUE")
	fs.BoolVarP(&f.tty, "tty", "t", false, "allocate a terminal for a command")
	fs.BoolVarP(&f.agent, "agent", "A", false, "forward the authentication agent")
	fs.BoolVar(&f.password, "password", false, "log in with the default password of the node's kind")
	return cmd
}

// afterNode reads the flags between the node and the command, which ssh takes too, and returns
// the command.
func afterNode(cmd *cobra.Command, args []string) ([]string, error) {
	if err := cmd.Flags().Parse(args); err != nil {
		return nil, err
	}
	return cmd.Flags().Args(), nil
}

func (f *sshFlags) run(ctx context.Context, world IO, name string, command []string) error {
	if _, err := parseAddress(f.address); err != nil {
		return err
	}
	client, found, node, err := f.runningNode(ctx, world, name)
	if err != nil {
		return err
	}
	login := loginOf(node)
	if f.password && login.Password == "" && node.Login != nil && node.Login.Password {
		return fail(fmt.Errorf("the topology gives node %s a password of its own, which the cluster does not have; log in without --password and type it", node.Name))
	}
	if f.password && login.Password == "" {
		return fail(fmt.Errorf("kind %s has no default password; log in with a key, or without --password", node.Kind))
	}
	program, err := exec.LookPath("ssh")
	if err != nil {
		return f.own(ctx, world, client, found, node, login, command)
	}
	proxy, err := proxyCommand(f.targetFlags, client.Context, found.Namespace, node.Deployment, f.port, f.address)
	if err != nil {
		return fail(err)
	}
	cmd := exec.Command(program, f.arguments(node, cmp.Or(f.user, login.Username), proxy, command)...)
	cmd.Env = world.Env
	if f.password {
		if cmd.Env, err = passwordEnv(world.Env, login.Password); err != nil {
			return fail(err)
		}
	}
	return runProgram(cmd, world)
}

// arguments are those of ssh.
func (f *sshFlags) arguments(node cluster.Node, user, proxy string, command []string) []string {
	args := []string{"-o", "ProxyCommand=" + proxy}
	for _, o := range f.options { // before the others: ssh takes the first value of an option
		args = append(args, "-o", o)
	}
	for _, o := range sshconfig.Options {
		args = append(args, "-o", o.Key+"="+o.Value)
	}
	// Several labs may have a node of this name: a connection that is open may lead to another one.
	args = append(args, "-o", "ControlPath=none")
	if f.password {
		args = append(args, "-o", "PreferredAuthentications=password,keyboard-interactive", "-o", "NumberOfPasswordPrompts=1")
	}
	for _, file := range f.identity {
		args = append(args, "-i", file)
	}
	if user != "" {
		args = append(args, "-l", user)
	}
	if f.tty {
		args = append(args, "-t")
	}
	if f.agent {
		args = append(args, "-A")
	}
	args = append(args, hostName(node))
	if len(command) > 0 {
		args = append(append(args, "--"), command...)
	}
	return args
}

// hostName is what a node is called on ssh's command line. Its name comes from the cluster, and
// might be an option.
func hostName(n cluster.Node) string {
	if contract.HostName(n.Name) {
		return n.Name
	}
	return n.Deployment
}

// proxyCommand is the command by which ssh reaches a node.
func proxyCommand(target targetFlags, kubeContext, namespace, deployment string, port uint16, address string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	words := []string{self, "dial", fmt.Sprintf("%s:%d", deployment, port), "--pod", "-n", namespace}
	if kubeContext != "" {
		words = append(words, "--context", kubeContext)
	}
	if target.kubeconfig != "" {
		file, err := filepath.Abs(target.kubeconfig)
		if err != nil {
			return "", err
		}
		words = append(words, "--kubeconfig", file)
	}
	if address != "" {
		words = append(words, "--address", address)
	}
	return sshconfig.Command(words...), nil
}

// runProgram runs a program with the streams of c9s. Its exit code becomes c9s' own.
func runProgram(cmd *exec.Cmd, world IO) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = world.In, plain(world.Out), plain(world.Err)
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exitCode(exit.ExitCode())
	case err != nil:
		return fail(err)
	}
	return nil
}

// plain is the file behind a writer, if there is one: a program that gets it has the terminal.
func plain(w io.Writer) io.Writer {
	if f, ok := show.File(w); ok {
		return f
	}
	return show.Raw(w)
}
