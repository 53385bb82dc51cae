package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/internal/kube"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
	"github.com/c9s-lab/c9s/test/cluster/internal/underlay"
)

func statusCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show a cluster's nodes, and what other clusters there are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := site.List()
			if err != nil {
				return err
			}
			for _, c := range all {
				if c.Name != *name {
					fmt.Fprintf(cmd.OutOrStdout(), "another cluster: %s\n", c.Name)
				}
			}
			c, err := site.Load(*name)
			if err != nil {
				return err
			}
			return showStatus(cmd.Context(), cmd.OutOrStdout(), c)
		},
	}
}

func showStatus(ctx context.Context, out io.Writer, c site.Cluster) error {
	conditions := nodeConditions(ctx, c)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tADDRESS\tINIT\tCABLE\tKUBERNETES")
	for _, n := range c.AllNodes() {
		process, cable := "stopped", "plugged"
		if pid, running := node.Running(n); running {
			process = fmt.Sprint(pid)
		}
		if n.Number > 0 && !underlay.PortIsUp(n) {
			cable = "cut"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", n.Name(), n.Address(), process, cable, conditions[n.Name()])
	}
	return w.Flush()
}

// nodeConditions are what the API server says, by node; of the control plane,
// whether it says anything.
func nodeConditions(ctx context.Context, c site.Cluster) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	said := map[string]string{}
	client, err := kube.New(c.Kubeconfig())
	if err != nil {
		said["control"] = err.Error()
		return said
	}
	nodes, err := client.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		said["control"] = err.Error()
		return said
	}
	said["control"] = "API server answers"
	for _, n := range nodes.Items {
		for _, condition := range n.Status.Conditions {
			if condition.Type == "Ready" {
				said[n.Name] = map[bool]string{true: "Ready", false: "NotReady: " + condition.Reason}[condition.Status == "True"]
			}
		}
	}
	return said
}
