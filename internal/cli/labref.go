//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/pipeline"
)

// labRef identifies a lab in the cluster: by its name or its topology file. The default is
// the topology in the working directory, or else the only lab.
type labRef struct {
	topoFlags
	targetFlags
	namespace string
	// data reports whether a lab will do of which only its data is left.
	data bool
}

func (f *labRef) add(cmd *cobra.Command) {
	f.targetFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.topo, "topo", "t", "", "topology of the lab")
	fs.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the lab (default: find it)")
	fs.StringSliceVar(&f.vars, "vars", nil, "variables files of the topology's template")
	f.addTrust(cmd)
	_ = cmd.MarkFlagFilename("topo", "yml", "yaml")
}

// isTopology reports whether an argument is a topology and not the name of a lab.
func isTopology(arg string) bool {
	if strings.ContainsAny(arg, "/:") || arg == "-" || arg == "." || strings.HasSuffix(arg, ".yml") || strings.HasSuffix(arg, ".yaml") {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && !info.IsDir()
}

// place returns the topology or the name that the command line gives the lab, either may be
// "".
func (f *labRef) place(args []string) (topo, name string) {
	switch {
	case len(args) == 0:
		return f.topo, ""
	case isTopology(args[0]):
		return args[0], ""
	}
	return f.topo, args[0]
}

// find connects and finds the lab.
func (f *labRef) find(ctx context.Context, world IO, args []string) (*cluster.Client, cluster.Found, error) {
	none := cluster.Found{}
	name := ""
	ref := f.topo
	if len(args) > 0 {
		if err := notEmpty(args); err != nil {
			return nil, none, err
		}
		if f.topo != "" {
			return nil, none, fmt.Errorf("the lab is given twice: %q and --topo %q", args[0], f.topo)
		}
		if isTopology(args[0]) {
			ref = args[0]
		} else {
			name = args[0]
		}
	}
	if name == "" && ref == "" && topologyHere() {
		ref = "."
	}
	if ref != "" {
		c, err := f.compile(ctx, world, ref, pipeline.Input{Namespace: f.namespace})
		if err != nil {
			return nil, none, err
		}
		defer c.Close()
		if c.Lab == nil { // what is wrong with it matters only if its name cannot be had
			report(world, c.Diags)
			return nil, none, errFailed
		}
		name = c.Lab.Name
	}
	client, err := f.connect(ctx, world)
	if err != nil {
		return nil, none, err
	}
	labs, err := client.Labs(ctx, f.namespace)
	if err != nil {
		return nil, none, fail(err)
	}
	found, err := cluster.Choose(labs, name, f.namespace, ref != "")
	if err == nil && found.DataOnly && !f.data {
		err = fmt.Errorf("only the data of lab %s is left, in namespace %s (destroy --keep-data): deploy it again, or delete the data with 'c9s destroy %[1]s -n %[2]s'", found.Name, found.Namespace)
	}
	return client, found, fail(err)
}

// topologyHere reports whether the working directory has exactly one topology.
func topologyHere() bool {
	var n int
	for _, pattern := range []string{"*.clab.yml", "*.clab.yaml"} {
		files, _ := filepath.Glob(pattern)
		n += len(files)
	}
	return n == 1
}
