package apicheck

import (
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/c9s-lab/c9s/pkg/contract"
)

func (c *checker) deployment(d *appsv1.Deployment) {
	template := d.Spec.Template
	c.metadata(template.Labels, template.Annotations)
	if d.Spec.Selector == nil || len(d.Spec.Selector.MatchLabels)+len(d.Spec.Selector.MatchExpressions) == 0 {
		c.errorf(CodeSelector, "it has no selector")
	} else {
		for key, text := range d.Spec.Selector.MatchLabels {
			if template.Labels[key] != text {
				c.errorf(CodeSelector, "the selector %s=%s does not match the Pod's label %q", key, text, template.Labels[key])
			}
		}
	}
	c.podSpec(d.Namespace, &template.Spec)
}

func (c *checker) podSpec(namespace string, spec *corev1.PodSpec) {
	if !c.index.hasAccount(namespace, spec.ServiceAccountName) {
		c.errorf(CodeReference, "there is no ServiceAccount %q", spec.ServiceAccountName)
	}
	if spec.Hostname != "" {
		for _, why := range validation.IsDNS1123Label(spec.Hostname) {
			c.errorf(CodeHostname, "the hostname %q is not legal: %s", spec.Hostname, why)
		}
	}
	if spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace && spec.HostPID {
		c.errorf(CodePIDMode, "hostPID and shareProcessNamespace exclude each other")
	}
	c.metadata(spec.NodeSelector, nil)
	c.dns(spec)
	c.affinity(spec.Affinity)
	volumes := c.volumes(namespace, spec.Volumes)
	if len(spec.Containers) == 0 {
		c.errorf(CodeContainerName, "the Pod has no container")
	}
	names := map[string]bool{}
	pod := c.what
	for i, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		c.what = pod + ", container " + container.Name
		if names[container.Name] {
			c.errorf(CodeContainerName, "the name occurs twice")
		}
		names[container.Name] = true
		init := i < len(spec.InitContainers)
		c.container(&container, volumes, init && !sidecar(&container))
	}
	c.what = pod
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// dns keeps to the kubelet's limits: 3 nameservers, 32 search domains.
func (c *checker) dns(spec *corev1.PodSpec) {
	if spec.DNSConfig == nil {
		return
	}
	if len(spec.DNSConfig.Nameservers) > 3 {
		c.errorf(CodeReference, "there are %d nameservers; a Pod can have 3", len(spec.DNSConfig.Nameservers))
	}
	if len(spec.DNSConfig.Searches) > 32 {
		c.errorf(CodeReference, "there are %d search domains; a Pod can have 32", len(spec.DNSConfig.Searches))
	}
	for _, search := range spec.DNSConfig.Searches {
		if search == "." {
			continue
		}
		for _, why := range validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(search, ".")) {
			c.errorf(CodeName, "the search domain %q is not legal: %s", search, why)
		}
	}
	for _, option := range spec.DNSConfig.Options {
		if option.Name == "" {
			c.errorf(CodeName, "a resolver option has no name")
		}
	}
}

// volumes checks a Pod's volumes and what they refer to, and returns their names.
func (c *checker) volumes(namespace string, volumes []corev1.Volume) map[string]bool {
	names := make(map[string]bool, len(volumes))
	for _, v := range volumes {
		for _, why := range validation.IsDNS1123Label(v.Name) {
			c.errorf(CodeVolume, "the volume name %q is not legal: %s", v.Name, why)
		}
		if names[v.Name] {
			c.errorf(CodeVolume, "the volume %q is defined twice", v.Name)
		}
		names[v.Name] = true
		switch {
		case strings.HasPrefix(v.Name, contract.ExternalVolume):
			// The Secret or ConfigMap is the user's own.
		case v.ConfigMap != nil:
			c.source("ConfigMap", namespace, v.ConfigMap.Name, v.ConfigMap.Optional, v.ConfigMap.Items)
		case v.Secret != nil:
			c.source("Secret", namespace, v.Secret.SecretName, v.Secret.Optional, v.Secret.Items)
		case v.PersistentVolumeClaim != nil && v.Name == contract.SharedVolume:
			// The claim is the user's own.
		case v.PersistentVolumeClaim != nil:
			c.source("PersistentVolumeClaim", namespace, v.PersistentVolumeClaim.ClaimName, nil, nil)
		case v.HostPath != nil:
			if !path.IsAbs(v.HostPath.Path) || slices.Contains(strings.Split(v.HostPath.Path, "/"), "..") {
				c.errorf(CodeVolume, "the worker's path %q is not absolute or has \"..\"", v.HostPath.Path)
			}
		case v.EmptyDir != nil:
			if v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() < 0 {
				c.errorf(CodeResources, "the volume %q has a negative size", v.Name)
			}
		case v.Projected != nil:
			c.projected(namespace, v)
		}
	}
	return names
}

// projected checks the sources and that no two of them bring one path.
func (c *checker) projected(namespace string, v corev1.Volume) {
	paths := map[string]bool{}
	for _, s := range v.Projected.Sources {
		var items []corev1.KeyToPath
		switch {
		case s.ConfigMap != nil:
			items = s.ConfigMap.Items
			c.source("ConfigMap", namespace, s.ConfigMap.Name, s.ConfigMap.Optional, items)
		case s.Secret != nil:
			items = s.Secret.Items
			c.source("Secret", namespace, s.Secret.Name, s.Secret.Optional, items)
		}
		for _, item := range items {
			if paths[item.Path] {
				c.errorf(CodeVolume, "the volume %q has the path %q twice", v.Name, item.Path)
			}
			paths[item.Path] = true
		}
	}
}

// source reports an object that a volume refers to and that does not exist.
func (c *checker) source(kind, namespace, name string, optional *bool, items []corev1.KeyToPath) {
	if optional != nil && *optional {
		return
	}
	if !c.index.has(kind, namespace, name) {
		c.errorf(CodeReference, "there is no %s %q", kind, name)
	}
	for _, key := range c.index.missingKeys(kind, namespace, name, items) {
		c.errorf(CodeReference, "the %s %q has no key %q", kind, name, key)
	}
}
