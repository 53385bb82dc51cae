//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

type interfacesFlags struct {
	nodeRef
	output string
}

func newInspectInterfaces(world IO) *cobra.Command {
	f := &interfacesFlags{}
	cmd := &cobra.Command{
		Use:   "interfaces [NODE...]",
		Short: "Print the interfaces of nodes",
		Long: `Interfaces prints the interfaces of nodes as the kernel reports them: name, alias, MAC
address, MTU, state, peer and counters. With -o json, the output has containerlab's keys,
followed by c9s' own.`,
		Example: "  c9s inspect interfaces\n  c9s inspect interfaces R1\n  c9s inspect interfaces R1 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" && f.output != "table" {
				return fmt.Errorf("--output %q: use table or json", f.output)
			}
			return f.run(cmd.Context(), world, args)
		},
	}
	f.add(cmd, world, "t")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "table or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// nodeInterfaces are the interfaces of a node, with containerlab's keys.
type nodeInterfaces struct {
	Name       string          `json:"name"`
	Interfaces []nodeInterface `json:"interfaces"`
}

// nodeInterface is one interface. The keys are containerlab's, and after them c9s' own.
type nodeInterface struct {
	Name  string `json:"name"`
	Alias string `json:"alias"`
	MAC   string `json:"mac"`
	Index int    `json:"ifindex"`
	MTU   int    `json:"mtu"`
	Type  string `json:"type"`
	State string `json:"state"`

	Peer     string                     `json:"peer,omitempty"`
	Counters contract.InterfaceCounters `json:"counters"`
}

func (f *interfacesFlags) run(ctx context.Context, world IO, names []string) error {
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		if nodes, err = cluster.Select(nodes, names); err != nil {
			return fail(err)
		}
		for _, n := range nodes {
			if err := notStopped(n); err != nil {
				return fail(err)
			}
		}
	} else {
		nodes = slices.DeleteFunc(nodes, func(n cluster.Node) bool { return n.Stopped })
	}
	rows, failed := interfacesOf(ctx, client, found, nodes)
	if failed != nil && len(rows) == 0 {
		return fail(failed)
	}
	if f.output == "json" {
		err = printJSON(world.Out, rows)
	} else {
		err = printInterfaces(world, rows)
	}
	return fail(errors.Join(err, failed))
}

// interfacesOf asks the Pods of nodes. The error names the Pods that do not answer.
func interfacesOf(ctx context.Context, client *cluster.Client, found cluster.Found, nodes []cluster.Node) ([]nodeInterfaces, error) {
	pods := deployments(nodes)
	facts := make([][]contract.InterfaceFacts, len(pods))
	links := make([]*contract.Links, len(pods))
	errs := make([]error, len(pods))
	bounded.Each(len(pods), execAtOnce, func(i int) {
		if links[i], errs[i] = client.Links(ctx, found, pods[i]); errs[i] == nil {
			facts[i], errs[i] = client.Interfaces(ctx, found.Namespace, pods[i])
		}
	})
	out := []nodeInterfaces{}
	for _, n := range nodes {
		if i, _ := slices.BinarySearch(pods, n.Deployment); errs[i] == nil {
			out = append(out, describeInterfaces(n, links[i], facts[i]))
		}
	}
	return out, errors.Join(errs...)
}

// describeInterfaces returns the interfaces of a node among those of its Pod. Nodes that share a
// Pod have the same ones, but for bridges: those have only their ports.
func describeInterfaces(n cluster.Node, links *contract.Links, facts []contract.InterfaceFacts) nodeInterfaces {
	out := nodeInterfaces{Name: n.Name, Interfaces: []nodeInterface{}}
	bridge := len(n.Containers) == 0
	for _, f := range facts {
		in := declared(links, f)
		switch {
		case f.Node != "" && f.Node != n.Name, bridge && (in == nil || in.Node != n.Name):
			continue
		}
		row := nodeInterface{Name: f.Name, Alias: f.Alias, MAC: f.MAC, Index: f.Index, MTU: f.MTU, Type: f.Type, State: f.State, Counters: f.Counters}
		if in != nil {
			row.Alias, row.Peer = cmp.Or(row.Alias, in.Alias), peerOf(in)
		}
		out.Interfaces = append(out.Interfaces, row)
	}
	slices.SortStableFunc(out.Interfaces, func(a, b nodeInterface) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// declared finds what the lab has of an interface, nil for one that is not the lab's.
func declared(links *contract.Links, f contract.InterfaceFacts) *contract.Interface {
	for i := range links.Interfaces {
		if in := &links.Interfaces[i]; in.Name == f.Name && (f.Node == "" || f.Node == in.Node) {
			return in
		}
	}
	return nil
}

// peerOf is where a link leads to.
func peerOf(in *contract.Interface) string {
	switch {
	case in.Wire != nil:
		return in.Wire.PeerNode + ":" + in.Wire.PeerInterface
	case in.Local != nil:
		return in.Local.PeerNode + ":" + in.Local.PeerInterface
	case in.Host != nil:
		return "host:" + in.Host.Interface
	case in.Macvlan != nil:
		return "macvlan:" + in.Macvlan.Parent
	case in.VXLAN != nil:
		return "vxlan:" + in.VXLAN.Remote
	case in.MgmtNet != nil:
		return "mgmt-net:" + in.MgmtNet.HostInterface
	}
	return ""
}

func printInterfaces(world IO, list []nodeInterfaces) error {
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("NODE", "INTERFACE", "ALIAS", "MAC", "MTU", "STATE", "PEER", "RX", "TX", "RX-PACKETS", "TX-PACKETS", "ERRORS", "DROPS")
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	for _, n := range list {
		for _, i := range n.Interfaces {
			c := i.Counters
			t.Row(n.Name, i.Name, dash(i.Alias), dash(i.MAC), strconv.Itoa(i.MTU), strings.ToLower(i.State), dash(i.Peer), size(c.RxBytes), size(c.TxBytes),
				number(c.RxPackets), number(c.TxPackets), number(c.RxErrors+c.TxErrors), number(c.RxDropped+c.TxDropped))
		}
	}
	return t.Flush()
}
