//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access/sshconfig"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

type sshConfigFlags struct {
	labRef
	install bool
	remove  bool
}

func newSSHConfig(world IO) *cobra.Command {
	f := &sshConfigFlags{}
	cmd := &cobra.Command{
		Use:   "ssh-config [LAB|TOPO]",
		Short: "Print ssh configuration for the nodes of a lab",
		Long: `Ssh-config prints entries for ssh's configuration. With them, ssh, scp, rsync, Ansible and
editors reach the nodes by name: NODE, or NODE.LAB if several labs have a node of the same
name. With --install, it writes them to ~/.ssh/c9s and has ~/.ssh/config include that
folder; destroy removes them.`,
		Example: `  c9s ssh-config --install
  scp image.bin R1:/tmp/
  c9s ssh-config mylab > lab.conf && ssh -F lab.conf R1
  c9s ssh-config mylab --remove`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	cmd.Flags().BoolVar(&f.install, "install", false, "write the entries to ~/.ssh/c9s and include them in ~/.ssh/config")
	cmd.Flags().BoolVar(&f.remove, "remove", false, "undo --install")
	cmd.MarkFlagsMutuallyExclusive("install", "remove")
	return cmd
}

func (f *sshConfigFlags) run(ctx context.Context, world IO, args []string) error {
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	if f.remove {
		removed, err := removeSSHConfig(world, client, found)
		if err == nil && !removed {
			err = fmt.Errorf("nothing of lab %s is installed", found.Name)
		}
		return fail(err)
	}
	nodes, err := client.Nodes(ctx, found)
	if err != nil {
		return fail(err)
	}
	text, err := sshConfigText(f.targetFlags.here(world), client.Context, found, nodes)
	if err != nil {
		return fail(err)
	}
	if !f.install {
		_, err := fmt.Fprint(show.Document(world.Out), text)
		return fail(err)
	}
	ssh, err := sshFolder()
	if err != nil {
		return fail(err)
	}
	file, err := sshconfig.Install(ssh, sshConfigFile(client.Context, found.Namespace), text)
	if err != nil {
		return fail(err)
	}
	fmt.Fprintf(world.Err, "%s: %d nodes; try 'ssh %s'\n", file, len(nodes), firstName(nodes))
	return nil
}

// here are the flags with the kubeconfig of this environment, for programs that are started in
// another one.
func (f targetFlags) here(world IO) targetFlags {
	files := envValue(world, "KUBECONFIG")
	switch {
	case f.kubeconfig != "" || files == "":
	case strings.ContainsRune(files, filepath.ListSeparator):
		fmt.Fprintln(world.Err, "warning: KUBECONFIG lists several files; ssh needs the same KUBECONFIG to reach the nodes")
	default:
		f.kubeconfig = files
	}
	return f
}

func firstName(nodes []cluster.Node) string {
	for _, n := range nodes {
		if name := hostName(n); len(n.Containers) > 0 && !realHost(name) {
			return name
		}
	}
	return "NODE"
}

// sshConfigText returns the entries of the nodes that have a container. Names come from the
// cluster: what is not the name of a host is left out, since a line of its own could run
// programs.
func sshConfigText(target targetFlags, kubeContext string, found cluster.Found, nodes []cluster.Node) (string, error) {
	lab := found.Name
	if !contract.HostName(lab) {
		lab = found.Namespace
	}
	taken := map[string]bool{}
	for _, n := range nodes {
		taken[n.Name] = true
	}
	var hosts []sshconfig.Host
	for _, n := range nodes {
		if len(n.Containers) == 0 {
			continue
		}
		var own []string
		for _, name := range []string{n.Name, strings.ToLower(n.Name), n.Deployment} {
			if name == n.Name || !taken[name] {
				own = append(own, name)
			}
		}
		names := localNames(own, lab)
		if len(names) == 0 {
			continue
		}
		proxy, err := proxyCommand(target, kubeContext, found.Namespace, n.Deployment, 22, "")
		if err != nil {
			return "", err
		}
		hosts = append(hosts, sshconfig.Host{Names: names, User: loginOf(n).Username, Proxy: proxy})
	}
	return sshconfig.Text("Nodes of lab "+lab+", written by c9s ssh-config.", hosts), nil
}

// sshConfigFile names the file of a lab: its cluster's context and its namespace.
func sshConfigFile(kubeContext, namespace string) string {
	return contract.Legal(kubeContext, '-') + "_" + namespace + ".conf"
}

func sshFolder() (string, error) {
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".ssh"), err
}

// removeSSHConfig undoes ssh-config --install of a lab, and reports whether there was one.
func removeSSHConfig(world IO, client *cluster.Client, found cluster.Found) (bool, error) {
	ssh, err := sshFolder()
	if err != nil {
		return false, err
	}
	file := sshConfigFile(client.Context, found.Namespace)
	removed, err := sshconfig.Remove(ssh, file)
	if removed {
		fmt.Fprintf(world.Err, "removed %s\n", filepath.Join(ssh, "c9s", file))
	}
	return removed, err
}

// envValue is a variable of the environment.
func envValue(world IO, name string) string {
	for _, e := range slices.Backward(world.Env) {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
