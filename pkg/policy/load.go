package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Load reads and compiles a policy file. Every problem is reported with its position;
// with an error among them the Policy is nil.
func Load(file string, data []byte) (*Policy, []diag.Diagnostic) {
	return newReader(file).run(func(r *reader) *Policy { return r.load(data) })
}

// LoadTree compiles a policy from the tree of its document. locate corrects the positions
// of the tree.
func LoadTree(root *yaml.Node, locate func(diag.Pos) diag.Pos) (*Policy, []diag.Diagnostic) {
	r := newReader("")
	r.Locate = locate
	return r.run(func(r *reader) *Policy { return r.tree(root) })
}

func newReader(file string) *reader {
	return &reader{Decoder: strictyaml.Decoder{File: file, Diags: &diag.List{}, Codes: strictyaml.OneCode(CodeInvalid)}}
}

func (r *reader) run(load func(*reader) *Policy) (*Policy, []diag.Diagnostic) {
	p := load(r)
	if r.Diags.HasErrors() {
		return nil, r.Diags.All()
	}
	return p, r.Diags.All()
}

type reader struct {
	strictyaml.Decoder
	// encrypt is wires.encrypt of the file; noLocal is set if wires.local is false.
	encrypt, noLocal bool
}

func (r *reader) errorf(n *yaml.Node, hint, format string, args ...any) {
	r.Errorf(r.Codes.BadValue, n, hint, format, args...)
}

func (r *reader) load(data []byte) *Policy {
	root := r.Root(data, topology.CodeSyntax, "the policy file", APIVersion)
	if root == nil {
		return nil
	}
	return r.tree(root)
}

func (r *reader) tree(root *yaml.Node) *Policy {
	top := r.mapping(root, "the policy file", "apiVersion", "kind", "boot", "image", "mgmt-names", "placement", "saved", "shared-claim", "wires", "segments", "management", "external", "profiles")
	for key, want := range map[string]string{"apiVersion": APIVersion, "kind": Kind} {
		n := top[key]
		if n == nil {
			r.errorf(root, fmt.Sprintf("add \"%s: %s\"", key, want), "the policy file has no %s", key)
		} else if n.Value != want {
			r.errorf(n, "write "+want, "%s is %q", key, n.Value)
		}
	}
	p := &Policy{}
	if n := top["wires"]; n != nil {
		r.decode(n, "wires", &p.wires)
	}
	if n := top["image"]; n != nil && r.decode(n, "image", &p.image) && !apicheck.LegalImage(p.image) {
		r.errorf(n, "write it like registry.example.net/c9s:1.2", "image %q is not a reference", p.image)
	}
	var boot Boot
	if n := top["boot"]; n != nil && r.decode(n, "boot", &boot) {
		if boot.PerWorker < 1 {
			r.errorf(n, "write boot: {perWorker: 4}", "boot has perWorker %d, not a number from 1", boot.PerWorker)
		}
		p.bootPerWorker = boot.PerWorker
	}
	var names string
	if n := top["mgmt-names"]; n != nil && r.decode(n, "mgmt-names", &names) {
		if names != mgmtNamesPlain && names != mgmtNamesSuffix {
			r.errorf(n, "use "+mgmtNamesPlain+" or "+mgmtNamesSuffix, "mgmt-names is %q", names)
		}
		p.suffixed = names == mgmtNamesSuffix
	}
	var placement string
	if n := top["placement"]; n != nil && r.decode(n, "placement", &placement) {
		if placement != placementSpread && placement != placementPack {
			r.errorf(n, "use "+placementSpread+" or "+placementPack, "placement is %q", placement)
		}
		p.packed = placement == placementPack
	}
	if n := top["saved"]; n != nil {
		r.decode(n, "saved", &p.saved)
	}
	if n := top["shared-claim"]; n != nil && r.decode(n, "shared-claim", &p.sharedClaim) && len(validation.IsDNS1123Subdomain(p.sharedClaim)) > 0 {
		r.errorf(n, "write the name of a PersistentVolumeClaim", "shared-claim %q is not a name of Kubernetes", p.sharedClaim)
	}
	if n := top["segments"]; n != nil {
		p.segments = r.segments(n)
	}
	if n := top["management"]; n != nil {
		p.management = r.management(n)
	}
	if n := top["external"]; n != nil {
		p.external = r.external(n)
	}
	r.encrypt, r.noLocal = p.wires.Encrypt, p.wires.Local != nil && !*p.wires.Local
	profiles := map[string]int{}
	if list := top["profiles"]; list != nil {
		if list.Kind != yaml.SequenceNode {
			r.errorf(list, "", "profiles must be a list")
			return nil
		}
		for _, item := range list.Content {
			prof := r.profile(item)
			if prof == nil {
				continue
			}
			if line, dup := profiles[prof.name]; dup {
				r.errorf(item, "give each profile a unique name", "profile %q is defined twice (first at line %d)", prof.name, line)
			}
			profiles[prof.name] = item.Line
			p.profiles = append(p.profiles, prof)
		}
	}
	sortProfiles(p.profiles)
	return p
}

// mapping checks the keys of a mapping and returns its values.
func (r *reader) mapping(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		r.errorf(n, "known keys: "+strings.Join(known, ", "), "%s must be a mapping", what)
		return out
	}
	for _, e := range r.Entries(n) {
		if slices.Contains(known, e.Key) {
			out[e.Key] = e.Value
		} else {
			r.UnknownKey(e, what, known)
		}
	}
	return out
}

// decode reads a value into a Go type. It reports whether it had no error.
func (r *reader) decode(n *yaml.Node, what string, to any) bool {
	before, _ := r.Diags.Count()
	r.Decode(n, to, what)
	after, _ := r.Diags.Count()
	return after == before
}

func (r *reader) profile(n *yaml.Node) *profile {
	before, _ := r.Diags.Count()
	keys := r.mapping(n, "a profile", "name", "priority", "match", "deny", "set", "links")
	p := &profile{priority: DefaultPriority, pos: r.Pos(n)}
	if v := keys["name"]; v == nil || v.Value == "" {
		r.errorf(n, "add \"name: ...\"", "a profile has no name")
	} else {
		p.name = v.Value
	}
	if v := keys["priority"]; v != nil {
		r.decode(v, "priority", &p.priority)
	}
	if v := keys["deny"]; v != nil {
		r.decode(v, "deny", &p.deny)
	}
	if v := keys["match"]; v != nil {
		r.match(v, "match", p)
	}
	if v := keys["set"]; v != nil {
		r.set(v, p)
	}
	if v := keys["links"]; v != nil {
		r.links(v, p)
	}
	if after, _ := r.Diags.Count(); after > before {
		return nil
	}
	return p
}

// match reads a match that the file calls by the name of key.
func (r *reader) match(n *yaml.Node, key string, p *profile) {
	keys := r.mapping(n, key, "names", "kinds", "groups", "labels", "expression")
	for key, to := range map[string]any{"names": &p.match.Names, "kinds": &p.match.Kinds, "groups": &p.match.Groups, "labels": &p.match.Labels} {
		if v := keys[key]; v != nil {
			r.decode(v, key, to)
		}
	}
	for _, pattern := range p.match.Names {
		if _, err := path.Match(pattern, ""); err != nil {
			r.errorf(keys["names"], "use * and ? and [a-z]", "pattern %q is malformed", pattern)
		}
	}
	if v := keys["expression"]; v != nil {
		r.expression(v, p)
	}
}

// expression compiles a CEL expression; its errors point into it.
func (r *reader) expression(n *yaml.Node, p *profile) {
	p.match.Expression, p.match.pos = n.Value, r.Pos(n)
	fail := func(pos diag.Pos, message string) {
		r.Diags.Errorf(CodeExpression, pos, "it is CEL over node: name, kind, type, group, image, position, labels, interfaces, memory, cpu", "expression: %s", message)
	}
	env, err := celEnv()
	if err != nil {
		fail(r.Pos(n), err.Error())
		return
	}
	ast, issues := env.Compile(n.Value)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			pos := r.Pos(n)
			if n.Style == 0 || n.Style == yaml.SingleQuotedStyle || n.Style == yaml.DoubleQuotedStyle {
				pos.Line += e.Location.Line() - 1
				pos.Column += e.Location.Column()
				if n.Style != 0 {
					pos.Column++
				}
			} else {
				pos.Line += e.Location.Line()
			}
			fail(pos, e.Message)
		}
		return
	}
	if ast.OutputType() != cel.BoolType && ast.OutputType() != cel.DynType {
		fail(r.Pos(n), fmt.Sprintf("it must be true or false, not %s", ast.OutputType()))
		return
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		fail(r.Pos(n), err.Error())
		return
	}
	p.match.program = program
}

func (r *reader) set(n *yaml.Node, p *profile) {
	s := &p.set
	targets := map[string]any{
		"expose": &s.Expose, "resources": &s.Resources, "nodeSelector": &s.NodeSelector, "affinity": &s.Affinity,
		"tolerations": &s.Tolerations, "persistence": &s.Persistence, "imagePullPolicy": &s.ImagePullPolicy,
		"imagePullSecrets": &s.ImagePullSecrets, "probes": &s.Probes, "privileged": &s.Privileged, "kvm": &s.KVM,
		"secretFiles": &s.SecretFiles, "files": &s.Files, "strictExec": &s.StrictExec, "external": &s.External,
	}
	known := make([]string, 0, len(targets))
	for key := range targets {
		known = append(known, key)
	}
	slices.Sort(known)
	keys := r.mapping(n, "set", known...)
	for _, key := range known {
		if v := keys[key]; v != nil && r.decode(v, key, targets[key]) {
			if err := s.check(key); err != nil {
				r.errorf(v, "", "%v", err)
			}
			switch {
			case key == "files":
				r.files(v, s.Files)
			case key == "probes" && s.Probes != nil && s.Probes.SSH != nil:
				s.Probes.SSH.pos = r.Pos(v)
			}
			if key == "external" {
				s.external = r.external(v)
			}
		}
	}
}

// files checks each entry and keeps its place.
func (r *reader) files(n *yaml.Node, files []ClusterFile) {
	first := map[string]int{}
	for i := range files {
		f, at := &files[i], n.Content[i]
		f.pos = r.Pos(at)
		if err := f.check(); err != nil {
			r.errorf(at, "write path, secret or configMap, and key for a single file", "files: %v", err)
			continue
		}
		if line, dup := first[path.Clean(f.Path)]; dup {
			r.errorf(at, "give each file a path of its own", "files: %s is there twice (first at line %d)", f.Path, line)
		}
		first[path.Clean(f.Path)] = at.Line
	}
}

// check tests one field of a Set beyond its type.
func (s *Set) check(key string) error {
	switch key {
	case "expose":
		if s.Expose == nil {
			return nil
		}
		if !slices.Contains([]string{"", "ClusterIP", "LoadBalancer", "NodePort", "Headless", "None"}, s.Expose.Type) {
			return fmt.Errorf("expose.type %q is not ClusterIP, LoadBalancer, NodePort, Headless or None", s.Expose.Type)
		}
		if s.Expose.Shared && s.Expose.Type != "LoadBalancer" {
			return errors.New("expose.shared needs expose.type LoadBalancer")
		}
		if s.Expose.Shared && s.Expose.UseMgmtAddress {
			return errors.New("expose.shared excludes expose.useMgmtAddress: the nodes share one address")
		}
		for _, port := range s.Expose.Ports {
			if _, err := lab.ParsePort(port.String()); err != nil {
				return fmt.Errorf("expose.ports: port %q: %v", port.String(), err)
			}
		}
	case "persistence":
		if s.Persistence == nil || s.Persistence.Size == "" {
			return nil
		}
		if q, err := resource.ParseQuantity(s.Persistence.Size); err != nil || q.Sign() <= 0 {
			return fmt.Errorf("persistence.size %q is not a quantity such as 5Gi", s.Persistence.Size)
		}
	case "imagePullPolicy":
		if !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, s.ImagePullPolicy) {
			return fmt.Errorf("imagePullPolicy %q is not Always, IfNotPresent or Never", s.ImagePullPolicy)
		}
	case "kvm":
		if !slices.Contains([]string{lab.KVMRequired, lab.KVMOptional}, s.KVM) {
			return fmt.Errorf("kvm %q is not %s or %s", s.KVM, lab.KVMRequired, lab.KVMOptional)
		}
	case "imagePullSecrets":
		for _, name := range s.ImagePullSecrets {
			if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
				return fmt.Errorf("imagePullSecrets: %q cannot be the name of a Secret", name)
			}
		}
	case "nodeSelector":
		for k, v := range s.NodeSelector {
			if len(validation.IsQualifiedName(k)) > 0 || len(validation.IsValidLabelValue(v)) > 0 {
				return fmt.Errorf("nodeSelector: %s=%s is not a label", k, v)
			}
		}
	case "tolerations":
		for _, t := range s.Tolerations {
			if err := checkToleration(t); err != nil {
				return err
			}
		}
	case "probes":
		return s.Probes.check()
	case "secretFiles":
		for _, pattern := range s.SecretFiles {
			if _, err := path.Match(pattern, ""); err != nil {
				return fmt.Errorf("secretFiles: pattern %q is malformed", pattern)
			}
		}
	}
	return nil
}

// checkToleration holds the API server's rules.
func checkToleration(t corev1.Toleration) error {
	switch {
	case t.Key != "" && len(validation.IsQualifiedName(t.Key)) > 0:
		return fmt.Errorf("tolerations: %q cannot be the key of a taint", t.Key)
	case !slices.Contains([]corev1.TolerationOperator{"", corev1.TolerationOpExists, corev1.TolerationOpEqual}, t.Operator):
		return fmt.Errorf("tolerations: operator %q is not Exists or Equal", t.Operator)
	case t.Key == "" && t.Operator != corev1.TolerationOpExists:
		return errors.New("tolerations: without a key the operator must be Exists")
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		return fmt.Errorf("tolerations: the operator Exists takes no value, but %q is set", t.Value)
	case t.Operator != corev1.TolerationOpExists && len(validation.IsValidLabelValue(t.Value)) > 0:
		return fmt.Errorf("tolerations: %q cannot be the value of a taint", t.Value)
	case !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect):
		return fmt.Errorf("tolerations: effect %q is not NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	case t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute:
		return errors.New("tolerations: tolerationSeconds needs the effect NoExecute")
	}
	return nil
}

// resolved is the Service in the lab's terms.
func (e *Expose) resolved() *lab.Expose {
	out := &lab.Expose{Type: e.Type, UseMgmtAddress: e.UseMgmtAddress, Shared: e.Shared}
	if e.Ports != nil {
		out.Ports = []lab.Port{} // none is not the default
	}
	for _, port := range e.Ports {
		ports, _ := lab.ParsePort(port.String()) // checked when the file was read
		for _, p := range ports {
			p.Host = 0
			out.Ports = append(out.Ports, p)
		}
	}
	return out
}

func (r *reader) links(n *yaml.Node, p *profile) {
	if n.Kind != yaml.SequenceNode {
		r.errorf(n, "", "links must be a list")
		return
	}
	for _, item := range n.Content {
		rule := linkRule{}
		if !r.decode(item, "links", &rule.LinkRule) {
			continue
		}
		for _, pattern := range []string{rule.Interface, rule.Peer} {
			if _, err := path.Match(pattern, ""); err != nil {
				r.errorf(item, "use * and ? and [a-z]", "pattern %q is malformed", pattern)
			}
		}
		if !slices.Contains([]string{"", "auto", "udp", "vxlan", "local"}, rule.Datapath) {
			r.errorf(item, "use auto, udp, vxlan or local", "unknown datapath %q", rule.Datapath)
		}
		if rule.MTU != 0 && (rule.MTU < 68 || rule.MTU > 65535) {
			r.errorf(item, "write bytes, from 68 to 65535", "mtu %d is not possible", rule.MTU)
		}
		if (rule.Datapath == "vxlan" || rule.Datapath == "local") && r.encrypt {
			r.errorf(item, "remove the datapath, or wires.encrypt", "datapath %s cannot be encrypted", rule.Datapath)
		}
		if rule.Datapath == "local" && r.noLocal {
			r.errorf(item, "remove the datapath, or wires.local", "datapath local is not there with wires.local: false")
		}
		if rule.Impair != nil {
			impairment, err := rule.Impair.Compile()
			if err != nil {
				r.errorf(item, "", "impair: %v", err)
				continue
			}
			rule.impairment = impairment
		}
		p.links = append(p.links, rule)
	}
}
