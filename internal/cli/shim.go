//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/cluster"
)

func newShim(world IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shim",
		Short: "Stand in for docker or containerlab",
		Long: `Shim implements the calls that scripts and editors make to docker and containerlab, for labs
in the cluster. To use it without changing them, link c9s as docker, containerlab or clab in
a folder of PATH.`,
		Example: `  c9s shim docker exec clab-mylab-R1 ip -br address
  c9s shim containerlab inspect --all --format json
  ln -s "$(command -v c9s)" ~/bin/docker`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDocker(world), newContainerlab(world))
	return cmd
}

// containersOf reads the containers of labs.
func containersOf(ctx context.Context, client *cluster.Client, labs []cluster.Found) ([]cluster.Container, error) {
	labs = slices.DeleteFunc(slices.Clone(labs), func(l cluster.Found) bool { return l.DataOnly })
	lists, errs := make([][]cluster.Container, len(labs)), make([]error, len(labs))
	bounded.Each(len(labs), execAtOnce, func(i int) { lists[i], errs[i] = client.Containers(ctx, labs[i]) })
	return slices.Concat(lists...), errors.Join(errs...)
}

// found is a container that was named, and the node by which c9s' commands know it: NODE/SLOT
// for a card of a chassis.
type foundContainer struct {
	cluster.Container
	node string
}

// ref returns the lab of a container as c9s' commands take it.
func (c *foundContainer) ref(t targetFlags) nodeRef {
	return nodeRef{targetFlags: t, lab: c.Lab.Name, namespace: c.Lab.Namespace}
}

// findContainer finds the container of a name. It reads the labs first whose names are in it.
func findContainer(ctx context.Context, client *cluster.Client, name string) (*foundContainer, error) {
	labs, err := client.Labs(ctx, "")
	if err != nil {
		return nil, err
	}
	var likely, others []cluster.Found
	for _, l := range labs {
		if strings.Contains(name, "-"+l.Name+"-") {
			likely = append(likely, l)
		} else {
			others = append(others, l)
		}
	}
	for _, labs := range [][]cluster.Found{likely, others} {
		list, err := containersOf(ctx, client, labs)
		if err != nil {
			return nil, err
		}
		c, err := pickContainer(list, name, client.Namespace)
		if c != nil || err != nil {
			return c, err
		}
	}
	return nil, noSuchContainer(name)
}

func noSuchContainer(name string) error {
	return fmt.Errorf("no such container: %s; 'c9s shim docker ps -a' lists them", name)
}

// pickContainer finds a container by its name; nil for none. Of several labs of one name, that
// in the preferred namespace is meant.
func pickContainer(list []cluster.Container, name, prefer string) (*foundContainer, error) {
	var fit []foundContainer
	for i := range list {
		if node, ok := nodeOf(&list[i], name); ok {
			fit = append(fit, foundContainer{list[i], node})
		}
	}
	if len(fit) > 1 {
		if here := slices.DeleteFunc(slices.Clone(fit), func(c foundContainer) bool { return c.Lab.Namespace != prefer }); len(here) == 1 {
			fit = here
		}
	}
	switch len(fit) {
	case 0:
		return nil, nil
	case 1:
		return &fit[0], nil
	}
	var where []string
	for _, c := range fit {
		where = append(where, c.LongName+" in namespace "+c.Lab.Namespace)
	}
	return nil, fmt.Errorf("%s is the name of several containers: %s; choose one by the namespace of the kubeconfig's context", name, strings.Join(where, ", "))
}

// nodeOf returns the name of the node whose container, or whose card, goes by a name.
func nodeOf(c *cluster.Container, name string) (string, bool) {
	if calledSo(c, name) {
		return c.Name, true
	}
	for _, container := range c.Containers {
		if slot, card := strings.CutPrefix(container, c.Deployment+"-"); card && strings.EqualFold(name, c.LongName+"-"+slot) {
			return c.Name + "/" + slot, true
		}
	}
	return "", false
}
