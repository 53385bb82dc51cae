package apicheck

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// container checks one container of a Pod. once reports whether it is an init
// container that ends, which has no probes and no lifecycle.
func (c *checker) container(k *corev1.Container, volumes map[string]bool, once bool) {
	for _, why := range validation.IsDNS1123Label(k.Name) {
		c.errorf(CodeContainerName, "the name %q is not legal: %s", k.Name, why)
	}
	if !c.known.legalImage(k.Image) {
		c.diags.Errorf(CodeImage, c.pos, imageHint(k.Image), "%s: the image %q is not a reference", c.what, k.Image)
	}
	switch k.ImagePullPolicy {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		c.errorf(CodeImage, "the pull policy %q is not Always, IfNotPresent or Never", k.ImagePullPolicy)
	}
	for _, env := range k.Env {
		for _, why := range validation.IsRelaxedEnvVarName(env.Name) {
			c.errorf(CodeEnvName, "the variable %q is not legal: %s", env.Name, why)
		}
		if strings.ContainsRune(env.Value, 0) {
			c.errorf(CodeEnvName, "the variable %q has a zero byte", env.Name)
		}
	}
	c.mounts(k, volumes)
	c.containerPorts(k)
	c.resources(&k.Resources)
	for name, probe := range map[string]*corev1.Probe{"readiness": k.ReadinessProbe, "liveness": k.LivenessProbe, "startup": k.StartupProbe} {
		if probe == nil {
			continue
		}
		if once {
			c.errorf(CodeProbe, "an init container that exits cannot have a %s probe", name)
		}
		c.probe(name, probe)
	}
	if s := k.SecurityContext; s != nil && s.Privileged != nil && *s.Privileged && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		c.errorf(CodeSecurityOpt, "a privileged container cannot disallow privilege escalation")
	}
}

func (c *checker) mounts(k *corev1.Container, volumes map[string]bool) {
	paths := map[string]bool{}
	for _, m := range k.VolumeMounts {
		if !volumes[m.Name] {
			c.errorf(CodeReference, "there is no volume %q for %s", m.Name, m.MountPath)
		}
		if !path.IsAbs(m.MountPath) || strings.Contains(m.MountPath, ":") || path.Clean(m.MountPath) == "/" {
			c.errorf(CodeMountPath, "the mount path %q is not absolute, is the root, or has a colon", m.MountPath)
		}
		if clean := path.Clean(m.MountPath); paths[clean] {
			c.errorf(CodeMountPath, "the mount path %q occurs twice", m.MountPath)
		} else {
			paths[clean] = true
		}
		if path.IsAbs(m.SubPath) || slices.Contains(strings.Split(m.SubPath, "/"), "..") {
			c.errorf(CodeMountPath, "the path %q in the volume %q is absolute or has \"..\"", m.SubPath, m.Name)
		}
	}
}

func (c *checker) containerPorts(k *corev1.Container) {
	names := map[string]bool{}
	for _, port := range k.Ports {
		c.portName(port.Name, false, validation.IsValidPortName)
		protocol := port.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		c.portNumber(port.ContainerPort, protocol)
		if port.Name != "" && names[port.Name] {
			c.errorf(CodePort, "the port name %q occurs twice", port.Name)
		}
		names[port.Name] = true
	}
}

// resources: known names, no negative quantity, and no request above its limit. Of
// an extended resource there are whole ones only, and no more than are asked for.
func (c *checker) resources(r *corev1.ResourceRequirements) {
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name, quantity := range list {
			c.resourceName(name, quantity)
		}
	}
	for name, request := range r.Requests {
		if limit := r.Limits[name]; extended(name) && request.Cmp(limit) != 0 {
			c.errorf(CodeResources, "the request of %s must be equal to its limit", name)
		}
	}
	for name, limit := range r.Limits {
		if limit.Sign() < 0 {
			c.errorf(CodeResources, "the limit of %s is negative", name)
		}
	}
	for name, request := range r.Requests {
		if request.Sign() < 0 {
			c.errorf(CodeResources, "the request of %s is negative", name)
		}
		if limit, ok := r.Limits[name]; ok && request.Cmp(limit) > 0 {
			c.errorf(CodeResources, "the request of %s exceeds its limit: %s, %s", name, request.String(), limit.String())
		}
	}
}

func (c *checker) resourceName(name corev1.ResourceName, quantity resource.Quantity) {
	switch {
	case !extended(name):
		if !slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, name) &&
			!strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			c.errorf(CodeResources, "the resource %q is not cpu, memory, ephemeral-storage or hugepages-*, and has no domain", name)
		}
	case len(validation.IsQualifiedName(string(name))) > 0:
		c.errorf(CodeResources, "the name of the resource %q is not legal", name)
	case quantity.MilliValue()%1000 != 0:
		c.errorf(CodeResources, "the resource %s must be a whole number, not %s", name, quantity.String())
	}
}

// extended reports whether a resource belongs to a device plugin and not to Kubernetes.
func extended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

func (c *checker) probe(name string, p *corev1.Probe) {
	handlers := 0
	for _, set := range []bool{p.Exec != nil, p.HTTPGet != nil, p.TCPSocket != nil, p.GRPC != nil} {
		if set {
			handlers++
		}
	}
	if handlers != 1 {
		c.errorf(CodeProbe, "the %s probe has %d handlers; it must have exactly one", name, handlers)
	}
	if p.Exec != nil && len(p.Exec.Command) == 0 {
		c.errorf(CodeProbe, "the %s probe has an empty command", name)
	}
	if min(p.InitialDelaySeconds, p.PeriodSeconds, p.TimeoutSeconds, p.FailureThreshold, p.SuccessThreshold) < 0 {
		c.errorf(CodeProbe, "the %s probe has a negative number", name)
	}
	if name != "readiness" && p.SuccessThreshold > 1 {
		c.errorf(CodeProbe, "the successThreshold of the %s probe must be 1", name)
	}
}
