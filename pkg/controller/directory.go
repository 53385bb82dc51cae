package controller

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Directory reads a lab's directory from its namespace and joins its parts.
func Directory(ctx context.Context, client kubernetes.Interface, namespace string) (contract.Directory, error) {
	var out contract.Directory
	for i := range contract.DirectoryParts {
		cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, contract.DirectoryName(i), metav1.GetOptions{})
		if apierrors.IsNotFound(err) && i > 0 {
			break
		}
		if err != nil {
			return out, fmt.Errorf("reading the directory: %w", err)
		}
		var part contract.Directory
		if err := json.Unmarshal([]byte(cm.Data[contract.DirectoryKey(i)]), &part); err != nil {
			return out, fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
		}
		out.Version, out.Lab = part.Version, part.Lab
		out.Nodes = append(out.Nodes, part.Nodes...)
	}
	return out, nil
}
