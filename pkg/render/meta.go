package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
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
			contract.LabelLab:              r.labLabel,
			contract.LabelComponent:        component,
			"app.kubernetes.io/name":       "c9s",
			"app.kubernetes.io/component":  component,
			"app.kubernetes.io/part-of":    r.labLabel,
			"app.kubernetes.io/managed-by": "c9s",
		},
		Annotations: map[string]string{
			contract.AnnotationLabName: r.lab.Name,
			contract.AnnotationSource:  r.lab.Source,
			contract.AnnotationPlanner: r.opts.Planner,
			contract.AnnotationVersion: r.opts.Version,
		},
	}
}

// nodeMeta is the metadata of an object of node n in the Pod called pod.
func (r *renderer) nodeMeta(name, pod string, n *lab.Node) metav1.ObjectMeta {
	labels := r.selector(pod)
	labels[contract.LabelNode] = n.ID
	labels[contract.LabelKind] = LabelValue(n.Kind)
	labels[contract.LabelComponent] = contract.ComponentNode
	labels["app.kubernetes.io/name"] = LabelValue(n.Kind)
	labels["app.kubernetes.io/instance"] = n.ID
	labels["app.kubernetes.io/component"] = contract.ComponentNode
	labels["app.kubernetes.io/part-of"] = r.labLabel
	labels["app.kubernetes.io/managed-by"] = "c9s"
	return metav1.ObjectMeta{
		Name:      name,
		Namespace: r.lab.Namespace,
		Labels:    labels,
		Annotations: map[string]string{
			contract.AnnotationLabName:  r.lab.Name,
			contract.AnnotationNodeName: n.Name,
			contract.AnnotationSource:   n.Source(),
			contract.AnnotationPlanner:  r.opts.Planner,
		},
	}
}

// selector finds the Pods of one Deployment.
func (r *renderer) selector(pod string) map[string]string {
	return map[string]string{contract.LabelLab: r.labLabel, contract.LabelPod: pod}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}
