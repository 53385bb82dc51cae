package render

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// managedBy is the label with the tool that an object belongs to.
const managedBy = "app.kubernetes.io/managed-by"

// labMeta is the metadata of an object of the lab as a whole.
func (x *index) labMeta(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: x.lab.Namespace,
		Labels: map[string]string{
			contract.LabelLab:       x.labLabel,
			contract.LabelComponent: component,
			managedBy:               "c9s",
		},
		Annotations: map[string]string{
			contract.AnnotationLabName: x.lab.Name,
			contract.AnnotationSource:  x.lab.Source,
			contract.AnnotationPlanner: x.planners,
			contract.AnnotationVersion: x.opts.Version,
		},
	}
}

// nodeMeta is the metadata of an object of node n in the Pod called pod: what selects the
// object, and whose it is.
func (x *index) nodeMeta(name, pod string, n *lab.Node) metav1.ObjectMeta {
	labels := x.selector(pod)
	labels[contract.LabelComponent] = contract.ComponentNode
	labels[managedBy] = "c9s"
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: x.lab.Namespace,
		Labels:    labels,
		Annotations: map[string]string{
			contract.AnnotationLabName:  x.lab.Name,
			contract.AnnotationNodeName: n.Name,
		},
	}
}

// describe adds labels of the node to those of what people look at: Deployments, Pods and
// Services.
func describe(labels map[string]string, n *lab.Node) {
	labels[contract.LabelNode] = n.ID
	labels[contract.LabelKind] = contract.LabelValue(n.Kind)
}

// recommend adds the labels that Kubernetes recommends to a workload. Other objects carry
// only the labels by which c9s selects them.
func (x *index) recommend(labels map[string]string, name string) {
	labels["app.kubernetes.io/name"] = name
	labels["app.kubernetes.io/part-of"] = x.labLabel
}

// selector finds the Pods of one Deployment.
func (x *index) selector(pod string) map[string]string {
	return map[string]string{contract.LabelLab: x.labLabel, contract.LabelPod: pod}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}
