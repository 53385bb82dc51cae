package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/pipeline"
)

type convertFlags struct {
	topoFlags
	to     string
	write  bool
	output string
}

func newConvert(world IO) *cobra.Command {
	f := &convertFlags{}
	targets := compile.Releases[1:]
	cmd := &cobra.Command{
		Use:   "convert [TOPO]",
		Short: "Rewrite a topology for a newer release of containerlab, or clabernetes' documents as a topology",
		Long: `Convert replaces fields that containerlab 0.80 and 0.81 no longer read by the new ones:
extras, environment variables that became keys of a kind, and keys of components. Comments,
order and layout stay. Convert prints the difference; --write changes the file. It rewrites
the file only if the lab stays the same.

For documents of clabernetes, convert generates a topology and a c9s.yaml. -o writes both, and
the files in the documents, to a folder. It overwrites no existing file.`,
		Example: `  c9s convert topo.clab.yml
  c9s convert topo.clab.yml --write
  c9s convert documents/ -o lab --adopt`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(targets, f.to) {
				return fmt.Errorf("--to %q: use %s", f.to, strings.Join(targets, " or "))
			}
			ref, err := f.ref(args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), world, ref)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.topo, "topo", "t", "", "topology: a file, a folder, a URL, a Git repository, or - for standard input")
	fs.StringVar(&f.kindsDir, "kinds", "", "folder with your own kinds")
	fs.StringVar(&f.to, "to", targets[len(targets)-1], "release of containerlab: "+strings.Join(targets, " or "))
	fs.BoolVar(&f.write, "write", false, "write the file instead of printing the difference")
	fs.StringVarP(&f.output, "output", "o", "", "folder to write clabernetes' documents to, as a topology")
	fs.BoolVar(&f.adopt, "adopt", false, "write the addresses in the status of clabernetes' documents to the topology")
	_ = cmd.MarkFlagDirname("output")
	_ = cmd.MarkFlagFilename("topo", "yml", "yaml")
	_ = cmd.MarkFlagDirname("kinds")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(targets, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *convertFlags) run(ctx context.Context, world IO, ref string) error {
	f.allowMissing = true
	in, err := f.input(world, ref, pipeline.Input{WholeDocuments: true})
	if err != nil {
		return err
	}
	c, err := pipeline.Compile(ctx, in)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	switch {
	case c.Documents != nil && f.write:
		return errors.New("--write: documents are written to a folder as a topology; use -o FOLDER")
	case c.Documents != nil:
		return f.convertDocuments(ctx, world, c)
	case f.output != "":
		return errors.New("-o: a topology is rewritten in its place; use --write")
	}
	if c.File == nil {
		report(world, c.Diags)
		return errFailed
	}
	if f.write && (c.Source.Dir == "" || c.Source.Reach.Limited()) {
		return errors.New("--write: only a topology in a file of this machine can be written")
	}
	if f.write && hasErrors(c.Diags) { // the labs cannot be compared
		report(world, c.Diags)
		return errFailed
	}
	out, err := c.Convert(ctx, in, f.to)
	if err != nil {
		return fail(err)
	}
	report(world, out.Diags)
	switch {
	case out.Text == string(c.Source.Data):
		fmt.Fprintf(world.Err, "%s: nothing to rewrite for containerlab %s\n", show.Cell(c.Source.Name), f.to)
	case f.write:
		if err := replaceFile(c.Source.Name, out.Text); err != nil {
			return fail(err)
		}
		fmt.Fprintf(world.Err, "%s: rewritten for containerlab %s\n", show.Cell(c.Source.Name), f.to)
	default:
		diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: diffLines(string(c.Source.Data)), B: diffLines(out.Text),
			FromFile: c.Source.Name, ToFile: c.Source.Name, Context: 3,
		})
		if err != nil {
			return fail(err)
		}
		if _, err := fmt.Fprint(show.Document(world.Out), diff); err != nil {
			return fail(err)
		}
	}
	if hasErrors(out.Diags) {
		return errFailed
	}
	return nil
}

// diffLines are the lines of a text, for patch(1).
func diffLines(text string) []string {
	lines := slices.Collect(strings.Lines(text))
	if last := len(lines) - 1; last >= 0 && !strings.HasSuffix(lines[last], "\n") {
		lines[last] += "\n\\ No newline at end of file\n"
	}
	return lines
}

// replaceFile replaces the contents of a file and keeps its mode. A link stays one.
func replaceFile(name, text string) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return atomicfile.Write(name, []byte(text), info.Mode().Perm(), 0o755)
}
