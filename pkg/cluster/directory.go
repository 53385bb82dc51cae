package cluster

import (
	"context"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/controller"
)

// Directory returns the names and management addresses of a lab's nodes.
func (c *Client) Directory(ctx context.Context, lab Found) (contract.Directory, error) {
	return controller.Directory(ctx, c.Typed, lab.Namespace)
}

// Topology returns the links of a lab.
func (c *Client) Topology(ctx context.Context, lab Found) ([]contract.TopologyLink, error) {
	t, err := controller.Topology(ctx, c.Typed, lab.Namespace)
	return t.Links, err
}

// Management returns the management section of a Pod's network, nil if it has none.
func (c *Client) Management(ctx context.Context, lab Found, pod string) (*contract.Mgmt, error) {
	links, err := c.Links(ctx, lab, pod)
	if err != nil {
		return nil, err
	}
	return links.Mgmt, nil
}
