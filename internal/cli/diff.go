//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
)

type diffFlags struct {
	labFlags
	targetFlags
	objects  bool
	config   bool
	declared bool
	output   string
	exitCode bool
}

func newDiff(world IO) *cobra.Command {
	f := &diffFlags{}
	cmd := &cobra.Command{
		Use:   "diff [TOPO] | --config [NODE...]",
		Short: "Show what a deploy would change in a running lab",
		Long: `Diff prints what 'c9s deploy' of this topology would do to each node: nothing, live
(links or Services change; the device keeps running), restart, recreate, start, create or
delete. It lists every object that deploy would delete. It changes nothing. --objects adds
the difference of each object.

With --config, diff compares the running configurations of nodes with the saved ones, or with
those of the topology where none is saved or with --declared. It leaves out what differs
between two outputs of the same configuration, such as time stamps and salts.`,
		Example: `  c9s diff topo.clab.yml
  c9s diff topo.clab.yml --objects
  c9s diff --config R1 R2
  c9s diff --config --declared`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.config {
				return nil
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
			if f.config {
				return (&nodeRef{targetFlags: f.targetFlags, topo: f.topo, namespace: f.namespace}).complete(world)(cmd, args, text)
			}
			return completeTopo(cmd, args, text)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.config:
				return f.configs(cmd.Context(), world, args)
			case f.declared:
				return errors.New("--declared needs --config")
			}
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labFlags.add(cmd)
	f.targetFlags.add(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.objects, "objects", false, "also print the difference of each object")
	fs.BoolVar(&f.config, "config", false, "compare the configurations of nodes, not the objects")
	fs.BoolVar(&f.declared, "declared", false, "with --config: compare with the topology's configurations, not the saved ones")
	fs.StringVarP(&f.output, "output", "o", "", "output format: json")
	fs.BoolVar(&f.exitCode, "exit-code", false, "exit with 1 if anything would change")
	return cmd
}

func (f *diffFlags) run(ctx context.Context, world IO, args []string) error {
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("--output %q: use json", f.output)
	}
	in, err := f.prepareLab(ctx, world, &f.targetFlags, args, nil)
	if err != nil {
		return err
	}
	d, err := in.client.Diff(ctx, in.lab)
	if err != nil {
		return fail(err)
	}
	if f.output == "json" {
		err = printJSON(world.Out, struct {
			Lab   string             `json:"lab"`
			Nodes []cluster.NodeDiff `json:"nodes"`
			// Prune are the objects that go, Foreign those that stay although the lab does
			// not have them.
			Prune   []cluster.Prune   `json:"prune,omitempty"`
			Foreign []cluster.Foreign `json:"foreign,omitempty"`
		}{in.lab.Name, d.Nodes, d.Prune, d.Foreign})
	} else {
		err = f.print(world, d)
	}
	if err != nil {
		return fail(err)
	}
	if f.exitCode && len(d.Objects) > 0 {
		return errFailed
	}
	return nil
}

func (f *diffFlags) print(world IO, d cluster.Diff) error {
	t := show.NewTable(printers.GetNewTabWriter(world.Out))
	t.Row("NODE", "ACTION", "WHY")
	for _, n := range d.Nodes {
		t.Row(strings.Join(n.Nodes, ","), string(n.Action), strings.Join(n.Why, ", "))
	}
	if d.Lab {
		t.Row("(lab)", "live", "update: names, allocations, controller or keys; no node is affected")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printPrune(world, d)
	if !f.objects {
		return nil
	}
	for _, o := range d.Objects {
		if strings.HasPrefix(o.Object, "Secret/") {
			fmt.Fprintf(world.Out, "\n%s changes (not shown)\n", o.Object)
			continue
		}
		text, err := objectDiff(o)
		if err != nil {
			return err
		}
		fmt.Fprintf(world.Out, "\n%s", text)
	}
	return nil
}

// printPrune lists every object that the lab no longer has.
func printPrune(world IO, d cluster.Diff) {
	if len(d.Prune)+len(d.Foreign) > 0 {
		fmt.Fprintln(world.Out)
	}
	for _, p := range d.Prune {
		note := ""
		if p.Data {
			note = " (saved data: only with --delete-data, or if you confirm)"
		}
		fmt.Fprintf(world.Out, "delete %s%s\n", show.Cell(p.Object), note)
	}
	for _, o := range d.Foreign {
		fmt.Fprintf(world.Out, "keep %s (applied by %s, not by c9s deploy)\n", show.Cell(o.Object), show.Cell(strings.Join(o.Managers, ", ")))
	}
}

func objectDiff(o cluster.ObjectDiff) (string, error) {
	lines := func(m map[string]any) ([]string, error) {
		if m == nil {
			return nil, nil
		}
		data, err := yaml.Marshal(m)
		return difflib.SplitLines(string(data)), err
	}
	before, err := lines(o.Live)
	if err != nil {
		return "", err
	}
	after, err := lines(o.Merged)
	if err != nil {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: before, B: after, FromFile: "live/" + o.Object, ToFile: "deploy/" + o.Object, Context: 3,
	})
}
