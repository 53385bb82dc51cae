package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/fetch"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/policy"
	"github.com/c9s-lab/c9s/pkg/reach"
	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/spf13/cobra"
)

// topoFlags are the flags of every command that reads a topology.
type topoFlags struct {
	topo         string
	vars         []string
	kindsDir     string
	policy       string
	mapFiles     []string
	allowMissing bool
	planner      string
	plannerPath  string
	verbose      bool
	trust        bool
	env          []string
}

func (f *topoFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.topo, "topo", "t", "", "topology: a file, a folder, a URL, a Git repository, or - for standard input")
	fs.StringSliceVar(&f.vars, "vars", nil, "variables files of the topology's template (default: <topology>_vars.*)")
	fs.StringVar(&f.kindsDir, "kinds", "", "folder with kinds of your own")
	fs.StringVar(&f.policy, "policy", "", "policy file (default: c9s.yaml beside the topology, if there is one)")
	fs.StringArrayVar(&f.mapFiles, "map-file", nil, "FROM=TO: read TO where the topology names the file FROM (repeatable)")
	fs.BoolVar(&f.allowMissing, "allow-missing", false, "stand in placeholders for files and images that are missing")
	f.addTrust(cmd)
	_ = cmd.MarkFlagFilename("topo", "yml", "yaml")
	_ = cmd.MarkFlagFilename("policy", "yml", "yaml")
	_ = cmd.MarkFlagDirname("kinds")
}

// addTrust adds the flags that say what a fetched topology gets of this machine.
func (f *topoFlags) addTrust(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.trust, "trust", false, "let a fetched topology read your files, environment and network, as one on disk can")
	fs.StringArrayVar(&f.env, "env", nil, "NAME: let a fetched topology see this environment variable (repeatable)")
}

func (f *topoFlags) addPlanner(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.planner, "planner", "auto", "planner of the nodes: auto, hooks (containerlab's own) or builtin")
	cmd.Flags().StringVar(&f.plannerPath, "planner-path", "", "the planner program for hooks (default: c9s-planner beside c9s or in PATH)")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "say which planner plans the nodes, and why")
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

// notEmpty refuses an argument without a letter, as of a variable that is not set: it
// would stand for the topology in the working directory.
func notEmpty(args []string) error {
	if slices.Contains(args, "") {
		return errors.New("an argument is empty: name a topology, or leave it out for the one in this folder")
	}
	return nil
}

// compiled is the outcome of parse and compile.
type compiled struct {
	*pipeline.Compiled
	source *topology.Source
	kinds  *kinds.Catalogue
}

// compileOptions are what a command adds to the flags.
type compileOptions struct {
	namespace string
	previous  *lab.Allocations
	recycle   bool
}

// compileTopology runs parse and compile. The error is for what is not a
// diagnostic of the topology: bad flags, unreadable policy.
func (f *topoFlags) compileTopology(ctx context.Context, world IO, ref string, o compileOptions) (*compiled, error) {
	mapFiles, err := parsePairs("map-file", f.mapFiles)
	if err != nil {
		return nil, err
	}
	c := &compiled{Compiled: &pipeline.Compiled{}, kinds: kinds.Builtin()}
	if f.kindsDir != "" {
		cat, diags := kinds.LoadDir(c.kinds, f.kindsDir)
		c.Diags = append(c.Diags, diags...)
		if cat != nil {
			c.kinds = cat
		}
	}
	src, err := topology.Open(ctx, ref, world.In)
	if err != nil {
		return nil, fail(err)
	}
	c.source = src
	if f.trust {
		src.Reach = src.Reach.Trust()
	}
	env, withheld := src.Reach.Env(world.Env, f.env)
	file, diags := topology.Load(ctx, src, topology.Options{Env: env, Withheld: withheld, VarsFiles: f.vars})
	c.Diags = append(c.Diags, diags...)
	pol, diags, err := f.loadPolicy(src)
	if err != nil {
		return nil, fail(err)
	}
	c.Diags = append(c.Diags, diags...)
	c.File = file
	if file == nil {
		if src.IsTemplate() && !slices.ContainsFunc(c.Diags, func(d diag.Diagnostic) bool { return d.Code == topology.CodeTemplate }) {
			c.Diags = append(c.Diags, templateLines(src))
		}
		return c, nil
	}
	home, _ := os.UserHomeDir()
	options := compile.Options{
		Namespace: o.namespace, Previous: o.previous, Recycle: o.recycle,
		Kinds: c.kinds, Env: env, Home: home, MapFiles: mapFiles, AllowMissing: f.allowMissing,
		Reach: src.Reach, Fetch: fetch.HTTP, GitHead: fetch.Head,
	}
	if src.Reach.Limited() {
		options.Fetch = fetch.Public
	}
	if src.Hash != "" {
		options.GitHead = func(context.Context, string) (branch, hash string) { return src.Branch, src.Hash }
	}
	if pol != nil {
		options.Policy = pol
	}
	l, diags := compile.Compile(ctx, file, options)
	c.Lab = l
	c.Diags = append(c.Diags, diags...)
	if note, ok := src.Reach.Note(src.Name); ok {
		c.Diags = append(c.Diags, note)
	}
	if src.IsTemplate() && hasErrors(c.Diags) {
		c.Diags = append(c.Diags, templateLines(src))
	}
	return c, nil
}

// templateLines says what the lines in the diagnostics of a template count.
func templateLines(src *topology.Source) diag.Diagnostic {
	return diag.Diagnostic{
		Code: topology.CodeTemplateRows, Severity: diag.Warning, Pos: diag.Pos{File: src.Name},
		Message: "the file is a template, and the line numbers are those of its output",
	}
}

// maxPolicy is the most that a policy file may hold, in bytes.
const maxPolicy = 4 << 20

// loadPolicy reads the policy file, if there is one: the user's, or the one beside the
// topology, which reaches no further than the topology itself.
func (f *topoFlags) loadPolicy(src *topology.Source) (*policy.Policy, []diag.Diagnostic, error) {
	if f.policy != "" {
		data, err := (*reach.Reach)(nil).ReadFile(f.policy, maxPolicy)
		return parsePolicy(f.policy, data, err)
	}
	if src.Dir == "" {
		return nil, nil, nil
	}
	for _, base := range []string{"c9s.yaml", "c9s.yml"} {
		full := filepath.Join(src.Dir, base)
		if _, err := src.Reach.Stat(full); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		name := filepath.Join(filepath.Dir(src.Name), base)
		if _, err := os.Stat(name); err != nil {
			name = full
		}
		if src.Reach.Limited() {
			name = base
		}
		data, err := src.Reach.ReadFile(full, maxPolicy)
		return parsePolicy(name, data, err)
	}
	return nil, nil, nil
}

func parsePolicy(name string, data []byte, err error) (*policy.Policy, []diag.Diagnostic, error) {
	if err != nil {
		return nil, nil, fmt.Errorf("reading the policy file %s: %w", name, topology.UnwrapPath(err))
	}
	p, diags := policy.Load(filepath.ToSlash(name), data)
	return p, diags, nil
}

// choosePlanner picks the planner that the flags ask for. notice, if not empty, says
// why the hooks were not taken; loud reports that the user should know without asking.
func (f *topoFlags) choosePlanner(cat *kinds.Catalogue) (p plan.Planner, notice string, loud bool, err error) {
	builtin := plan.NewBuiltin(cat, plan.WithTemplateFuncs(topology.TemplateFuncs()))
	switch f.planner {
	case "builtin":
		return builtin, "", false, nil
	case "auto", "hooks":
		hooks, err := plan.FindHooks(f.plannerPath)
		found := err == nil
		if found {
			auto := plan.NewAuto(hooks, builtin, planCache())
			if _, err = hooks.Hello(); err == nil {
				return auto, "", false, nil
			}
		}
		if f.planner == "hooks" || f.plannerPath != "" && !found {
			return nil, "", false, fail(fmt.Errorf("--planner %s: %w", f.planner, err))
		}
		if !found {
			return builtin, plannerNotice, false, nil
		}
		return builtin, fmt.Sprintf("planner: built-in catalogue (containerlab %s), since the hooks fail: %v", kinds.ContainerlabVersion, err), true, nil
	default:
		return nil, "", false, fmt.Errorf("--planner %q: use auto, hooks or builtin", f.planner)
	}
}

// plannerNotice says what plans without c9s-planner.
const plannerNotice = "planner: built-in catalogue (containerlab " + kinds.ContainerlabVersion + "); install c9s-planner to use containerlab's hooks"

// planCache is the folder in which the plans of the hooks are kept, "" for none.
func planCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "c9s", "plans")
}

// plan plans the nodes of a compiled topology by the planner that the flags ask for, all
// of them for a nil filter. Where compile found errors, the catalogue plans: its faults
// are worth telling too, and nothing is started for a lab that cannot be rendered.
func (f *topoFlags) plan(ctx context.Context, world IO, c *compiled, only map[string]bool) (map[string]*plan.Plan, []diag.Diagnostic, error) {
	chosen := *f
	if hasErrors(c.Diags) {
		chosen.planner = "builtin"
	}
	p, notice, loud, err := chosen.choosePlanner(c.kinds)
	if err != nil {
		return nil, nil, err
	}
	if closer, ok := p.(io.Closer); ok {
		defer closer.Close()
	}
	if notice != "" && (loud || f.verbose) {
		fmt.Fprintln(world.Err, notice)
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
		c, err := f.compileTopology(cmd.Context(), world, ref, compileOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.source.Close()
		var names []string
		if c.Lab != nil {
			for _, n := range c.Lab.Nodes {
				names = append(names, n.Name+"\t"+n.Kind)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
