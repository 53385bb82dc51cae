package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

func logsCommand(name *string) *cobra.Command {
	var lines int
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs [COMPONENT]",
		Short: "Show the logs of a component (kubelet, n1/kubelet, etcd), or which there are",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := site.Load(*name)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return listLogs(cmd.OutOrStdout(), c)
			}
			files := findLogs(c, args[0])
			if len(files) == 0 {
				return fmt.Errorf("cluster %s has no component %q: `c9s-cluster logs` lists them", c.Name, args[0])
			}
			return showLogs(cmd, files, lines, follow)
		},
	}
	cmd.Flags().IntVar(&lines, "tail", 100, "number of last lines")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as the log grows")
	return cmd
}

func listLogs(out io.Writer, c site.Cluster) error {
	for _, n := range c.AllNodes() {
		for _, file := range logsOf(n) {
			fmt.Fprintf(out, "%s/%s\n", n.Name(), component(file))
		}
	}
	return nil
}

// findLogs finds NODE/COMPONENT, or the COMPONENT of all nodes.
func findLogs(c site.Cluster, wanted string) []string {
	var found []string
	for _, n := range c.AllNodes() {
		for _, file := range logsOf(n) {
			if wanted == component(file) || wanted == n.Name()+"/"+component(file) {
				found = append(found, file)
			}
		}
	}
	return found
}

func logsOf(n site.Node) []string {
	files, err := filepath.Glob(filepath.Join(n.Logs(), "*.log"))
	if err != nil {
		return nil
	}
	sort.Strings(files)
	return files
}

func component(file string) string { return strings.TrimSuffix(filepath.Base(file), ".log") }

func showLogs(cmd *cobra.Command, files []string, lines int, follow bool) error {
	args := []string{"-n", fmt.Sprint(lines)}
	if follow {
		args = append(args, "-F")
	}
	tail := exec.CommandContext(cmd.Context(), "tail", append(args, files...)...)
	tail.Stdout, tail.Stderr = cmd.OutOrStdout(), os.Stderr
	return tail.Run()
}
