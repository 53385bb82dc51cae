package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/internal/foreign"
	"github.com/c9s-lab/c9s/internal/packed"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// Topology reads the list of a lab's links from its namespace and joins its parts. Links are
// nil for a lab that an older c9s rendered.
func Topology(ctx context.Context, client kubernetes.Interface, namespace string) (contract.Topology, error) {
	var out contract.Topology
	for i := range contract.TopologyParts {
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, contract.TopologyName(i), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && i == 0 {
			break
		}
		if err != nil {
			return contract.Topology{}, fmt.Errorf("reading the list of links: %w", err)
		}
		var part contract.Topology
		if err := foreign.JSON([]byte(cm.Data[contract.TopologyFile]), foreign.MaxElements, &part); err != nil {
			return contract.Topology{}, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
		}
		out.Links = append(out.Links, part.Links...)
		if i == 0 {
			out.Pods = part.Pods
		}
		if out.Links == nil {
			out.Links = []contract.TopologyLink{}
		}
	}
	return out, nil
}

// Directory reads a lab's directory from its namespace.
func Directory(ctx context.Context, client kubernetes.Interface, namespace string) (out contract.Directory, err error) {
	cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, contract.DirectoryConfigMap, metav1.GetOptions{})
	if err != nil {
		return out, fmt.Errorf("reading the directory: %w", err)
	}
	text, err := packed.Text(cm.Data, cm.BinaryData, contract.DirectoryFile, foreign.MaxLab)
	if err == nil {
		err = foreign.JSON(text, foreign.MaxLabElements, &out)
	}
	if err != nil {
		return out, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
	}
	return out, nil
}
