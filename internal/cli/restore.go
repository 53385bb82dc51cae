//go:build !nocluster

package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access/sshconfig"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/snapshot"
)

type restoreFlags struct{ output string }

func newRestore(world IO) *cobra.Command {
	f := &restoreFlags{}
	cmd := &cobra.Command{
		Use:   "restore SNAPSHOT [FOLDER]",
		Short: "Bring back a lab from a snapshot",
		Long: `Restore writes the topology of a snapshot, its files and its configurations to a new folder,
and prints the command that deploys the lab with them. It changes no lab. Restore rejects archives
with links, with names outside the folder, and with more than 10,000 files or 256 MiB. Look at the
topology of a snapshot from somebody else before you deploy it: it can name files of this machine.`,
		Example: `  c9s restore before-upgrade.tar.gz
  c9s restore snapshots/monday lab-monday`,
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" {
				return fmt.Errorf("--output %q: use json", f.output)
			}
			if err := notEmpty(args); err != nil {
				return err
			}
			dir := snapshot.Base(args[0])
			if len(args) > 1 {
				dir = args[1]
			}
			return f.run(world, args[0], dir)
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "json prints the result as JSON")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *restoreFlags) run(world IO, name, dir string) error {
	s, err := snapshot.Read(name)
	if err != nil {
		return fail(err)
	}
	if err := s.Restore(dir); err != nil {
		return fail(err)
	}
	warnMissing(world, s)
	r := resultOf(s)
	r.Folder, r.Deploy = dir, deployCommand(dir, s)
	if f.output == "json" {
		return fail(printJSON(world.Out, r))
	}
	fmt.Fprintf(world.Err, "lab %s of %s: %s in %s. To deploy it:\n", show.Cell(s.Lab), s.Created.Format(time.DateTime), diag.Count(r.Files, "file"), show.Cell(dir))
	_, err = io.WriteString(world.Out, show.Cell(r.Deploy)+"\n")
	return fail(err)
}

// deployCommand is the command that deploys a restored lab.
func deployCommand(dir string, s *snapshot.Snapshot) string {
	words := []string{"c9s", "deploy", filepath.Join(dir, filepath.FromSlash(s.Topology))}
	if s.Namespace != "" {
		words = append(words, "-n", s.Namespace)
	}
	if s.Kinds != "" {
		words = append(words, "--kinds", filepath.Join(dir, filepath.FromSlash(s.Kinds)))
	}
	if slices.ContainsFunc(s.Nodes, func(n snapshot.Node) bool { return n.File != "" }) {
		words = append(words, "--saved")
	}
	if s.Allocations != nil {
		words = append(words, "--allocations", filepath.Join(dir, snapshot.AllocationsFile))
	}
	for i, w := range words {
		words[i] = sshconfig.Quote(w)
	}
	return strings.Join(words, " ")
}
