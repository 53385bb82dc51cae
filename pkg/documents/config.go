package documents

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
)

// compileConfig adds the cluster's defaults, after those of the lab.
func (r *reader) compileConfig(o *object) {
	var spec configSpec
	if o.Spec.node == nil {
		return
	}
	r.d.Decode(o.Spec.node, &spec, "spec")
	name := o.Metadata.Name.V
	ignored := func(at *yaml.Node, hint, field, why string) {
		if at != nil {
			r.warnf(CodeIgnored, at, hint, "Config %s: %s has no effect: %s", name, field, why)
		}
	}
	overlay := "set commonLabels or commonAnnotations in a kustomize overlay, and pass it with --overlay"
	ignored(spec.Metadata.Labels.node, overlay, "metadata.labels", "c9s sets its own labels only")
	ignored(spec.Metadata.Annotations.node, overlay, "metadata.annotations", "c9s sets its own annotations only")
	ignored(spec.InClusterDNSSuffix.node, "remove it", "inClusterDNSSuffix", "the sidecar uses the search list of the Pod")
	ignored(spec.Deployment.ContainerStopSignals.node, "remove it", "deployment.containerStopSignals", "the container runtime sends the image's stop signal")
	r.rollout("Config "+name, spec.Rollout, spec.Deployment.Rollout)
	r.registries(spec.ImagePull.RegistryMetadataTrust)
	ignored(spec.ImagePull.RegistryMetadataMirrors.node, "pass --registry-mirror with --resolve-images or --pin", "imagePull.registryMetadataMirrors", "c9s asks no registry when it renders, unless it has to resolve images")
	if spec.Naming.node != nil {
		r.warnf(CodeLauncher, spec.Naming.node, "remove it", "Config %s: naming has no effect", name)
	}
	r.launcher("Config "+name, spec.Deployment.launcherSpec)
	r.nestedPull("Config "+name, spec.ImagePull.nestedPull)
	c := configBuilder{r: r, name: "config-" + name}
	c.pull(&spec)
	c.resources(&spec)
	c.selectors(spec.Deployment.NodeSelectorsByImage.node)
}

// registries keeps how to reach registries. They are asked only to resolve images.
func (r *reader) registries(list []trustSpec) {
	for _, t := range list {
		if t.Registry.V == "" {
			if t.node != nil {
				r.errorf(CodeMissingField, t.node, "add registry: HOST", "an entry of imagePull.registryMetadataTrust has no registry")
			}
			continue
		}
		out := Registry{Host: t.Registry.V, PlainHTTP: t.PlainHTTP.V}
		if t.CABundle.V != "" {
			if out.CA = certificates(t.CABundle.V); out.CA == nil {
				r.errorf(CodeValue, t.CABundle.node, "write certificates in PEM, or those in base64", "caBundle of registry %s has no certificate", t.Registry.V)
				continue
			}
		}
		r.out.Registries = append(r.out.Registries, out)
	}
}

// certificates are those of a bundle in PEM, or in PEM and base64; nil for none.
func certificates(bundle string) []byte {
	decoded, _ := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(bundle), ""))
	for _, text := range [][]byte{[]byte(bundle), decoded} {
		if x509.NewCertPool().AppendCertsFromPEM(text) {
			return text
		}
	}
	return nil
}

// configBuilder adds profiles for all nodes, each of a priority of its own.
type configBuilder struct {
	r    *reader
	name string
	n    int
}

func (c *configBuilder) add(p *derived, key string, value *yaml.Node) {
	p.name = fmt.Sprintf("%s/%d", c.name, c.n+1)
	p.priority = configPriority + c.n
	p.set = mapping(p.at)
	set(p.set, p.at, key, value)
	c.n++
	c.r.policy.profiles = append(c.r.policy.profiles, p)
}

func (c *configBuilder) pull(spec *configSpec) {
	if p := spec.ImagePull.Policy; p.V != "" && c.r.oneOf(p, "imagePull.policy", pullPolicies) {
		var names []string
		topo := lookup(c.r.out.Topology, "topology")
		for _, e := range c.r.entries(lookup(topo, "nodes"), "nodes") {
			if inherited("image-pull-policy", e.Value, c.r.levels(topo, e.Key)) == nil {
				names = append(names, e.Key)
			}
		}
		if len(names) > 0 {
			c.add(&derived{at: p.node, nodes: names}, "imagePullPolicy", p.node)
		}
	}
	if names := secretNames(spec.ImagePull.PullSecrets); names != nil {
		c.add(&derived{at: names}, "imagePullSecrets", names)
	}
}

// resources adds those of kinds and types (0.8), and the default.
func (c *configBuilder) resources(spec *configSpec) {
	for _, kind := range c.r.entries(spec.Deployment.ResourcesByContainerlabKind.node, "deployment.resourcesByContainerlabKind") {
		types := c.r.entries(kind.Value, kind.Key)
		slices.SortStableFunc(types, func(a, b strictyaml.Entry) int {
			return cmp.Compare(order(a.Key), order(b.Key))
		})
		for _, t := range types {
			p := &derived{at: t.KeyNode, kinds: []string{kind.Key}}
			if t.Key != "default" {
				p.expression = fmt.Sprintf("node.type == %q", t.Key)
			}
			c.add(p, "resources", t.Value)
		}
	}
	if v := spec.Deployment.ResourcesDefault.node; v != nil {
		c.add(&derived{at: v}, "resources", v)
	}
}

// order puts the default last.
func order(key string) int {
	if key == "default" {
		return 1
	}
	return 0
}

// selectors adds the node selectors of images, the longest pattern first.
func (c *configBuilder) selectors(m *yaml.Node) {
	patterns := slices.Clone(c.r.entries(m, "deployment.nodeSelectorsByImage"))
	slices.SortStableFunc(patterns, func(a, b strictyaml.Entry) int {
		return cmp.Or(cmp.Compare(order(a.Key), order(b.Key)), cmp.Compare(len(b.Key), len(a.Key)), strings.Compare(a.Key, b.Key))
	})
	for _, e := range patterns {
		p := &derived{at: e.KeyNode}
		if e.Key != "default" {
			p.expression = fmt.Sprintf("node.image.matches(%q)", globExpression(e.Key))
		}
		c.add(p, "nodeSelector", e.Value)
	}
}

// globExpression is a shell pattern as a regular expression.
func globExpression(glob string) string {
	return "^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(glob)) + "$"
}
