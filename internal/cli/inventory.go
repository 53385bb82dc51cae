//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/inventory"
)

type inventoryFlags struct {
	labRef
	output  string
	via     string
	secrets bool
	port    uint16
}

// Ways in which the tools that read an inventory reach the nodes.
const (
	viaSSH     = "ssh"
	viaName    = "name"
	viaService = "service"
	viaAddress = "address"
)

var (
	inventoryFormats = []string{"ansible", "nornir", "json", "csv", "prometheus-sd", "ssh"}
	inventoryWays    = []string{viaSSH, viaName, viaService, viaAddress}
)

func newInventory(world IO) *cobra.Command {
	f := &inventoryFlags{}
	cmd := &cobra.Command{
		Use:   "inventory [LAB|TOPO]",
		Short: "Print the nodes of a lab for Ansible, Nornir and other tools",
		Long: `Inventory prints the nodes of a lab in the format of another tool, with containerlab's
groups, labels and variables: kinds are groups, and the labels ansible-group and
nornir-group* add more. json is containerlab's topology-data.json. Passwords are printed
only with --with-secrets.

--via sets how the tool reaches the nodes: 'ssh' through a ProxyCommand of c9s, with no
other configuration (the default for ansible); 'name' by the names of nodes, for the
entries that ssh-config installs, or a proxy (the default for the others); 'service' by
the addresses of Services; 'address' by the management addresses, for a tool in the lab.`,
		Example: `  c9s inventory -o ansible > hosts.yml && ansible-playbook -i hosts.yml site.yml
  c9s inventory mylab -o nornir --with-secrets
  c9s inventory -o prometheus-sd --via service --port 9273
  c9s inventory -o json > topology-data.json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("via") && f.output == "ansible" {
				f.via = viaSSH
			}
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.output, "output", "o", "ansible", "format: "+strings.Join(inventoryFormats, ", "))
	fs.StringVar(&f.via, "via", viaName, "how nodes are reached: "+strings.Join(inventoryWays, ", "))
	fs.BoolVar(&f.secrets, "with-secrets", false, "print passwords")
	fs.Uint16Var(&f.port, "port", 0, "port of the targets of prometheus-sd")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(inventoryFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions(inventoryWays, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *inventoryFlags) run(ctx context.Context, world IO, args []string) error {
	if !slices.Contains(inventoryFormats, f.output) {
		return fmt.Errorf("--output %q: use one of %s", f.output, strings.Join(inventoryFormats, ", "))
	}
	if !slices.Contains(inventoryWays, f.via) {
		return fmt.Errorf("--via %q: use one of %s", f.via, strings.Join(inventoryWays, ", "))
	}
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	nodes, err := client.Nodes(ctx, found)
	if err != nil {
		return fail(err)
	}
	f.targetFlags = f.here(world)
	var out []byte
	if f.output == "ssh" {
		text, err := sshConfigText(f.targetFlags, client.Context, found, nodes)
		if err != nil {
			return fail(err)
		}
		out = []byte(text)
	} else if out, err = f.write(ctx, client, found, nodes); err != nil {
		return fail(err)
	}
	_, err = show.Document(world.Out).Write(out)
	return fail(err)
}

func (f *inventoryFlags) write(ctx context.Context, client *cluster.Client, found cluster.Found, nodes []cluster.Node) ([]byte, error) {
	l, err := f.read(ctx, client, found, nodes)
	if err != nil {
		return nil, err
	}
	switch f.output {
	case "nornir":
		return l.Nornir()
	case "json":
		return l.TopologyData()
	case "csv":
		return l.CSV()
	case "prometheus-sd":
		return l.Prometheus(f.port)
	}
	return l.Ansible()
}

// read reads what an inventory has from the cluster.
func (f *inventoryFlags) read(ctx context.Context, client *cluster.Client, found cluster.Found, nodes []cluster.Node) (*inventory.Lab, error) {
	directory, err := client.Directory(ctx, found)
	if err != nil {
		return nil, err
	}
	l := inventoryOf(found, nodes, directory)
	l.Secrets = f.secrets
	if l.Links, err = client.Topology(ctx, found); err != nil {
		return nil, err
	}
	exposed := map[string]string{}
	if f.via == viaService {
		lab, err := client.Status(ctx, found, false)
		if err != nil {
			return nil, err
		}
		for _, n := range lab.Nodes {
			exposed[n.Name] = n.Exposed
		}
	}
	deployments := map[string]string{}
	for _, n := range nodes {
		deployments[n.Name] = n.Deployment
	}
	var mgmt *contract.Mgmt
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if mgmt == nil && (n.IPv4.IsValid() || n.IPv6.IsValid()) { // the network is the same for all
			if mgmt, err = client.Management(ctx, found, deployments[n.Name]); err != nil {
				return nil, err
			}
			if mgmt != nil {
				l.IPv4, l.IPv6 = mgmt.IPv4.Masked(), mgmt.IPv6.Masked()
			}
		}
		if n.MgmtIntf = ""; n.IPv4.IsValid() || n.IPv6.IsValid() {
			n.MgmtIntf = "eth0"
		}
		if n.Host, n.Proxy, err = f.host(client, found, n, deployments[n.Name], exposed[n.Name]); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// host returns where a tool connects to.
func (f *inventoryFlags) host(client *cluster.Client, found cluster.Found, n *inventory.Node, deployment, exposed string) (host, proxy string, err error) {
	switch f.via {
	case viaSSH:
		proxy, err = proxyCommand(f.targetFlags, client.Context, found.Namespace, deployment, 22, "")
		return n.Name, proxy, err
	case viaService:
		if exposed == "" {
			return "", "", fmt.Errorf("node %s has no Service that others reach: expose it in the policy, or use --via ssh", n.Name)
		}
		return exposed, "", nil
	case viaAddress:
		for _, a := range []netip.Addr{n.IPv4, n.IPv6} {
			if a.IsValid() {
				return a.String(), "", nil
			}
		}
		return "", "", fmt.Errorf("node %s has no management address", n.Name)
	}
	return n.Name, "", nil
}

// inventoryOf joins what Deployments and the directory say of the nodes that have a container.
func inventoryOf(found cluster.Found, nodes []cluster.Node, directory contract.Directory) *inventory.Lab {
	l := &inventory.Lab{Name: found.Name, Namespace: found.Namespace}
	by := map[string]contract.DirectoryNode{}
	for _, d := range directory.Nodes {
		by[d.Name] = d
	}
	for _, n := range nodes {
		if len(n.Containers) == 0 || !contract.HostName(n.Name) {
			continue
		}
		d := by[n.Name]
		n.Kind = cmp.Or(d.Kind, n.Kind) // of a node that shares its Pod
		kind, login := kindOf(n), loginOf(n)
		out := inventory.Node{
			Name: n.Name, LongName: n.Name, Kind: kind.Name, Image: n.Image, Labels: n.Labels, IPv4: d.IPv4, IPv6: d.IPv6, MAC: d.MAC,
			Username: login.Username, Password: login.Password,
		}
		for _, name := range d.Names {
			switch {
			case name == n.Name+"."+found.Name+".io":
				out.FQDN = name
			case strings.HasSuffix(name, found.Name+"-"+n.Name):
				out.LongName = name
			}
		}
		l.Nodes = append(l.Nodes, out)
	}
	return l
}
