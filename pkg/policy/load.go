package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	sigsjson "sigs.k8s.io/json"
)

// Load reads and compiles a policy file. Every problem is told with its position;
// with an error among them the Policy is nil.
func Load(file string, data []byte) (*Policy, []diag.Diagnostic) {
	r := &reader{file: file, diags: &diag.List{}}
	p := r.load(data)
	if r.diags.HasErrors() {
		return nil, r.diags.All()
	}
	return p, r.diags.All()
}

type reader struct {
	file  string
	diags *diag.List
	env   *cel.Env
	// encrypt is wires.encrypt of the file.
	encrypt bool
}

func (r *reader) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: r.file, Line: n.Line, Column: n.Column}
}

func (r *reader) errorf(n *yaml.Node, hint, format string, args ...any) {
	r.diags.Errorf(CodeInvalid, r.pos(n), hint, format, args...)
}

func (r *reader) load(data []byte) *Policy {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		r.diags.Add(topology.SyntaxError(r.file, string(data), err))
		return nil
	}
	if len(doc.Content) == 0 {
		r.diags.Errorf(CodeInvalid, diag.Pos{File: r.file}, "begin with apiVersion: "+APIVersion, "the policy file is empty")
		return nil
	}
	env, err := newEnv()
	if err != nil {
		r.diags.Errorf(CodeExpression, diag.Pos{File: r.file}, "", "%v", err)
		return nil
	}
	r.env = env
	top := r.mapping(doc.Content[0], "the policy file", "apiVersion", "kind", "wires", "profiles")
	for key, want := range map[string]string{"apiVersion": APIVersion, "kind": Kind} {
		n := top[key]
		if n == nil {
			r.errorf(doc.Content[0], fmt.Sprintf("add \"%s: %s\"", key, want), "the policy file has no %s", key)
		} else if n.Value != want {
			r.errorf(n, "write "+want, "%s is %q", key, n.Value)
		}
	}
	p := &Policy{}
	if n := top["wires"]; n != nil {
		r.decode(n, "wires", &p.wires)
	}
	r.encrypt = p.wires.Encrypt
	names := map[string]int{}
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
			if line, dup := names[prof.name]; dup {
				r.errorf(item, "give each profile a name of its own", "profile %q is there twice (first in line %d)", prof.name, line)
			}
			names[prof.name] = item.Line
			p.profiles = append(p.profiles, prof)
		}
	}
	sortProfiles(p.profiles)
	return p
}

// mapping checks the keys of a mapping and returns its values.
func (r *reader) mapping(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	out := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		r.errorf(n, "known keys: "+strings.Join(known, ", "), "%s must be a mapping", what)
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		for v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		switch {
		case !slices.Contains(known, k.Value):
			hint := "known keys: " + strings.Join(known, ", ")
			if near := topology.Nearest(k.Value, known); near != "" {
				hint = "did you mean \"" + near + "\"?"
			}
			r.errorf(k, hint, "key %q is not known in %s", k.Value, what)
		case out[k.Value] != nil:
			r.errorf(k, "remove one of the two", "key %q is written twice", k.Value)
		default:
			out[k.Value] = v
		}
	}
	return out
}

// decode reads a value strictly into a Go type with JSON tags.
func (r *reader) decode(n *yaml.Node, what string, to any) bool {
	var generic any
	if err := n.Decode(&generic); err != nil {
		r.errorf(n, "", "%s: %v", what, err)
		return false
	}
	data, err := json.Marshal(generic)
	if err != nil {
		r.errorf(n, "use text for every key", "%s: %v", what, err)
		return false
	}
	strict, err := sigsjson.UnmarshalStrict(data, to)
	if err != nil {
		r.errorf(n, "see docs/reference/policy.md for an example", "%s", decodeError(what, err))
		return false
	}
	for _, s := range strict {
		r.errorf(n, "check its spelling", "%s: %v", what, s)
	}
	return len(strict) == 0
}

// decodeError says in YAML's words which value has the wrong type.
func decodeError(what string, err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return what + ": " + strings.TrimPrefix(err.Error(), "json: ")
	}
	if wrong.Field != "" {
		what += "." + wrong.Field
	}
	want := map[reflect.Kind]string{
		reflect.String: "text", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Map: "a mapping", reflect.Struct: "a mapping",
	}[wrong.Type.Kind()]
	if want == "" {
		want = "a number"
	}
	got := map[string]string{"array": "a list", "object": "a mapping", "string": "text", "bool": "true or false"}[wrong.Value]
	if got == "" {
		got = "a " + wrong.Value
	}
	return fmt.Sprintf("%s must be %s, not %s", what, want, got)
}

func (r *reader) profile(n *yaml.Node) *profile {
	before, _ := r.diags.Count()
	keys := r.mapping(n, "a profile", "name", "priority", "match", "deny", "set", "links")
	p := &profile{priority: DefaultPriority, pos: r.pos(n)}
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
		r.match(v, p)
	}
	if v := keys["set"]; v != nil {
		r.set(v, p)
	}
	if v := keys["links"]; v != nil {
		r.links(v, p)
	}
	if after, _ := r.diags.Count(); after > before {
		return nil
	}
	return p
}

func (r *reader) match(n *yaml.Node, p *profile) {
	keys := r.mapping(n, "match", "names", "kinds", "groups", "labels", "expression")
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
	p.match.Expression, p.match.pos = n.Value, r.pos(n)
	fail := func(pos diag.Pos, message string) {
		r.diags.Errorf(CodeExpression, pos, "it is CEL over node: name, kind, type, group, image, position, labels, interfaces, memory, cpu", "expression: %s", message)
	}
	ast, issues := r.env.Compile(n.Value)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			pos := r.pos(n)
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
		fail(r.pos(n), fmt.Sprintf("it must be true or false, not %s", ast.OutputType()))
		return
	}
	program, err := r.env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		fail(r.pos(n), err.Error())
		return
	}
	p.match.program = program
}

func (r *reader) set(n *yaml.Node, p *profile) {
	s := &p.set
	targets := map[string]any{
		"expose": &s.Expose, "resources": &s.Resources, "nodeSelector": &s.NodeSelector, "affinity": &s.Affinity,
		"tolerations": &s.Tolerations, "persistence": &s.Persistence, "imagePullPolicy": &s.ImagePullPolicy,
		"imagePullSecrets": &s.ImagePullSecrets, "probes": &s.Probes, "privileged": &s.Privileged,
		"secretFiles": &s.SecretFiles, "strictExec": &s.StrictExec,
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
		}
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
		return fmt.Errorf("tolerations: with the operator Exists there is no value, and %q is given", t.Value)
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
	out := &lab.Expose{Type: e.Type, UseMgmtAddress: e.UseMgmtAddress}
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
		if !slices.Contains([]string{"", "auto", "udp", "vxlan"}, rule.Datapath) {
			r.errorf(item, "use auto, udp or vxlan", "datapath %q is not known", rule.Datapath)
		}
		if rule.Datapath == "vxlan" && r.encrypt {
			r.errorf(item, "leave the datapath out, or wires.encrypt", "datapath vxlan cannot be encrypted")
		}
		if rule.Impair != nil {
			impairment, err := rule.Impair.compile()
			if err != nil {
				r.errorf(item, "", "impair: %v", err)
				continue
			}
			rule.impairment = impairment
		}
		p.links = append(p.links, rule)
	}
}
