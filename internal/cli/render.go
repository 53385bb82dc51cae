package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/observe"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
)

// labFlags are the flags of every command that renders a whole lab.
type labFlags struct {
	topoFlags
	images       imageFlags
	namespace    string
	mapImage     []string
	noController bool
	recycle      bool
	image        string
	// allocations is the file with those of a lab that is not in the cluster.
	allocations string
}

func (f *labFlags) add(cmd *cobra.Command) {
	f.topoFlags.add(cmd)
	f.addPlanner(cmd)
	f.images.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.namespace, "namespace", "n", "", "namespace (default: the lab's name)")
	fs.StringArrayVar(&f.mapImage, "map-image", nil, "FROM=TO: use the image TO instead of FROM; a trailing * matches any suffix (repeatable)")
	fs.BoolVar(&f.noController, "no-controller", false, "omit the controller; the lab runs without it")
	fs.BoolVar(&f.saved, "saved", false, "start nodes with the configurations that c9s save wrote next to the topology")
	fs.BoolVar(&f.adopt, "adopt", false, "keep the addresses and ids in the status of clabernetes' documents")
	fs.BoolVar(&f.recycle, "recycle", false, "release the addresses and ids of removed nodes and links")
	fs.StringVar(&f.image, "image", "", "c9s image of the Pods (default: C9S_IMAGE, the policy's, the running lab's, or that of this version)")
}

type renderFlags struct {
	labFlags
	output      string
	format      string
	only        []string
	overlay     string
	withSecrets bool
	dashboard   bool
	alertRules  bool
}

func newRender(world IO) *cobra.Command {
	f := &renderFlags{}
	cmd := &cobra.Command{
		Use:   "render [TOPO]",
		Short: "Write a topology as Kubernetes manifests",
		Long: `Render compiles the topology to plain Kubernetes objects. It writes them to standard
output as one stream, or to a folder (-o) with one file per Pod and a kustomization.yaml.
It needs no cluster, and the same input gives the same bytes.

The stream omits licences and keys unless you set --with-secrets. A folder has them in
secrets/, which Git ignores.`,
		Example: `  c9s render topo.clab.yml > manifests.yaml
  c9s render topo.clab.yml -o manifests/ && kubectl apply -k manifests/
  c9s render topo.clab.yml --map-image 'ceos*=registry.example/arista/ceos*'
  c9s render topo.clab.yml --dashboard > dashboard.json
  c9s render https://github.com/srl-labs/srlinux-vlan-handling-lab`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.output, "output", "o", "", "folder to write to instead of standard output (-)")
	fs.StringVar(&f.format, "format", "yaml", "format of the stream: yaml or json")
	fs.StringSliceVar(&f.only, "only", nil, "render only these nodes, and the objects of the whole lab")
	fs.StringVar(&f.overlay, "overlay", "", "kustomize overlay to apply to the result")
	fs.BoolVar(&f.withSecrets, "with-secrets", false, "include Secrets (licences, keys) in the stream")
	fs.BoolVar(&f.dashboard, "dashboard", false, "write a Grafana dashboard for the lab instead (JSON)")
	fs.BoolVar(&f.alertRules, "alert-rules", false, "write alert rules for Prometheus instead (YAML)")
	cmd.MarkFlagsMutuallyExclusive("dashboard", "alert-rules", "output")
	_ = cmd.MarkFlagDirname("output")
	_ = cmd.MarkFlagDirname("overlay")
	_ = cmd.RegisterFlagCompletionFunc("only", f.completeNodes(world))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// notAFormat rejects a file, and a folder that does not exist if its name is meant as a
// format or a file.
func notAFormat(output string) error {
	if info, err := os.Stat(output); err == nil {
		if info.IsDir() {
			return nil
		}
		return fmt.Errorf("--output %s: it is a file, but --output is a folder; for a single file use 'c9s render ... > %[1]s'", output)
	}
	switch ext := filepath.Ext(output); {
	case output == "yaml" || output == "json":
		return fmt.Errorf("--output %s: --output is a folder and --format the format; for a folder of that name use ./%[1]s", output)
	case ext == ".yaml" || ext == ".yml" || ext == ".json":
		return fmt.Errorf("--output %s: --output is a folder; for a single file use 'c9s render ... > %[1]s'", output)
	}
	return nil
}

func (f *renderFlags) run(ctx context.Context, world IO, args []string) error {
	ref, err := f.ref(args)
	if err != nil {
		return err
	}
	if f.format != "yaml" && f.format != "json" {
		return fmt.Errorf("--format %q: use yaml or json", f.format)
	}
	if f.output == "-" { // as kubectl and kustomize have it
		f.output = ""
	}
	if err := notAFormat(f.output); err != nil {
		return err
	}
	if f.output != "" && f.format != "yaml" {
		return errors.New("--format json works only on standard output; a folder holds YAML")
	}
	if f.output != "" && len(f.only) > 0 {
		return errors.New("--only works only on standard output; a folder holds the whole lab")
	}
	rules, err := f.imageRules()
	if err != nil {
		return err
	}
	previous, err := readFolder(f.output)
	if err != nil {
		return fail(err)
	}
	c, err := f.compile(ctx, world, ref, pipeline.Input{Namespace: f.namespace, Previous: previous.allocations, Recycle: f.recycle})
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Lab != nil && previous.lab != "" && previous.lab != c.Lab.Name {
		return fail(fmt.Errorf("folder %s holds the lab %q, but this is %q: choose another folder, or delete it first if you renamed the lab; nothing was written", f.output, previous.lab, c.Lab.Name))
	}
	if previous.lost {
		fmt.Fprintf(world.Err, "%s: lab.yaml of an earlier render is missing or empty, so addresses and ids of nodes and links may change\n", f.output)
	}
	if f.dashboard || f.alertRules {
		return f.watching(world, c)
	}
	key := previous.wireKey
	if key == nil && (f.withSecrets || f.output != "") {
		key = pipeline.NewWireKey()
	}
	out, diags, err := f.renderLab(ctx, world, c, rules, render.Options{Only: f.only, WireKey: key}, nil)
	if err != nil {
		return err
	}
	report(world, diags)
	if out == nil || hasErrors(diags) {
		fmt.Fprintf(world.Err, "%s; nothing was written\n", summary(diags))
		return errFailed
	}
	if f.overlay != "" {
		if err := f.applyOverlay(out); err != nil {
			return fail(err)
		}
		if problems := apicheck.Check(out.Objects); hasErrors(problems) {
			report(world, problems)
			fmt.Fprintf(world.Err, "with the overlay: %s; nothing was written\n", summary(problems))
			return errFailed
		}
	}
	if f.output != "" {
		return f.writeFolder(world, out)
	}
	return f.writeStream(world, out)
}

// watching writes what Grafana or Prometheus needs to watch the lab.
func (f *renderFlags) watching(world IO, c *pipeline.Compiled) error {
	report(world, c.Diags)
	if c.Lab == nil || hasErrors(c.Diags) {
		fmt.Fprintf(world.Err, "%s; nothing was written\n", summary(c.Diags))
		return errFailed
	}
	out, err := observe.Rules(c.Lab.Name), error(nil)
	if f.dashboard {
		out, err = observe.Dashboard(c.Lab.Name)
	}
	if err == nil {
		_, err = show.Raw(world.Out).Write(out)
	}
	return fail(err)
}

// imageVariable is the environment variable with the c9s image.
const imageVariable = "C9S_IMAGE"

// ownImage returns the c9s image that the user chose: by the flag, the environment or the
// policy; "" for none.
func (f *labFlags) ownImage(world IO, l *lab.Lab) string {
	image := f.image
	for _, entry := range world.Env {
		if value, ok := strings.CutPrefix(entry, imageVariable+"="); ok && image == "" {
			image = value
		}
	}
	if image == "" && l != nil {
		image = l.Image
	}
	return image
}

// completer adds to the options of render what the cluster knows: certificates and workers.
type completer func(*lab.Lab, map[string]*plan.Plan, *render.Options) error

// renderLab plans and renders a compiled topology. o has the options that only the
// caller has; complete, if not nil, adds what depends on the plans.
func (f *labFlags) renderLab(ctx context.Context, world IO, c *pipeline.Compiled, rules []render.ImageRule, o render.Options, complete completer) (*render.Output, []diag.Diagnostic, error) {
	images, err := f.images.images()
	if err != nil {
		return nil, nil, err
	}
	o.Image = cmp.Or(f.ownImage(world, c.Lab), o.Image, defaultImage())
	o.Version, o.NoController, o.MapImage = Version, f.noController, rules
	return c.Render(ctx, pipeline.RenderOptions{
		Options: o, AllowMissing: f.allowMissing, Complete: complete, Images: images,
		Plan: func(ctx context.Context, only map[string]bool) (map[string]*plan.Plan, []diag.Diagnostic, error) {
			return f.plan(ctx, world, c, only)
		},
	})
}

func (f *labFlags) imageRules() ([]render.ImageRule, error) {
	rules := make([]render.ImageRule, 0, len(f.mapImage))
	for _, v := range f.mapImage {
		from, to, ok := strings.Cut(v, "=")
		if !ok || from == "" || to == "" {
			return nil, fmt.Errorf("--map-image %q: write FROM=TO", v)
		}
		rules = append(rules, render.ImageRule{From: from, To: to})
	}
	return rules, nil
}

func (f *renderFlags) applyOverlay(out *render.Output) error {
	objects, err := manifest.ApplyOverlay(out.Objects, f.overlay)
	if err != nil {
		return err
	}
	out.Objects = objects
	return nil
}

// writeStream writes to standard output, without Secrets unless they are asked for.
func (f *renderFlags) writeStream(world IO, out *render.Output) error {
	objects := out.Objects
	if !f.withSecrets {
		objects = slices.DeleteFunc(slices.Clone(objects), func(o manifest.Object) bool { return o.Secret })
	}
	if err := manifest.WriteStream(show.Document(world.Out), objects, manifest.Format(f.format)); err != nil {
		return fail(err)
	}
	if left := len(out.Objects) - len(objects); left > 0 {
		fmt.Fprintf(world.Err, "%s omitted (licences, keys); use --with-secrets to include them\n", diag.Count(left, "Secret"))
	} else if f.withSecrets {
		fmt.Fprintln(world.Err, "The stream contains Secrets and a new wire key: do not commit it. To keep the key, render to a folder (-o).")
	}
	return nil
}

// writeFolder writes to a folder and prints what changed.
func (f *renderFlags) writeFolder(world IO, out *render.Output) error {
	files, err := manifest.Folder(out.Objects)
	if err != nil {
		return fail(err)
	}
	result, err := manifest.WriteFolder(f.output, files)
	if err != nil {
		return fail(err)
	}
	fmt.Fprintf(world.Err, "%s: %s written, %d unchanged, %d removed\n", f.output, diag.Count(len(result.Written), "file"), len(result.Unchanged), len(result.Removed))
	return nil
}
