package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/fabric"
	"github.com/c9s-lab/c9s/pkg/generate"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

type generateFlags struct {
	name, shape, kind, nodes, underlay, dir, file string
	images                                        []string
	leaves, spines, superSpines, hosts            int
	core, edges, customers                        int
	force                                         bool
}

func newGenerate(world IO) *cobra.Command {
	f := &generateFlags{}
	cmd := &cobra.Command{
		Use:     "generate",
		Aliases: []string{"gen"},
		Short:   "Generate a lab: a fabric, a ring, a mesh, a hub with spokes, or a provider's network",
		Long: `Generate writes a lab that works without edits: a folder with the topology, the addresses of
hosts, a fabric file that configures the routers, and checks for 'c9s test'. If you generate
a larger network later and deploy it, existing nodes keep their names, addresses and AS
numbers.

Routers are configured if fabric files support their kinds (docs/reference/fabric.md). For
other kinds, generate writes only the topology, and the devices start with the default
configurations of their kinds.

--nodes also accepts containerlab's tiers: "4:nokia_srlinux:ixrd3,2" is 4 nodes of a kind and
type, below 2 nodes of the kind that --kind sets. This topology refers to no files, and
generate prints it.`,
		Example: `  c9s generate --name dc --spines 2 --leaves 4 --hosts-per-leaf 2
  c9s generate --name wan --shape ring --nodes 6 -o labs/wan
  c9s generate --name isp --shape isp --core 4 --edges 4 --underlay ospf
  c9s generate --name 3tier --kind nokia_srlinux --nodes 4,2,1 > 3tier.clab.yml
  c9s generate --name dc && c9s deploy dc/dc.clab.yml --test`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(world, cmd) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.name, "name", "n", "fabric", "name of the lab")
	fs.StringVar(&f.shape, "shape", generate.Clos, "shape of the network: "+strings.Join(generate.Shapes, ", "))
	fs.StringVar(&f.kind, "kind", generate.KindFRR, "kind of the routers")
	fs.IntVar(&f.spines, "spines", 2, "number of spines")
	fs.IntVar(&f.leaves, "leaves", 4, "number of leaves")
	fs.IntVar(&f.superSpines, "super-spines", 0, "number of super-spines")
	fs.IntVar(&f.hosts, "hosts-per-leaf", 1, "number of hosts of each leaf; of each customer's router of an isp; of each router of other shapes")
	fs.IntVar(&f.core, "core", 4, "number of core routers (P) of an isp")
	fs.IntVar(&f.edges, "edges", 4, "number of provider edges (PE) of an isp")
	fs.IntVar(&f.customers, "customers-per-edge", 1, "number of customers' routers (CE) of each provider edge")
	fs.StringVar(&f.underlay, "underlay", "", "protocol between the routers: ebgp, isis or ospf (default: ebgp; isis for an isp)")
	fs.StringVar(&f.nodes, "nodes", "", "number of routers; or tiers, as NUMBER[:KIND[:TYPE]],...")
	fs.StringSliceVar(&f.images, "image", nil, "image of a kind, as KIND=IMAGE")
	fs.StringVarP(&f.dir, "output", "o", "", "folder to write (default: the name of the lab)")
	fs.StringVar(&f.file, "file", "", "write only the topology, to this file")
	fs.BoolVar(&f.force, "force", false, "replace existing files")
	_ = cmd.RegisterFlagCompletionFunc("shape", cobra.FixedCompletions(generate.Shapes, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("underlay", cobra.FixedCompletions([]string{fabric.EBGP, fabric.ISIS, fabric.OSPF}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds.Builtin().Names(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("output")
	cmd.MarkFlagsMutuallyExclusive("output", "file")
	for _, name := range []string{"spines", "leaves", "super-spines", "core", "edges", "customers-per-edge"} {
		cmd.MarkFlagsMutuallyExclusive("nodes", name)
	}
	return cmd
}

func (f *generateFlags) run(world IO, cmd *cobra.Command) error {
	if err := f.checkShape(cmd.Flags().Changed); err != nil {
		return err
	}
	o, err := f.options(cmd.Flags().Changed("hosts-per-leaf"))
	if err != nil {
		return err
	}
	if f.dir == "-" {
		return errors.New("--output -: a lab is several files in a folder; --file - prints the topology alone")
	}
	tiers := f.nodes != "" && f.shape == generate.Clos
	if f.file != "" || tiers && f.dir == "" {
		text, err := generate.Topology(o)
		if err != nil {
			return fail(err)
		}
		if f.file == "" || f.file == "-" {
			_, err = show.Document(world.Out).Write(text)
			return fail(err)
		}
		return f.write(world, filepath.Dir(f.file), []generate.File{{Path: filepath.Base(f.file), Data: text}})
	}
	files, err := generate.Files(o)
	if err != nil {
		return fail(err)
	}
	dir := f.dir
	if dir == "" {
		dir = f.name
	}
	if stale := filepath.Join(dir, "fabric.yaml"); len(files) == 1 {
		if _, err := os.Lstat(stale); err == nil {
			return fail(fmt.Errorf("%s is of another network, and fabric files do not support this one: remove it, or use another folder", show.Cell(stale)))
		}
	}
	if err := f.write(world, dir, files); err != nil {
		return err
	}
	topo := show.Cell(filepath.Join(dir, files[0].Path))
	if kinds := generate.Placeholders(o); len(kinds) > 0 {
		fmt.Fprintf(world.Err, "set the image of %s in %s, or generate with --image %s=IMAGE\n", strings.Join(kinds, ", "), topo, kinds[0])
	}
	if len(files) == 1 {
		fmt.Fprintf(world.Err, "the routers are not configured: fabric files do not support their kinds in this shape\nnext: c9s deploy %s\n", topo)
		return nil
	}
	fmt.Fprintf(world.Err, "next: c9s deploy %s --test\n", topo)
	return nil
}

// checkShape rejects flags that are for another shape, which would have no effect.
func (f *generateFlags) checkShape(changed func(flag string) bool) error {
	if !slices.Contains(generate.Shapes, f.shape) {
		return fmt.Errorf("--shape %q: use one of %s", f.shape, strings.Join(generate.Shapes, ", "))
	}
	for flag, shape := range map[string]string{
		"spines": generate.Clos, "leaves": generate.Clos, "super-spines": generate.Clos,
		"core": generate.ISP, "edges": generate.ISP, "customers-per-edge": generate.ISP,
	} {
		if changed(flag) && f.shape != shape {
			return fmt.Errorf("--%s is for --shape %s", flag, shape)
		}
	}
	return nil
}

// options returns the network that the flags describe. The usage errors are about single
// flags; generate checks the network.
func (f *generateFlags) options(hostsGiven bool) (generate.Options, error) {
	kind, err := kindName(f.kind)
	if err != nil {
		return generate.Options{}, fmt.Errorf("--kind: %w", err)
	}
	f.kind = kind
	o := generate.Options{Name: f.name, Shape: f.shape, Hosts: f.hosts, Underlay: f.underlay, Images: map[string]string{}}
	for _, text := range f.images {
		name, image, ok := strings.Cut(text, "=")
		if !ok {
			name, image = f.kind, text
		}
		if name, err = kindName(name); err != nil {
			return o, fmt.Errorf("--image: %w", err)
		}
		if !apicheck.LegalImage(image) {
			return o, fmt.Errorf("--image: %q is not an image: use [KIND=]REGISTRY/NAME:TAG", image)
		}
		o.Images[name] = image
	}
	switch {
	case f.shape == generate.ISP && f.nodes != "":
		return o, errors.New("--shape isp takes --core, --edges and --customers-per-edge in place of --nodes")
	case f.shape == generate.ISP:
		o.Tiers = []generate.Tier{{Name: "pe", Count: f.edges, Kind: f.kind}, {Name: "p", Count: f.core, Kind: f.kind}}
		o.Customers = f.customers
	case f.nodes != "":
		if !hostsGiven && f.shape == generate.Clos { // containerlab's tiers have none
			o.Hosts = 0
		}
		for _, text := range strings.Split(f.nodes, ",") {
			t, err := f.tier(text)
			if err != nil {
				return o, fmt.Errorf("--nodes: %w", err)
			}
			o.Tiers = append(o.Tiers, t)
		}
	case f.shape != generate.Clos:
		return o, fmt.Errorf("--shape %s needs --nodes, the number of routers", f.shape)
	default:
		o.Tiers = []generate.Tier{{Name: "leaf", Count: f.leaves, Kind: f.kind}, {Name: "spine", Count: f.spines, Kind: f.kind}}
		if f.superSpines != 0 {
			o.Tiers = append(o.Tiers, generate.Tier{Name: "superspine", Count: f.superSpines, Kind: f.kind})
		}
	}
	return o, nil
}

// tier reads NUMBER[:KIND[:TYPE]].
func (f *generateFlags) tier(text string) (generate.Tier, error) {
	number, rest, _ := strings.Cut(text, ":")
	count, err := strconv.Atoi(number)
	if err != nil {
		return generate.Tier{}, fmt.Errorf("%q: use NUMBER[:KIND[:TYPE]]", text)
	}
	t := generate.Tier{Count: count, Kind: f.kind}
	if f.shape != generate.Clos {
		t.Name = "router"
	}
	if rest != "" {
		t.Kind, t.Type, _ = strings.Cut(rest, ":")
	}
	t.Kind, err = kindName(t.Kind)
	return t, err
}

// kindName returns the name of a kind that may be given by another one of its names.
func kindName(name string) (string, error) {
	kind, ok := kinds.Builtin().Lookup(name)
	if !ok {
		return "", fmt.Errorf("%q is not a kind: c9s kinds lists them", name)
	}
	if kind.Refused != "" {
		return "", fmt.Errorf("nodes of kind %s cannot run in a Pod: %s", kind.Name, kind.Refused)
	}
	if kind.Name == "host" {
		return "", errors.New("host stands for the worker, which is no router")
	}
	return kind.Name, nil
}

// write writes files into a folder: all or none.
func (f *generateFlags) write(world IO, dir string, files []generate.File) error {
	if !f.force {
		var there []string
		for _, file := range files {
			path := filepath.Join(dir, file.Path)
			if _, err := os.Lstat(path); err == nil {
				there = append(there, path)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return fail(err)
			}
		}
		if len(there) > 0 {
			slices.Sort(there)
			return fail(fmt.Errorf("files exist already: %s; use another folder, or --force to replace them", show.Cell(diag.Few(there, 3))))
		}
	}
	contents := map[string][]byte{}
	for _, file := range files {
		contents[file.Path] = file.Data
	}
	if err := atomicfile.WriteAll(dir, contents, 0o644, 0o755); err != nil {
		return fail(err)
	}
	fmt.Fprintf(world.Err, "%s: %s\n", show.Cell(dir), fileCount(len(files)))
	return nil
}

func fileCount(n int) string {
	if n == 1 {
		return "1 file written"
	}
	return fmt.Sprintf("%d files written", n)
}
