//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
)

// nearlyFull is how full a pool is, in percent, when pools warns of it.
const nearlyFull = 90

type poolsFlags struct {
	labRef
	live         bool
	free, output string
}

func newPools(world IO) *cobra.Command {
	f := &poolsFlags{}
	cmd := &cobra.Command{
		Use:   "pools [TOPO|LAB]",
		Short: "List the pools of addresses and numbers, and who has what of them",
		Long: `Pools lists the pools from which a lab gets its addresses, ids and numbers: how many values
each can give (SIZE), how many are allocated (USED), and how many are kept for nodes or links
that were removed (KEPT). For a topology, it lists what a first render allocates; with --live,
it starts from the values of the running lab. For the name of a lab, it lists the running lab,
whose pools have no known size.

--free releases the values that the running lab keeps for an owner that was removed.`,
		Example: `  c9s pools topo.clab.yml
  c9s pools topo.clab.yml --live -o wide
  c9s pools mylab -o json
  c9s pools mylab --free r7`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), world, args) },
	}
	f.labRef.add(cmd)
	f.addFabric(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.live, "live", false, "start from the values of the running lab")
	fs.StringVar(&f.free, "free", "", "release the values that are kept for this owner")
	fs.StringVarP(&f.output, "output", "o", "", "wide (each owner), json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"wide", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *poolsFlags) run(ctx context.Context, world IO, args []string) error {
	if !slices.Contains([]string{"", "wide", "json", "yaml"}, f.output) {
		return fmt.Errorf("--output %q: use wide, json or yaml", f.output)
	}
	if err := notEmpty(args); err != nil {
		return err
	}
	topo, name := f.place(args)
	if topo == "" && name == "" && topologyHere() {
		topo = "."
	}
	if f.free != "" {
		return f.release(ctx, world, args)
	}
	allocations, sizes := &lab.Allocations{}, map[string]uint64{}
	if f.live || topo == "" {
		client, found, err := f.find(ctx, world, args)
		if err != nil {
			return err
		}
		a, err := client.Allocations(ctx, found.Namespace)
		if err != nil {
			return fail(err)
		}
		if a != nil {
			allocations = a
		}
	}
	if topo != "" {
		c, err := f.compile(ctx, world, topo, pipeline.Input{Namespace: f.namespace, Previous: allocations})
		if err != nil {
			return err
		}
		defer c.Close()
		report(world, c.Diags)
		if c.Lab == nil || hasErrors(c.Diags) {
			return errFailed
		}
		allocations, sizes = &c.Lab.Allocations, c.Lab.PoolSizes
	}
	pools := poolsOf(allocations, sizes)
	for _, p := range pools {
		if p.percent() >= nearlyFull {
			fmt.Fprintf(world.Err, "warning: pool %s is %d %% full: %d of %d values are allocated\n", show.Cell(p.Name), p.percent(), p.Used, p.Size)
		}
	}
	return fail(printPools(world.Out, pools, f.output))
}

// release frees what the running lab keeps for an owner.
func (f *poolsFlags) release(ctx context.Context, world IO, args []string) error {
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	freed, err := client.FreeKept(ctx, found, f.free)
	if err != nil {
		return fail(err)
	}
	if freed == 0 {
		return fail(fmt.Errorf("lab %s keeps no value for %s; 'c9s pools %[1]s -o wide' lists what it keeps", found.Name, f.free))
	}
	fmt.Fprintf(world.Err, "%s released\n", diag.Count(freed, "value"))
	return nil
}

// pool is one pool of a lab.
type pool struct {
	Name string `json:"name"`
	// Size is 0 if it is not known.
	Size uint64 `json:"size,omitempty"`
	Used int    `json:"used"`
	Kept int    `json:"kept"`
	// Owners have the allocated values, and Removed those that are kept.
	Owners  map[string]string `json:"owners"`
	Removed map[string]string `json:"removed,omitempty"`
}

// percent is how much of the pool is allocated, rounded down; 0 if its size is not known.
func (p pool) percent() int {
	if p.Size == 0 {
		return 0
	}
	return int(uint64(p.Used) * 100 / p.Size)
}

func poolsOf(a *lab.Allocations, sizes map[string]uint64) []pool {
	names := map[string]bool{}
	for _, from := range []map[string]map[string]string{a.Pools, a.Released} {
		for name := range from {
			names[name] = true
		}
	}
	for name := range sizes {
		names[name] = true
	}
	out := make([]pool, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p := pool{Name: name, Size: sizes[name], Owners: a.Pools[name], Removed: a.Released[name]}
		p.Used, p.Kept = len(p.Owners), len(p.Removed)
		out = append(out, p)
	}
	return out
}

func printPools(w io.Writer, pools []pool, output string) error {
	switch output {
	case "json":
		return printJSON(w, pools)
	case "yaml":
		return printYAML(w, pools)
	}
	t := show.NewTable(tabwriter.NewWriter(w, 0, 0, 2, ' ', 0))
	if output == "wide" {
		t.Row("POOL", "OWNER", "VALUE", "STATE")
		for _, p := range pools {
			for _, owner := range slices.Sorted(maps.Keys(p.Owners)) {
				t.Row(p.Name, owner, p.Owners[owner], "used")
			}
			for _, owner := range slices.Sorted(maps.Keys(p.Removed)) {
				t.Row(p.Name, owner, p.Removed[owner], "kept")
			}
		}
		return t.Flush()
	}
	t.Row("POOL", "SIZE", "USED", "KEPT", "FULL")
	for _, p := range pools {
		size, full := "-", "-"
		if p.Size > 0 {
			size, full = fmt.Sprint(p.Size), fmt.Sprintf("%d %%", p.percent())
		}
		t.Row(p.Name, size, fmt.Sprint(p.Used), fmt.Sprint(p.Kept), full)
	}
	return t.Flush()
}
