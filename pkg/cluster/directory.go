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
