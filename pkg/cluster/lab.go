package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/common"
	"sigs.k8s.io/cli-utils/pkg/inventory"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/render"
)

// InventoryName is the ConfigMap in which a lab's objects are recorded, in the
// lab's namespace (cli-utils' inventory).
const InventoryName = "c9s-inventory"

// ComponentInventory is the LabelComponent of the inventory.
const ComponentInventory = "inventory"

// Lab is a rendered lab on its way into a cluster.
type Lab struct {
	Name, Namespace string
	// namespace is the Namespace object, nil where none is rendered.
	namespace *unstructured.Unstructured
	objects   []*unstructured.Unstructured
}

// NewLab takes over what render made.
func NewLab(out *render.Output) (*Lab, error) {
	l := &Lab{Name: out.Lab, Namespace: out.Namespace}
	for i := range out.Objects {
		data, err := out.Objects[i].JSON()
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(data, &u.Object); err != nil {
			return nil, fmt.Errorf("reading back a rendered object: %w", err)
		}
		if u.GetKind() == "Namespace" {
			l.namespace = u
			continue
		}
		l.objects = append(l.objects, u)
	}
	return l, nil
}

// inventoryID tells labs' inventories apart (label cli-utils.sigs.k8s.io/inventory-id).
func inventoryID(namespace, lab string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + lab))
	return "c9s-" + hex.EncodeToString(sum[:8])
}

// inventoryInfo is the lab's inventory, as cli-utils takes it.
func inventoryInfo(namespace, lab string) inventory.Info {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	u.SetNamespace(namespace)
	u.SetName(InventoryName)
	u.SetLabels(map[string]string{
		common.InventoryLabel:          inventoryID(namespace, lab),
		contract.LabelComponent:        ComponentInventory,
		"app.kubernetes.io/managed-by": "c9s",
	})
	u.SetAnnotations(map[string]string{contract.AnnotationLabName: lab})
	return inventory.WrapInventoryInfoObj(u)
}
