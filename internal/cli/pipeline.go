package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// topoFlags are the flags of every command that reads a topology.
type topoFlags struct {
	topo         string
	vars         []string
	kindsDir     string
	policy       string
	fabric       string
	mapFiles     []string
	allowMissing bool
	planner      string
	plannerPath  string
	verbose      bool
	trust        bool
	env          []string
	saved        bool
	adopt        bool
}

func (f *topoFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.topo, "topo", "t", "", "topology: a file, a folder, a URL, a Git repository, or - for standard input")
	fs.StringSliceVar(&f.vars, "vars", nil, "variables files of the topology's template (default: <topology>_vars.*)")
	fs.StringVar(&f.kindsDir, "kinds", "", "folder with your own kinds")
	fs.StringVar(&f.policy, "policy", "", "policy file (default: c9s.yaml next to the topology, if it exists)")
	fs.StringArrayVar(&f.mapFiles, "map-file", nil, "FROM=TO: read the file TO instead of FROM (repeatable)")
	fs.BoolVar(&f.allowMissing, "allow-missing", false, "use placeholders for missing files and images")
	f.addFabric(cmd)
	f.addTrust(cmd)
	_ = cmd.MarkFlagFilename("topo", "yml", "yaml")
	_ = cmd.MarkFlagFilename("policy", "yml", "yaml")
	_ = cmd.MarkFlagDirname("kinds")
}

// addFabric adds the flag of the fabric file.
func (f *topoFlags) addFabric(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.fabric, "fabric", "", "fabric file (default: fabric.yaml next to the topology, if it exists)")
	_ = cmd.MarkFlagFilename("fabric", "yml", "yaml")
}

// addTrust adds the flags that say what a fetched topology gets of this machine.
func (f *topoFlags) addTrust(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.trust, "trust", false, "allow a fetched topology to read your files, environment and network, like one on disk")
	fs.StringArrayVar(&f.env, "env", nil, "NAME: allow a fetched topology to read this environment variable (repeatable)")
}

func (f *topoFlags) addPlanner(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.planner, "planner", "auto", "planner: auto, hooks (containerlab's own) or builtin")
	cmd.Flags().StringVar(&f.plannerPath, "planner-path", "", "planner program for hooks (default: c9s-planner next to c9s or in PATH)")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "report which planner plans the nodes, and why")
	_ = cmd.RegisterFlagCompletionFunc("planner", cobra.FixedCompletions([]string{"auto", "hooks", "builtin"}, cobra.ShellCompDirectiveNoFileComp))
}

// ref is the topology from the argument or the flag.
func (f *topoFlags) ref(args []string) (string, error) {
	if len(args) > 0 && f.topo != "" {
		return "", fmt.Errorf("the topology is given twice: %q and --topo %q", args[0], f.topo)
	}
	if len(args) > 0 {
		return args[0], notEmpty(args)
	}
	return f.topo, nil
}

// notEmpty rejects an empty argument, for example from an unset variable, which would select
// the topology in the working directory.
func notEmpty(args []string) error {
	if slices.Contains(args, "") {
		return errors.New("the argument is empty: name a topology, or omit it to use the one in this folder")
	}
	return nil
}

// compile reads and compiles a topology. o holds the settings of the command.
func (f *topoFlags) compile(ctx context.Context, world IO, ref string, o pipeline.Input) (*pipeline.Compiled, error) {
	in, err := f.input(world, ref, o)
	if err != nil {
		return nil, err
	}
	c, err := pipeline.Compile(ctx, in)
	return c, fail(err)
}

// input adds what the flags say to the settings of a command.
func (f *topoFlags) input(world IO, ref string, o pipeline.Input) (pipeline.Input, error) {
	mapFiles, err := parsePairs("map-file", f.mapFiles)
	o.Ref, o.Stdin, o.Env, o.PassEnv, o.Trust = ref, world.In, world.Env, f.env, f.trust
	o.VarsFiles, o.KindsDir, o.Policy, o.Fabric, o.MapFiles, o.AllowMissing = f.vars, f.kindsDir, f.policy, f.fabric, mapFiles, f.allowMissing
	o.Saved, o.Adopt = f.saved, f.adopt
	return o, err
}

// choosePlanner returns the planner that the flags select.
func (f *topoFlags) choosePlanner(cat *kinds.Catalogue) (pipeline.ChosenPlanner, error) {
	if !slices.Contains([]string{"auto", "hooks", "builtin"}, f.planner) {
		return pipeline.ChosenPlanner{}, fmt.Errorf("--planner %q: use auto, hooks or builtin", f.planner)
	}
	p, err := pipeline.ChoosePlanner(f.planner, f.plannerPath, cat)
	return p, fail(err)
}

// plan plans the nodes of a compiled topology by the planner that the flags ask for, all
// of them for a nil filter. Where compile found errors, the catalogue plans: its faults
// are worth telling too, and nothing is started for a lab that cannot be rendered.
func (f *topoFlags) plan(ctx context.Context, world IO, c *pipeline.Compiled, only map[string]bool) (map[string]*plan.Plan, []diag.Diagnostic, error) {
	chosen := *f
	if hasErrors(c.Diags) {
		chosen.planner = "builtin"
	}
	p, err := chosen.choosePlanner(c.Kinds)
	if err != nil {
		return nil, nil, err
	}
	if closer, ok := p.Planner.(io.Closer); ok {
		defer closer.Close()
	}
	if p.Notice != "" && (p.Loud || f.verbose) {
		fmt.Fprintln(world.Err, p.Notice)
	}
	plans, diags, err := c.Plan(ctx, p, only)
	if f.verbose && err == nil {
		fmt.Fprintln(world.Err, plannedBy(plans))
	}
	return plans, diags, fail(err)
}

// plannedBy counts the nodes of each planner.
func plannedBy(plans map[string]*plan.Plan) string {
	counts := map[string]int{}
	for _, p := range plans {
		counts[p.Planner]++
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s: %d", name, counts[name]))
	}
	return "nodes by planner: " + strings.Join(parts, ", ")
}

// parsePairs reads FROM=TO flags.
func parsePairs(flag string, values []string) (map[string]string, error) {
	out := make(map[string]string, len(values))
	for _, v := range values {
		from, to, ok := strings.Cut(v, "=")
		if !ok || from == "" || to == "" {
			return nil, fmt.Errorf("--%s %q: write FROM=TO", flag, v)
		}
		out[from] = to
	}
	return out, nil
}

// completeTopo offers topology files as the argument, once where a command takes one.
func completeTopo(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && cmd.ValidateArgs(append(args, "another")) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"yml", "yaml", "gotmpl"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeNodes offers the nodes of the topology on the command line, as far as it
// is a file of this machine; a shell must not wait for the network.
func (f *topoFlags) completeNodes(world IO) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ref, err := f.ref(args)
		if _, statErr := os.Stat(ref); err != nil || ref != "" && statErr != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := f.compile(cmd.Context(), world, ref, pipeline.Input{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		var names []string
		if c.Lab != nil {
			for _, n := range c.Lab.Nodes {
				names = append(names, n.Name+"\t"+n.Kind)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
