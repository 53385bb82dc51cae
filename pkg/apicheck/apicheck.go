// Package apicheck applies the rules of the API server to objects, offline.
package apicheck

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/c9s-lab/c9s/internal/inorder"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/manifest"
)

// Limits of the API, in bytes.
const (
	maxObject      = 1 << 20
	maxAnnotations = 256 << 10
	// clientApply leaves what kubectl adds around the object room within
	// maxAnnotations.
	clientApply = maxAnnotations - 4096
)

// Check applies the API server's rules to objs, offline: names, sizes, labels,
// references among the objects, and what a Pod has to keep to. It knows the types
// that c9s renders; of others it looks at the metadata only.
func Check(objs []manifest.Object) []diag.Diagnostic {
	const together = 200
	index := indexObjects(objs)
	var all diag.List
	_ = inorder.Do((len(objs)+together-1)/together, func(i int) ([]diag.Diagnostic, error) { // neither side fails
		c := checker{index: index, known: newKnown()}
		for j := i * together; j < min(len(objs), (i+1)*together); j++ {
			c.object(&objs[j])
		}
		return c.diags.All(), nil
	}, func(diags []diag.Diagnostic) error {
		all.Append(diags)
		return nil
	})
	return all.All()
}

// checker collects what is wrong; obj and what name the object in hand.
type checker struct {
	diags diag.List
	index objectIndex
	known known
	pos   diag.Pos
	what  string
}

func (c *checker) errorf(code diag.Code, format string, args ...any) {
	c.diags.Errorf(code, c.pos, "", "%s: %s", c.what, fmt.Sprintf(format, args...))
}

func (c *checker) object(o *manifest.Object) {
	meta, ok := o.Object.(metav1.Object)
	if !ok {
		return
	}
	kind := o.Kind()
	c.pos = o.Pos
	defer c.diags.ForNode(o.Node)()
	c.what = kind + " " + meta.GetName()
	c.name(kind, meta)
	c.metadata(meta.GetLabels(), meta.GetAnnotations())
	c.size(o)
	if first := c.index[keyOf(o)]; first != o {
		c.errorf(CodeDuplicate, "it is already defined at %s", first.Source)
	}
	switch obj := o.Object.(type) {
	case *appsv1.Deployment:
		c.deployment(obj)
	case *corev1.ConfigMap:
		for key := range obj.Data {
			c.key(key)
		}
		for key := range obj.BinaryData {
			c.key(key)
			if _, both := obj.Data[key]; both {
				c.errorf(CodeKey, "the key %q is in data and in binaryData", key)
			}
		}
	case *corev1.Secret:
		for key := range obj.Data {
			c.key(key)
		}
	case *corev1.Service:
		c.service(obj)
	case *corev1.PersistentVolumeClaim:
		if size := obj.Spec.Resources.Requests[corev1.ResourceStorage]; size.Sign() <= 0 {
			c.errorf(CodeResources, "a claim must request storage")
		}
	}
}

// name applies the rule of the object's type.
func (c *checker) name(kind string, meta metav1.Object) {
	rule := apivalidation.NameIsDNSSubdomain
	switch kind {
	case "Service":
		rule = apivalidation.NameIsDNS1035Label
	case "Namespace":
		rule = apivalidation.NameIsDNSLabel
	case "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		rule = func(name string, _ bool) []string { return nil } // any path segment
	}
	for _, why := range rule(meta.GetName(), false) {
		c.errorf(CodeName, "the name %q is not legal: %s", meta.GetName(), why)
	}
	if ns := meta.GetNamespace(); ns != "" {
		for _, why := range validation.IsDNS1123Label(ns) {
			c.errorf(CodeName, "the namespace %q is not legal: %s", ns, why)
		}
	}
}

// metadata checks labels and annotations, of an object or of a Pod template.
func (c *checker) metadata(labels, annotations map[string]string) {
	for key, text := range labels {
		if c.known.legalLabel(key, text) {
			continue
		}
		for _, why := range slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(text)) {
			c.errorf(CodeLabel, "the label %s=%q is not legal: %s", key, text, why)
		}
	}
	size := 0
	for key, text := range annotations {
		size += len(key) + len(text)
		if c.known.legalKey(key) {
			continue
		}
		for _, why := range validation.IsQualifiedName(strings.ToLower(key)) {
			c.errorf(CodeLabel, "the annotation %q is not legal: %s", key, why)
		}
	}
	if size > maxAnnotations {
		c.errorf(CodeLabel, "the annotations have %d bytes; the limit is %d", size, maxAnnotations)
	}
}

func (c *checker) size(o *manifest.Object) {
	data, err := o.JSON()
	switch {
	case err != nil:
		c.errorf(CodeEncode, "%v", err)
	case len(data) >= maxObject:
		c.diags.Errorf(CodeSize, c.pos, "use smaller files, or put them in the image or on a volume",
			"%s: it has %d bytes; the limit is %d", c.what, len(data), maxObject)
	case len(data) > clientApply:
		c.diags.Warnf(CodeApplySize, c.pos, "apply it with c9s deploy or with kubectl apply --server-side",
			"%s: it has %d bytes, too many for kubectl apply, which copies it into an annotation", c.what, len(data))
	}
}

func (c *checker) key(key string) {
	for _, why := range validation.IsConfigMapKey(key) {
		c.errorf(CodeKey, "the key %q is not legal: %s", key, why)
	}
}

func (c *checker) service(s *corev1.Service) {
	headless := s.Spec.ClusterIP == corev1.ClusterIPNone
	if len(s.Spec.Ports) == 0 && !headless && s.Spec.Type != corev1.ServiceTypeExternalName {
		c.errorf(CodePort, "it has no port")
	}
	type number struct {
		protocol corev1.Protocol
		port     int32
	}
	names, numbers := map[string]bool{}, map[number]bool{}
	for _, port := range s.Spec.Ports {
		protocol := port.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		c.portName(port.Name, len(s.Spec.Ports) > 1, validation.IsDNS1123Label)
		c.portNumber(port.Port, protocol)
		if names[port.Name] {
			c.errorf(CodePort, "the port name %q occurs twice", port.Name)
		}
		if key := (number{protocol, port.Port}); numbers[key] {
			c.errorf(CodePort, "the port %d/%s occurs twice", port.Port, protocol)
		} else {
			numbers[key] = true
		}
		names[port.Name] = true
	}
	c.metadata(s.Spec.Selector, nil)
}

func (c *checker) portName(name string, required bool, rule func(string) []string) {
	if name == "" {
		if required {
			c.errorf(CodePort, "a port has no name")
		}
		return
	}
	for _, why := range rule(name) {
		c.errorf(CodePort, "the port name %q is not legal: %s", name, why)
	}
}

func (c *checker) portNumber(port int32, protocol corev1.Protocol) {
	for _, why := range validation.IsValidPortNum(int(port)) {
		c.errorf(CodePort, "the port %d is not legal: %s", port, why)
	}
	switch protocol {
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	default:
		c.errorf(CodePort, "the protocol %q of port %d is not TCP, UDP or SCTP", protocol, port)
	}
}
