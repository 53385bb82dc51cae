//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// clab are the flags that all commands of containerlab have.
type clab struct {
	topo, name string
	vars       []string
	timeout    time.Duration
}

// clabHas names what the shim does.
const clabHas = "deploy, redeploy, apply, destroy, start, stop, restart, save, exec, inspect, inspect interfaces, events, graph, tools netem and version"

func newContainerlab(world IO) *cobra.Command {
	f := &clab{}
	unknown := func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return fail(fmt.Errorf("%s %s: c9s does not answer this in place of containerlab; it has %s", strings.TrimPrefix(cmd.CommandPath(), "c9s shim "), args[0], clabHas))
	}
	cmd := &cobra.Command{
		Use:     "containerlab COMMAND",
		Aliases: []string{"clab"},
		Short:   "Run containerlab's commands for labs in the cluster",
		Long: `Containerlab implements the calls that editors (the VS Code extension), CI and scripts make to
containerlab, with its flags and JSON output: deploy, redeploy, apply, destroy, start, stop,
restart, save, exec, inspect, events, graph, tools netem and version. container_id is an ID
that 'c9s shim docker' accepts, and states are docker's. --runtime has no effect. Calls
without a meaning in a cluster fail with the reason.`,
		Example: `  c9s shim containerlab deploy -t topo.clab.yml
  c9s shim containerlab inspect --all --details --format json
  c9s shim containerlab tools netem set -n clab-mylab-R1 -i eth1 --delay 10ms`,
		Args: cobra.ArbitraryArgs,
		RunE: unknown,
	}
	fs := cmd.PersistentFlags()
	fs.StringVarP(&f.topo, "topo", "t", "", "topology of the lab")
	fs.StringVar(&f.name, "name", "", "name of the lab")
	fs.StringSliceVar(&f.vars, "vars", nil, "variables files of the topology's template")
	fs.DurationVar(&f.timeout, "timeout", 0, "time limit")
	fs.StringP("runtime", "r", "", "ignored")
	fs.String("log-level", "", "ignored")
	fs.CountP("debug", "d", "ignored")
	tools := &cobra.Command{Use: "tools", Short: "Impair links, and report tools that are not supported", Example: "  containerlab tools netem show -n clab-mylab-R1", Args: cobra.ArbitraryArgs, RunE: unknown}
	tools.AddCommand(newNetem(world, f, "containerlab"), newClabShared(world, "sshx"), newClabShared(world, "gotty"))
	cmd.AddCommand(newClabDeploy(world, f, "deploy", "dep"), newClabDeploy(world, f, "apply"), newClabDeploy(world, f, "redeploy", "rdep"), newClabDestroy(world, f),
		newClabSave(world, f), newClabExec(world, f), newClabInspect(world, f), newClabEvents(world), newClabGraph(world, f), newClabVersion(world), tools)
	for verb, own := range map[string]func(IO) *cobra.Command{"start": newStart, "stop": newStop, "restart": newRestart} {
		cmd.AddCommand(newClabLifecycle(world, f, verb, own))
	}
	return cmd
}

// newTools returns containerlab's tools that c9s has too.
func newTools(world IO) *cobra.Command {
	f := &clab{}
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Run containerlab's tools netem",
		Long: `Tools has the commands of containerlab's tools that have a meaning in a cluster, with its flags
and its JSON: netem set, show and reset. 'c9s link' does the same and more.`,
		Example: `  c9s tools netem set -n R1 -i eth1 --delay 10ms --jitter 1ms
  c9s tools netem show -n R1 --format json
  c9s tools netem reset -n R1 -i eth1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	fs := cmd.PersistentFlags()
	fs.StringVarP(&f.topo, "topo", "t", "", "topology of the lab")
	fs.StringVar(&f.name, "name", "", "name of the lab")
	cmd.AddCommand(newNetem(world, f, "c9s"))
	return cmd
}

// ref returns the lab as c9s' commands take it.
func (f *clab) ref() nodeRef { return nodeRef{lab: f.name, topo: f.topo} }

// arguments returns the lab as flags of c9s' commands.
func (f *clab) arguments() []string {
	var args []string
	switch {
	case f.topo != "":
		args = append(args, "--topo", f.topo)
	case f.name != "":
		args = append(args, f.name)
	}
	for _, v := range f.vars {
		args = append(args, "--vars", v)
	}
	if f.timeout > 0 {
		args = append(args, "--timeout", f.timeout.String())
	}
	return args
}

// noFilter rejects --node-filter where c9s does the whole lab.
func noFilter(verb string, filter []string) error {
	if len(filter) > 0 {
		return fail(fmt.Errorf("--node-filter: c9s can only %s whole labs; use 'c9s stop NODE' for nodes that are not needed", verb))
	}
	return nil
}

// valid reports what is wrong with the topology, before the lab that is to be replaced is deleted.
func (f *clab) valid(ctx context.Context, world IO) error {
	var out bytes.Buffer
	check := *f
	check.timeout = 0 // validate has none
	quiet := world
	quiet.Out, quiet.Err = &out, &out
	err := runCommand(ctx, newValidate(quiet), check.arguments()...)
	if err != nil {
		_, _ = out.WriteTo(world.Err)
	}
	return err
}

func newClabDeploy(world IO, f *clab, verb string, aliases ...string) *cobra.Command {
	var again, cleanup bool
	var filter []string
	var format string
	cmd := &cobra.Command{
		Use: verb, Aliases: aliases, Short: strings.ToUpper(verb[:1]) + verb[1:] + " a lab", Example: "  containerlab " + verb + " -t topo.clab.yml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := noFilter("deploy", filter); err != nil {
				return err
			}
			if f.topo != "" && f.name != "" {
				return fail(errors.New("--name: c9s takes the lab's name from the topology; change it there, or omit the flag"))
			}
			if f.name != "" {
				return fail(fmt.Errorf("--name: c9s needs the topology to %s a lab: name it with --topo", verb))
			}
			ctx := cmd.Context()
			if again || verb == "redeploy" {
				if err := f.valid(ctx, world); err != nil {
					return err
				}
				args := append(f.arguments(), "--yes")
				if verb == "redeploy" && !cleanup {
					args = append(args, "--keep-data")
				}
				// A lab that is not there yet is deployed for the first time.
				if err := runCommand(ctx, newDestroy(world), args...); err != nil && !errors.Is(err, cluster.ErrNoLab) {
					return err
				}
			}
			if err := runCommand(ctx, newDeploy(world), append(f.arguments(), "--yes")...); err != nil {
				return err
			}
			return (&clabInspect{clab: f, format: format}).run(ctx, world)
		},
	}
	fs := cmd.Flags()
	if verb == "redeploy" {
		fs.BoolVarP(&cleanup, "cleanup", "c", false, "delete the data of the nodes")
		ignoreFlags(cmd, []string{"graceful", "keep-mgmt-net"})
	} else {
		fs.BoolVarP(&again, "reconfigure", "c", false, "destroy the lab with its data first")
	}
	fs.StringSliceVar(&filter, "node-filter", nil, "rejected: c9s deploys whole labs")
	fs.StringVarP(&format, "format", "f", "table", "table or json")
	ignoreFlags(cmd, []string{"skip-post-deploy", "skip-labdir-acl", "graph"}, "max-workers", "export-template", "owner")
	return cmd
}

func newClabDestroy(world IO, f *clab) *cobra.Command {
	var cleanup, all, yes, graceful bool
	var filter []string
	cmd := &cobra.Command{
		Use: "destroy", Aliases: []string{"des"}, Short: "Destroy a lab", Example: "  containerlab destroy -t topo.clab.yml --cleanup",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := noFilter("destroy", filter); err != nil {
				return err
			}
			flags := []string{"--yes"}
			if !cleanup {
				flags = append(flags, "--keep-data")
			}
			if graceful {
				flags = append(flags, "--graceful")
			}
			if !all {
				return runCommand(cmd.Context(), newDestroy(world), append(f.arguments(), flags...)...)
			}
			if !yes {
				return fail(errors.New("destroy --all destroys the labs of everybody in the cluster that you may change: add --yes"))
			}
			return eachLab(cmd.Context(), world, func(l cluster.Found) error {
				return runCommand(cmd.Context(), newDestroy(world), append([]string{l.Name, "-n", l.Namespace}, flags...)...)
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVarP(&cleanup, "cleanup", "c", false, "delete the data of the nodes")
	fs.BoolVarP(&all, "all", "a", false, "destroy all labs")
	fs.BoolVarP(&yes, "yes", "y", false, "do not ask")
	fs.BoolVar(&graceful, "graceful", false, "give devices time to stop")
	fs.StringSliceVar(&filter, "node-filter", nil, "rejected: c9s destroys whole labs")
	ignoreFlags(cmd, []string{"keep-mgmt-net"}, "max-workers")
	return cmd
}

// eachLab does something for all labs that run.
func eachLab(ctx context.Context, world IO, do func(cluster.Found) error) error {
	client, err := (&targetFlags{}).connect(ctx, world)
	if err != nil {
		return err
	}
	labs, err := client.Labs(ctx, "")
	if err != nil {
		return fail(err)
	}
	var failed []error
	for _, l := range labs {
		if !l.DataOnly {
			failed = append(failed, do(l))
		}
	}
	return errors.Join(failed...)
}

// newClabLifecycle is start, stop or restart, of all nodes if none is named.
func newClabLifecycle(world IO, f *clab, verb string, own func(IO) *cobra.Command) *cobra.Command {
	var nodes, filter []string
	cmd := &cobra.Command{
		Use: verb, Short: strings.ToUpper(verb[:1]) + verb[1:] + " nodes", Example: "  containerlab " + verb + " -t topo.clab.yml --node R1,R2",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ref := f.ref()
			_, found, all, err := ref.find(cmd.Context(), world)
			if err != nil {
				return err
			}
			names, err := shortNames(all, found.Name, append(nodes, filter...))
			if err != nil {
				return fail(err)
			}
			args := append(names, "--lab", found.Name, "-n", found.Namespace)
			if f.timeout > 0 {
				args = append(args, "--timeout", f.timeout.String())
			}
			return runCommand(cmd.Context(), own(world), args...)
		},
	}
	cmd.Flags().StringSliceVar(&nodes, "node", nil, "nodes, separated by commas (default: all)")
	cmd.Flags().StringSliceVar(&filter, "node-filter", nil, "the same")
	return cmd
}

// shortNames are the nodes of names as containerlab writes them, short or long; all nodes for no
// names.
func shortNames(nodes []cluster.Node, lab string, names []string) ([]string, error) {
	var out []string
	if len(names) == 0 {
		for _, n := range nodes {
			out = append(out, n.Name)
		}
		return out, nil
	}
	for _, name := range names {
		chosen, err := cluster.Select(nodes, []string{name})
		if err != nil {
			short, long := strings.CutPrefix(name, "clab-"+lab+"-")
			if !long {
				return nil, err
			}
			if chosen, err = cluster.Select(nodes, []string{short}); err != nil {
				return nil, err
			}
		}
		out = append(out, chosen[0].Name)
	}
	return out, nil
}

func newClabSave(world IO, f *clab) *cobra.Command {
	var filter []string
	var dir string
	cmd := &cobra.Command{
		Use: "save", Short: "Save the configurations of nodes", Example: "  containerlab save -t topo.clab.yml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := slices.Clone(filter)
			if f.topo != "" {
				args = append(args, "--topo", f.topo)
			} else if f.name != "" {
				args = append(args, "--lab", f.name)
			}
			if dir != "" {
				args = append(args, "--dir", dir)
			}
			return runCommand(cmd.Context(), newSave(world), args...)
		},
	}
	cmd.Flags().StringSliceVar(&filter, "node-filter", nil, "nodes, separated by commas")
	cmd.Flags().StringVar(&dir, "copy", "", "folder of the copies")
	return cmd
}

func newClabEvents(world IO) *cobra.Command {
	e := &eventsFlags{all: true}
	cmd := &cobra.Command{
		Use: "events", Short: "Print changes of the nodes of all labs as they happen", Example: "  containerlab events --format json --initial-state",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context(), world, nil) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&e.output, "format", "f", "plain", "plain or json")
	fs.BoolVarP(&e.initial, "initial-state", "i", false, "first print what is there")
	fs.BoolVarP(&e.stats, "interface-stats", "s", false, "also print counters")
	fs.DurationVar(&e.interval, "interface-stats-interval", time.Second, "time between two prints of the counters")
	return cmd
}

func newClabGraph(world IO, f *clab) *cobra.Command {
	var drawio, mermaid, dot bool
	cmd := &cobra.Command{
		Use: "graph", Short: "Draw a topology", Example: "  containerlab graph --mermaid -t topo.clab.yml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			output := ""
			switch {
			case drawio:
				output = "drawio"
			case mermaid:
				output = "mermaid"
			case dot:
				output = "dot"
			default:
				return fail(errors.New("graph without --drawio, --mermaid or --dot is a web server: use 'c9s graph -o html' for a page"))
			}
			return runCommand(cmd.Context(), newGraph(world), append(f.arguments(), "-o", output)...)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&drawio, "drawio", false, "as a drawio file on standard output")
	fs.BoolVar(&mermaid, "mermaid", false, "as Mermaid text")
	fs.BoolVar(&dot, "dot", false, "as Graphviz text")
	ignoreFlags(cmd, []string{"offline"}, "mermaid-direction", "drawio-args", "drawio-version", "srv", "template", "static-dir")
	return cmd
}

// newClabShared is tools sshx or gotty, of which there is none.
func newClabShared(world IO, name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: "Report that the tool is not supported", Example: "  containerlab tools " + name + " list -f json", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			return fail(fmt.Errorf("tools %s: not in a cluster; use 'c9s ssh', 'c9s console' or 'c9s proxy'", name))
		}}
	var format string
	list := &cobra.Command{Use: "list", Short: "Print an empty list", Example: cmd.Example, Args: cobra.NoArgs, RunE: func(_ *cobra.Command, _ []string) error {
		if format == "json" {
			return printJSON(world.Out, []string{})
		}
		_, err := fmt.Fprintf(world.Out, "no %s containers\n", name)
		return err
	}}
	list.Flags().StringVarP(&format, "format", "f", "table", "table or json")
	cmd.AddCommand(list)
	return cmd
}

func newClabVersion(world IO) *cobra.Command {
	var short, asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the release of containerlab that c9s implements", Example: "  containerlab version --short",
		Args: cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			switch {
			case asJSON:
				return printJSON(world.Out, map[string]string{"version": kinds.ContainerlabVersion, "commit": "none", "date": "", "github": "", "c9s": Version})
			case short:
				_, err := fmt.Fprintln(world.Out, kinds.ContainerlabVersion)
				return err
			}
			_, err := fmt.Fprintf(world.Out, "    version: %s\n        c9s: %s\n", kinds.ContainerlabVersion, Version)
			return err
		},
	}
	cmd.Flags().BoolVarP(&short, "short", "s", false, "print only the version")
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print as JSON")
	check := &cobra.Command{Use: "check", Short: "Report that c9s does not check for new releases", Example: "  containerlab version check", Args: cobra.NoArgs, RunE: func(_ *cobra.Command, _ []string) error {
		_, err := fmt.Fprintf(world.Out, "You are on the latest version (%s) that c9s %s answers for\n", kinds.ContainerlabVersion, Version)
		return err
	}}
	cmd.AddCommand(check)
	return cmd
}
