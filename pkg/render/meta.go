package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// Labels. Their values are Kubernetes names; the names as written are in
// annotations.
const (
	// LabelLab, LabelPod and LabelNode say what an object belongs to. Objects of
	// a whole Pod carry LabelNode of the primary node.
	LabelLab  = "c9s.dev/lab"
	LabelPod  = "c9s.dev/pod"
	LabelNode = "c9s.dev/node"
	// LabelKind is the node's kind.
	LabelKind = "c9s.dev/kind"
	// LabelComponent is ComponentNode, ComponentLab or ComponentController.
	LabelComponent = "c9s.dev/component"
)

// Values of LabelComponent.
const (
	ComponentNode       = "node"
	ComponentLab        = "lab"
	ComponentController = "controller"
)

// Annotations.
const (
	// AnnotationSource is the line of the topology file: "topo.clab.yml:17".
	AnnotationSource = "c9s.dev/source"
	// AnnotationPlanner is the planner and its version: "builtin/0.79.0".
	AnnotationPlanner = "c9s.dev/planner"
	// AnnotationVersion is the version of c9s (Namespace-wide objects only).
	AnnotationVersion = "c9s.dev/version"
	// AnnotationLabName and AnnotationNodeName are the names as written; a Pod
	// of several nodes lists them with commas, the primary first.
	AnnotationLabName  = "c9s.dev/lab-name"
	AnnotationNodeName = "c9s.dev/node-name"
	// AnnotationStaged is a digest of everything that is laid out for the Pod.
	AnnotationStaged = "c9s.dev/staged"
	// AnnotationLinkApply says how a change of links reaches the device: live,
	// restart or recreate.
	AnnotationLinkApply = "c9s.dev/link-apply-mode"
	// AnnotationContainers are the containers of each node of a Deployment, in
	// JSON: {"SR1":["sr1-a","sr1-1"]}. A bridge has none.
	AnnotationContainers = "c9s.dev/containers"
	// AnnotationTopologyLabels are the node's labels in the topology, in JSON.
	AnnotationTopologyLabels = "c9s.dev/topology-labels"
)

const maxLabelValue = 63

// shortDigest is the first 10 hexadecimal digits of the SHA-256 of parts, each
// preceded by its length so that no two lists of parts run together.
func shortDigest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		for i, l := 0, len(p); i < 8; i, l = i+1, l>>8 {
			n[i] = byte(l)
		}
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:5])
}

// fit shortens a name to limit characters: what is cut away is replaced by a
// digest of the whole name.
func fit(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return strings.TrimRight(name[:limit-7], "-._") + "-" + shortDigest(name)[:6]
}

// slug makes a DNS label (RFC 1123) of any text: lower case, "-" for every run
// of other characters, at most limit characters. It may be empty.
func slug(text string, limit int) string {
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(text)) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteByte(c)
		case b.Len() > 0 && b.String()[b.Len()-1] != '-':
			b.WriteByte('-')
		}
	}
	return fit(strings.TrimRight(b.String(), "-"), limit)
}

// LabelValue makes a legal label value of any text, keeping case and "-._".
func LabelValue(text string) string {
	return fit(strings.Trim(legal(text, '-'), "-._"), maxLabelValue)
}

// legal puts by in place of each byte that neither a label value nor a data key can
// have: all but letters, digits, "-", "." and "_".
func legal(text string, by byte) string {
	b := []byte(text)
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_':
		default:
			b[i] = by
		}
	}
	return string(b)
}

// labMeta is the metadata of an object of the lab as a whole.
func (r *renderer) labMeta(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: r.lab.Namespace,
		Labels: map[string]string{
			LabelLab:                       r.labLabel,
			LabelComponent:                 component,
			"app.kubernetes.io/name":       "c9s",
			"app.kubernetes.io/component":  component,
			"app.kubernetes.io/part-of":    r.labLabel,
			"app.kubernetes.io/managed-by": "c9s",
		},
		Annotations: map[string]string{
			AnnotationLabName: r.lab.Name,
			AnnotationSource:  r.lab.Source,
			AnnotationPlanner: r.opts.Planner,
			AnnotationVersion: r.opts.Version,
		},
	}
}

// nodeMeta is the metadata of an object of node n in the Pod called pod.
func (r *renderer) nodeMeta(name, pod string, n *lab.Node) metav1.ObjectMeta {
	labels := r.selector(pod)
	labels[LabelNode] = n.ID
	labels[LabelKind] = LabelValue(n.Kind)
	labels[LabelComponent] = ComponentNode
	labels["app.kubernetes.io/name"] = LabelValue(n.Kind)
	labels["app.kubernetes.io/instance"] = n.ID
	labels["app.kubernetes.io/component"] = ComponentNode
	labels["app.kubernetes.io/part-of"] = r.labLabel
	labels["app.kubernetes.io/managed-by"] = "c9s"
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: r.lab.Namespace,
		Labels:    labels,
		Annotations: map[string]string{
			AnnotationLabName:  r.lab.Name,
			AnnotationNodeName: n.Name,
			AnnotationSource:   n.Source(),
			AnnotationPlanner:  r.opts.Planner,
		},
	}
}

// selector finds the Pods of one Deployment.
func (r *renderer) selector(pod string) map[string]string {
	return map[string]string{LabelLab: r.labLabel, LabelPod: pod}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}
