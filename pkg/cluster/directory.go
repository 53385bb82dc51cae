package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/internal/foreign"
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
	cm, err := c.Typed.CoreV1().ConfigMaps(lab.Namespace).Get(ctx, contract.LinksConfigMap(pod), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the network of %s: %w", pod, err)
	}
	var links contract.Links
	if err := foreign.JSON([]byte(cm.Data[contract.LinksFile]), foreign.MaxElements, &links); err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
	}
	return links.Mgmt, nil
}
