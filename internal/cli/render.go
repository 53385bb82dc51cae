package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
	"github.com/spf13/cobra"
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
}

func (f *labFlags) add(cmd *cobra.Command) {
	f.topoFlags.add(cmd)
	f.addPlanner(cmd)
	f.images.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.namespace, "namespace", "n", "", "namespace (default: the lab's name)")
	fs.StringArrayVar(&f.mapImage, "map-image", nil, "FROM=TO: run the image TO where the topology names FROM; * stands for the rest (repeatable)")
	fs.BoolVar(&f.noController, "no-controller", false, "leave the controller out; the lab runs without it")
	fs.BoolVar(&f.recycle, "recycle", false, "free addresses and ids of nodes and links that are gone")
	fs.StringVar(&f.image, "image", defaultImage(), "the c9s image that the Pods use")
}

type renderFlags struct {
	labFlags
	output      string
	format      string
	only        []string
	overlay     string
	withSecrets bool
}

func newRender(world IO) *cobra.Command {
	f := &renderFlags{}
	cmd := &cobra.Command{
		Use:   "render [TOPO]",
		Short: "Write a topology as Kubernetes manifests",
		Long: `Render writes the topology as plain Kubernetes objects: to standard output as one
stream, or to a folder (-o) with a file per node and a kustomization.yaml. No
cluster is needed, and the same input gives the same bytes.

Licences and keys are left out of the stream unless --with-secrets asks for them;
a folder has them in secrets/, which keeps itself out of Git.`,
		Example: `  c9s render topo.clab.yml > manifests.yaml
  c9s render topo.clab.yml -o manifests/ && kubectl apply -k manifests/
  c9s render topo.clab.yml --map-image 'ceos*=registry.example/arista/ceos*'
  c9s render https://github.com/srl-labs/srlinux-vlan-handling-lab`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.output, "output", "o", "", "write to this folder instead of standard output (-)")
	fs.StringVar(&f.format, "format", "yaml", "format of the stream: yaml or json")
	fs.StringSliceVar(&f.only, "only", nil, "render only these nodes (and what the whole lab needs)")
	fs.StringVar(&f.overlay, "overlay", "", "kustomize overlay to apply to the result")
	fs.BoolVar(&f.withSecrets, "with-secrets", false, "put Secrets (licences, keys) into the stream too")
	_ = cmd.MarkFlagDirname("output")
	_ = cmd.MarkFlagDirname("overlay")
	_ = cmd.RegisterFlagCompletionFunc("only", f.completeNodes(world))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// notAFormat refuses a folder whose name is meant otherwise, unless it is there, and a
// file.
func notAFormat(output string) error {
	if info, err := os.Stat(output); err == nil {
		if info.IsDir() {
			return nil
		}
		return fmt.Errorf("--output %s: it is a file, and --output names a folder; for one file write 'c9s render ... > %[1]s'", output)
	}
	switch ext := filepath.Ext(output); {
	case output == "yaml" || output == "json":
		return fmt.Errorf("--output %s: it names a folder, and --format the format; for a folder of that name write ./%[1]s", output)
	case ext == ".yaml" || ext == ".yml" || ext == ".json":
		return fmt.Errorf("--output %s: it names a folder; for one file write 'c9s render ... > %[1]s'", output)
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
		return errors.New("--format json is for standard output; a folder holds YAML")
	}
	if f.output != "" && len(f.only) > 0 {
		return errors.New("--only is for standard output; a folder holds the whole lab")
	}
	rules, err := f.imageRules()
	if err != nil {
		return err
	}
	previous, err := readFolder(f.output)
	if err != nil {
		return fail(err)
	}
	c, err := f.compileTopology(ctx, world, ref, compileOptions{namespace: f.namespace, previous: previous.allocations, recycle: f.recycle})
	if err != nil {
		return err
	}
	defer c.source.Close()
	if c.Lab != nil && previous.lab != "" && previous.lab != c.Lab.Name {
		return fail(fmt.Errorf("folder %s holds the lab %q, and this is %q: choose another folder, or remove that one first if the lab has a new name; nothing was written", f.output, previous.lab, c.Lab.Name))
	}
	if previous.lost {
		fmt.Fprintf(world.Err, "%s: an earlier render's lab.yaml is gone or empty, and with it the addresses and ids that nodes and links had: they may change\n", f.output)
	}
	key := previous.wireKey
	if key == nil && (f.withSecrets || f.output != "") {
		key = newWireKey()
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

// certifier issues the certificates of a lab's nodes into the options of render.
type certifier func(*lab.Lab, map[string]*plan.Plan, *render.Options) error

// renderLab plans and renders a compiled topology. o has the options that only the
// caller has; certify, if not nil, adds the certificates.
func (f *labFlags) renderLab(ctx context.Context, world IO, c *compiled, rules []render.ImageRule, o render.Options, certify certifier) (*render.Output, []diag.Diagnostic, error) {
	o.Image, o.Version, o.NoController, o.MapImage = f.image, Version, f.noController, rules
	return c.Render(ctx, pipeline.RenderOptions{
		Options: o, AllowMissing: f.allowMissing, Certify: certify,
		Plan: func(ctx context.Context, only map[string]bool) (map[string]*plan.Plan, []diag.Diagnostic, error) {
			return f.plan(ctx, world, c, only)
		},
		Images: func(ctx context.Context, plans map[string]*plan.Plan, rules []render.ImageRule) ([]diag.Diagnostic, bool, error) {
			return f.images.apply(ctx, c.Lab, plans, rules)
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
		fmt.Fprintf(world.Err, "%s left out (licences, keys); --with-secrets puts them in\n", diag.Count(left, "Secret"))
	} else if f.withSecrets {
		fmt.Fprintln(world.Err, "The stream holds Secrets and a new wire key: do not commit it. A folder (-o) keeps its key.")
	}
	return nil
}

// writeFolder writes to a folder and says what changed there.
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
