package controller

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/pkg/links"
)

// Directory reads a lab's directory from its namespace and joins its parts.
func Directory(ctx context.Context, client kubernetes.Interface, namespace string) (links.Directory, error) {
	var out links.Directory
	for i := range links.DirectoryParts {
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, links.DirectoryName(i), metav1.GetOptions{})
		if apierrors.IsNotFound(err) && i > 0 {
			break
		}
		if err != nil {
			return out, fmt.Errorf("reading the directory: %w", err)
		}
		var part links.Directory
		if err := json.Unmarshal([]byte(cm.Data[links.DirectoryKey(i)]), &part); err != nil {
			return out, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
		}
		out.Version, out.Lab = part.Version, part.Lab
		out.Nodes = append(out.Nodes, part.Nodes...)
	}
	return out, nil
}
