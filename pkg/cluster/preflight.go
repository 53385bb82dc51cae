package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Preflight finds, before anything is written, what would stop a deploy half
// way: rights that the user lacks, a namespace that does not let the sidecar run
// or holds another lab, objects in the way. The error names all of it.
func (c *Client) Preflight(ctx context.Context, l *Lab, existing Existing) error {
	var errs []error
	if err := existing.usable(l); err != nil {
		errs = append(errs, err)
	}
	holders, err := l.fileHolders()
	if err != nil {
		return err
	}
	errs = append(errs, c.rights(ctx, l, existing, holders)...)
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	errs = append(errs, inTheWay(ctx, client, l)...)
	if err := missingPullSecrets(ctx, client, l, existing); err != nil {
		errs = append(errs, err)
	}
	missing, err := c.missingFiles(ctx, l, existing, holders)
	if err != nil {
		return err
	}
	errs = append(errs, missing...)
	return errors.Join(errs...)
}

// create is a command that creates an object in the lab's namespace, after the namespace if that
// does not exist yet.
func (e Existing) create(l *Lab, what string) string {
	command := fmt.Sprintf("kubectl -n %s create %s", l.Namespace, what)
	if e.Fresh && l.namespace != nil {
		command = fmt.Sprintf("kubectl create namespace %s && %s", l.Namespace, command)
	}
	return command
}

// usable checks the namespace itself.
func (e Existing) usable(l *Lab) error {
	if e.Lab != "" && e.Lab != l.Name {
		return fmt.Errorf("namespace %s already contains the lab %q, and a namespace can have only one: deploy %q to another namespace with -n, or delete the other lab with 'c9s destroy %s -n %s'", l.Namespace, e.Lab, l.Name, e.Lab, l.Namespace)
	}
	ns := e.Namespace
	if ns == nil {
		return nil
	}
	if e.Terminating() {
		return fmt.Errorf("namespace %s is being deleted: wait until it has been deleted", ns.Name)
	}
	level := ns.Labels[podSecurity]
	if level != "" && level != privileged {
		return fmt.Errorf("namespace %s forbids privileged Pods (label %s=%s), but the sidecar must be privileged to create interfaces: use another namespace with -n, or set the label to privileged", ns.Name, podSecurity, level)
	}
	return nil
}

// rights asks whether the user may do what a deploy does.
func (c *Client) rights(ctx context.Context, l *Lab, existing Existing, holders []fileHolder) []error {
	rules, err := l.rules()
	if err != nil {
		return []error{err}
	}
	required := slices.DeleteFunc(rights.Of(l.kinds(), rules, existing.Fresh && l.namespace != nil), func(r rights.Right) bool {
		return !r.Required && !(existing.Lab != "" && r.Command == rights.Redeploy)
	})
	for _, h := range holders {
		required = append(required, rights.GetByName(h.kind, h.name))
	}
	missing, err := rights.Missing(ctx, rights.ReviewsOf(c.Typed.AuthorizationV1()), l.Namespace, required)
	if err != nil {
		return []error{fmt.Errorf("checking your rights: %w", err)}
	}
	if len(missing) == 0 {
		return nil
	}
	return []error{fmt.Errorf("in namespace %s (context %q) you may not: %s; %s", l.Namespace, c.Context, rights.Describe(missing), rights.Remedy(missing))}
}

// rules are the rights that the lab gives away.
func (l *Lab) rules() ([]rbacv1.PolicyRule, error) {
	var out []rbacv1.PolicyRule
	for _, u := range l.objects {
		if u.GetKind() != "Role" {
			continue
		}
		var role rbacv1.Role
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
			return nil, fmt.Errorf("reading Role %s: %w", u.GetName(), err)
		}
		out = append(out, role.Rules...)
	}
	return out, nil
}

// kinds are the kinds of the lab's objects, sorted.
func (l *Lab) kinds() []string {
	var kinds []string
	for _, u := range l.objects {
		kinds = append(kinds, u.GetKind())
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// inTheWay finds objects with our names that are not the lab's.
func inTheWay(ctx context.Context, client metadata.Interface, l *Lab) []error {
	var errs []error
	for _, kind := range l.kinds() {
		var wanted []*unstructured.Unstructured
		for _, u := range l.objects {
			if u.GetKind() == kind {
				wanted = append(wanted, u)
			}
		}
		list, err := client.Resource(rights.Resources[kind]).Namespace(l.Namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsForbidden(err) {
			errs = append(errs, fmt.Errorf("you may not list %s in namespace %s, which may contain objects of others: ask for that right", rights.Resources[kind].Resource, l.Namespace))
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading %s in namespace %s: %w", rights.Resources[kind].Resource, l.Namespace, err))
			continue
		}
		there := map[string]*metav1.PartialObjectMetadata{}
		for i := range list.Items {
			there[list.Items[i].Name] = &list.Items[i]
		}
		for _, u := range wanted {
			if live := there[u.GetName()]; live != nil && !owns(l, live) {
				errs = append(errs, clash(l, u, live))
			}
		}
	}
	return errs
}

func clash(l *Lab, u *unstructured.Unstructured, live *metav1.PartialObjectMetadata) error {
	whose := "was not created by c9s"
	if other := live.Annotations[contract.AnnotationLabName]; other != "" {
		whose = fmt.Sprintf("belongs to lab %q", other)
	}
	where := status.At(l.line(u))
	return fmt.Errorf("%s %s%s already exists in namespace %s and %s: use another namespace with -n, or rename or delete the existing one", u.GetKind(), u.GetName(), where, l.Namespace, whose)
}

// missingPullSecrets finds pull secrets that neither the namespace nor the lab has. The
// kubelet would pull without them, and report no more than that the registry refused.
func missingPullSecrets(ctx context.Context, client metadata.Interface, l *Lab, existing Existing) error {
	users, err := l.pullSecrets()
	if err != nil || len(users) == 0 {
		return err
	}
	if !existing.Fresh {
		list, err := client.Resource(rights.Resources["Secret"]).Namespace(l.Namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
			return nil // reported elsewhere
		case err != nil:
			return fmt.Errorf("reading secrets in namespace %s: %w", l.Namespace, err)
		}
		for i := range list.Items {
			delete(users, list.Items[i].Name)
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(users)) {
		create := existing.create(l, "secret docker-registry "+name+" --docker-server=...")
		errs = append(errs, fmt.Errorf("namespace %s has no pull secret %s, which %s (imagePullSecrets in the policy): create it with '%s'", l.Namespace, name, users[name], create))
	}
	return errors.Join(errs...)
}

// pullSecrets returns who uses each pull secret that is not an object of the lab.
func (l *Lab) pullSecrets() (map[string]string, error) {
	nodes := map[string][]string{}
	for _, u := range l.objects {
		if u.GetKind() != "Deployment" || u.GetLabels()[contract.LabelComponent] == contract.ComponentController {
			continue // the controller has what all nodes have in common
		}
		refs, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "imagePullSecrets")
		if err != nil {
			return nil, fmt.Errorf("reading Deployment %s: %w", u.GetName(), err)
		}
		for _, ref := range refs {
			if m, ok := ref.(map[string]any); ok {
				if name, _ := m["name"].(string); name != "" {
					nodes[name] = append(nodes[name], u.GetName())
				}
			}
		}
	}
	out := map[string]string{}
	for name, list := range nodes {
		out[name] = list[0] + " uses"
		if len(list) > 1 {
			out[name] = fmt.Sprintf("%s and %d more use", list[0], len(list)-1)
		}
	}
	for _, u := range l.objects {
		if u.GetKind() == "Secret" {
			delete(out, u.GetName())
		}
	}
	return out, nil
}
