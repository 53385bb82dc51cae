//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/bugreport"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/doctor"
)

type supportFlags struct {
	labRef
	file    string
	lines   int64
	devices bool
	output  string
}

func newSupport(world IO) *cobra.Command {
	f := &supportFlags{}
	cmd := &cobra.Command{
		Use:   "support [LAB|TOPO]",
		Short: "Write an archive for a bug report",
		Long: `Support writes a compressed archive with what a bug report about a lab needs: its objects,
states, events and link tables, the logs of c9s' own containers, versions, and what doctor
finds. It reads no Secrets, leaves out environment variables, arguments and files of devices,
and removes text that looks like passwords or keys. Look through the archive before you
publish it.`,
		Example: `  c9s support
  c9s support mylab -f report.tar.gz --device-logs`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "file", "f", "", "archive to write (default: c9s-support-LAB.tar.gz)")
	fs.Int64Var(&f.lines, "lines", 2000, "number of lines of each log, from its end")
	fs.BoolVar(&f.devices, "device-logs", false, "include the logs of the devices")
	fs.StringVarP(&f.output, "output", "o", "", "json prints the list of files as JSON")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// supportFile is a file of -o json.
type supportFile struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

func (f *supportFlags) run(ctx context.Context, world IO, args []string) error {
	switch {
	case f.output != "" && f.output != "json":
		return fmt.Errorf("--output %q: use json", f.output)
	case f.lines < 1:
		return errors.New("--lines must be at least 1")
	}
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	if f.file == "" {
		f.file = "c9s-support-" + contract.LabelValue(found.Name) + ".tar.gz"
		if _, err := os.Stat(f.file); err == nil {
			return fail(fmt.Errorf("%s exists: name another file with -f", f.file))
		}
	}
	files := f.collect(ctx, client, found)
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	var archive bytes.Buffer
	if err := bugreport.Write(&archive, "c9s-support-"+contract.LabelValue(found.Name), files, time.Now()); err != nil {
		return fail(err)
	}
	if err := atomicfile.Write(f.file, archive.Bytes(), 0o600, 0o755); err != nil {
		return fail(err)
	}
	if f.output == "json" {
		var list []supportFile
		for _, file := range files {
			list = append(list, supportFile{file.Name, len(file.Data)})
		}
		return fail(printJSON(world.Out, list))
	}
	_, err = fmt.Fprintf(world.Out, "%s: %s, %s; look through it before you publish it\n", show.Cell(f.file), diag.Count(len(files), "file"), size(uint64(archive.Len())))
	return fail(err)
}

func (f *supportFlags) collect(ctx context.Context, client *cluster.Client, found cluster.Found) []bugreport.File {
	c := bugreport.Collector{Client: client.Typed, Namespace: found.Namespace, Lab: contract.LabelValue(found.Name), Lines: f.lines, Devices: f.devices}
	files := c.Collect(ctx)
	add := func(name string, v any, err error) {
		if err != nil {
			v = map[string]string{"error": err.Error()}
		}
		file := bugreport.JSON(name, v)
		file.Data = c.Clean(file.Data)
		files = append(files, file)
	}
	server, err := client.Typed.Discovery().ServerVersion()
	add("versions.json", map[string]any{"c9s": Version, "kubernetes": server}, err)
	for name, fresh := range map[string]bool{"status.json": true, "status-controller.json": false} {
		lab, err := client.Status(ctx, found, fresh)
		for i := range lab.Nodes { // commands are the author's, and print anything
			for j := range lab.Nodes[i].Commands {
				k := &lab.Nodes[i].Commands[j]
				k.Command, k.Output = bugreport.Removed, bugreport.Removed
			}
		}
		add(name, lab, err)
	}
	facts, err := doctor.Collector{Client: client.Typed, Namespace: found.Namespace, Fallback: client.Namespace}.Collect(ctx, doctor.Any())
	add("doctor.json", doctor.Examine(facts, doctor.Any()), err)
	return files
}
