package main

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/test/cluster/internal/bringup"
	"github.com/c9s-lab/c9s/test/cluster/internal/images"
	"github.com/c9s-lab/c9s/test/cluster/internal/registry"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

func upCommand(name *string) *cobra.Command {
	var want site.Cluster
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster, or what has stopped of one",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			want.Name = *name
			return bringup.Up(cmd.Context(), want, os.Stderr)
		},
	}
	cmd.Flags().IntVar(&want.Workers, "workers", 3, "number of workers")
	cmd.Flags().IntVar(&want.MTU, "mtu", 1500, "MTU of the network between workers, and of Pods")
	cmd.Flags().BoolVar(&want.IPv6, "ipv6", false, "give nodes, Pods and Services IPv6 addresses as well")
	cmd.Flags().IntVar(&want.FakeWorkers, "fake-workers", 0, "number of simulated workers besides, for tests of scale")
	cmd.Flags().BoolVar(&want.Audit, "audit", false, "keep a log of who writes what to the API server")
	cmd.Flags().BoolVar(&want.Merge, "merge-kubeconfig", false, "add the cluster to your own kubeconfig, until it is removed")
	return cmd
}

func downCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove a cluster and leave the host as it was",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bringup.Down(cmd.Context(), *name, os.Stderr)
		},
	}
}

func kubeconfigCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of a cluster's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := site.Load(*name)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
			}
			return err
		},
	}
}

func loadCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE...",
		Short: "Bring images into a cluster's registry",
		Long: "Bring images into a cluster's registry. IMAGE is one of the test images (" + strings.Join(images.Names(), ", ") + "),\n" +
			"or a path with an optional =NAME:TAG: a tarball of `docker save`, an OCI layout (a folder or a tarball), or a static program.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := site.Load(*name)
			if err != nil {
				return err
			}
			for _, image := range args {
				if err := bringup.Load(cmd.Context(), c, image, func(line string) { fmt.Fprintln(os.Stderr, line) }); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// registryCommand is what the control plane's node runs.
func registryCommand(use string) *cobra.Command {
	var address, dir string
	cmd := &cobra.Command{
		Use:    use,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			return registry.Registry{Dir: dir}.Serve(l)
		},
	}
	cmd.Flags().StringVar(&address, "listen", "", "address and port to serve on")
	cmd.Flags().StringVar(&dir, "images", "", "folder of OCI layouts")
	return cmd
}
