package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// userRole is the Role that docs/reference/rights.md gives for a user.
func userRole(t *testing.T) rbacv1.Role {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repo, "docs", "reference", "rights.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\n")
	text, _, closed := strings.Cut(text, "```")
	var role rbacv1.Role
	if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil || !found || !closed || len(role.Rules) == 0 {
		t.Fatalf("docs/reference/rights.md has no Role: %v", err)
	}
	return role
}

// user has a Role in the lab's namespace and no other right; it returns the user's
// kubeconfig.
func (l *lab) user(t *testing.T, role rbacv1.Role) string {
	t.Helper()
	if _, err := l.Typed.RbacV1().Roles(l.ns).Create(t.Context(), &role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "user"}}
	if _, err := l.Typed.CoreV1().ServiceAccounts(l.ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := l.Typed.RbacV1().RoleBindings(l.ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "user"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "user", Namespace: l.ns}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := l.Typed.CoreV1().ServiceAccounts(l.ns).CreateToken(t.Context(), "user", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := os.ReadFile(l.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []any `json:"clusters"`
		Contexts []struct {
			Context struct{ Cluster string }
		} `json:"contexts"`
	}
	if err := yaml.Unmarshal(admin, &config); err != nil || len(config.Contexts) == 0 {
		t.Fatalf("the administrator's kubeconfig: %v", err)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "clusters": config.Clusters, "current-context": "user",
		"users":    []any{map[string]any{"name": "user", "user": map[string]any{"token": token.Status.Token}}},
		"contexts": []any{map[string]any{"name": "user", "context": map[string]any{"cluster": config.Contexts[0].Context.Cluster, "user": "user", "namespace": l.ns}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "user")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A user with the Role of docs/reference/rights.md in a namespace, and nothing else, deploys a lab
// there, uses it, edits it and destroys it.
func TestUserOfOneNamespace(t *testing.T) {
	dir := t.TempDir()
	now := edition{image: "v1", colour: "green", note: "first", links: `    - endpoints: ["A:eth1", "B:eth1"]`}
	l := newLab(t, now.write(t, dir), "edit")
	l.namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	l.kubeconfig = l.user(t, userRole(t))

	l.deploy(t)
	l.reaches(t, "A", "10.9.0.2")
	if s := l.status(t); s.State != "ready" || len(s.Links) != 1 {
		t.Errorf("status: %+v", s)
	}
	l.c9s(t, "logs", "A", "-n", l.ns)
	l.c9s(t, "labs", "-n", l.ns)
	l.c9s(t, "restart", "B", "-n", l.ns)
	l.c9s(t, "stop", "C", "-n", l.ns)
	l.c9s(t, "start", "C", "-n", l.ns)

	now.links += "\n" + `    - endpoints: ["A:eth2", "C:eth1"]`
	now.colour = "red"
	now.write(t, dir)
	l.deploy(t)
	l.eventually(t, "A", "LOWER_UP", "ip", "link", "show", "eth2")
	l.eventually(t, "B", "red", "printenv", "COLOUR")
	l.reaches(t, "A", "10.9.0.2")

	out := l.c9s(t, "destroy", l.name, "-n", l.ns, "--yes")
	if n := l.objects(t); n != 0 {
		t.Errorf("%d objects are left:\n%s", n, out)
	}

	// Without any one of the rules a deploy is rejected before it starts, and says why.
	role := userRole(t)
	for i := range role.Rules {
		less := role
		less.Rules = append(append([]rbacv1.PolicyRule{}, role.Rules[:i]...), role.Rules[i+1:]...)
		if explains(role.Rules[i]) {
			continue
		}
		l.mayOnly(t, less)
		if said := l.refusal(t); !strings.Contains(said, "you may not") && !strings.Contains(said, "forbidden") {
			t.Errorf("without %v deploy says\n%s", role.Rules[i], said)
		}
		if n := l.objects(t); n != 0 {
			t.Errorf("without %v: %d objects are left", role.Rules[i], n)
		}
	}
}

// explains reports whether deploy does not need a rule, or other commands alone need it.
func explains(rule rbacv1.PolicyRule) bool {
	others := map[string]bool{"pods/exec": true, "pods/attach": true, "pods/log": true, "pods/proxy": true, "replicasets": true}
	for _, r := range rule.Resources {
		if !others[r] {
			return false
		}
	}
	return true
}

// mayOnly replaces the rules of the user's Role, and waits until they hold.
func (l *lab) mayOnly(t *testing.T, role rbacv1.Role) {
	t.Helper()
	if _, err := l.Typed.RbacV1().Roles(l.ns).Update(t.Context(), &role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Somebody who may write ConfigMaps in the lab's namespace, and nothing else, chooses
// nothing of what an administrator's deploy deletes.
func TestPlantedInventory(t *testing.T) {
	l := smallLab(t, "planted", goodImage)
	other := l.Namespace(t)
	victim := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}, StringData: map[string]string{"a": "b"}}
	if _, err := l.Typed.CoreV1().Secrets(other).Create(t.Context(), victim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: other}}
	if _, err := l.Typed.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Typed.RbacV1().ClusterRoles().Delete(context.Background(), role.Name, metav1.DeleteOptions{})
	})
	l.deploy(t)
	plant := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c9s-inventory", Labels: map[string]string{"app.kubernetes.io/managed-by": "c9s", "cli-utils.sigs.k8s.io/inventory-id": "x"},
			Annotations: map[string]string{"c9s.dev/lab-name": "planted"},
		},
		Data: map[string]string{
			other + "_token__Secret": "", "_" + other + "__Namespace": "", "_" + other + "_rbac.authorization.k8s.io_ClusterRole": "",
		},
	}
	if _, err := l.Typed.CoreV1().ConfigMaps(l.ns).Create(t.Context(), plant, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A ConfigMap with the lab's marks, by somebody else.
	marked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "marked", Labels: map[string]string{"app.kubernetes.io/managed-by": "c9s", "c9s.dev/lab": "planted"}, Annotations: map[string]string{"c9s.dev/lab-name": "planted"},
	}}
	if _, err := l.Typed.CoreV1().ConfigMaps(l.ns).Create(t.Context(), marked, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	said := l.deploy(t)
	for _, text := range []string{"Secret/token of namespace " + other, "Namespace/" + other, "ClusterRole/" + other, "keep ConfigMap/marked"} {
		if !strings.Contains(said, text) {
			t.Errorf("deploy does not say %q:\n%s", text, said)
		}
	}
	if _, err := l.Typed.CoreV1().Secrets(other).Get(t.Context(), "token", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if ns, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), other, metav1.GetOptions{}); err != nil || ns.DeletionTimestamp != nil {
		t.Errorf("namespace %s is going: %v", other, err)
	}
	if _, err := l.Typed.RbacV1().ClusterRoles().Get(t.Context(), other, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := l.Typed.CoreV1().ConfigMaps(l.ns).Get(t.Context(), "marked", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if list, err := l.Typed.CoreV1().ConfigMaps(l.ns).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=c9s-inventory"}); err != nil || len(list.Items) > 0 {
		t.Errorf("the inventory is still there: %v", err)
	}
}

// exitCodeOf is the exit code of a command that ended with err.
func exitCodeOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// The Pod Security level of a namespace that was there is set with consent, and taken
// back.
func TestPodSecurityLevel(t *testing.T) {
	l := smallLab(t, "level", goodImage)
	l.namespace(t, map[string]string{"team": "a"})
	level := func() string {
		ns, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ns.Labels["team"] != "a" || ns.Labels["app.kubernetes.io/managed-by"] != "" {
			t.Errorf("the namespace's labels are %v", ns.Labels)
		}
		return ns.Labels["pod-security.kubernetes.io/enforce"]
	}
	out, err := l.try(t.Context(), "deploy", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner)
	if code := exitCodeOf(err); code != 2 || !strings.Contains(out, "--yes") {
		t.Errorf("without a terminal and --yes: exit code %d\n%s", code, out)
	}
	if got := level(); got != "" || l.objects(t) != 0 {
		t.Errorf("without consent the level is %q, and %d objects are there", got, l.objects(t))
	}
	if said := l.deploy(t); !strings.Contains(said, "Pod Security level") || level() != "privileged" {
		t.Errorf("level %q after\n%s", level(), said)
	}
	l.c9s(t, "destroy", l.name, "-n", l.ns, "--yes")
	if got := level(); got != "" {
		t.Errorf("after destroy the level is %q", got)
	}
}

// Two clients deploy at the same time: one does, the other says who is at it, and
// nothing is lost.
func TestTwoDeploys(t *testing.T) {
	dir := t.TempDir()
	now := edition{image: "v1", colour: "green", note: "first", links: `    - endpoints: ["A:eth1", "B:eth1"]`}
	l := newLab(t, now.write(t, dir), "edit")
	other := *l
	another := now
	another.extra = "    D: {}"
	other.topo = another.write(t, t.TempDir())
	type result struct {
		out string
		err error
	}
	results := make(chan result, 2)
	for _, one := range []*lab{l, &other} {
		go func() {
			out, err := one.try(t.Context(), "deploy", one.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner, "--yes")
			results <- result{out, err}
		}()
	}
	good := 0
	for range 2 {
		r := <-results
		switch {
		case r.err == nil:
			good++
		case !strings.Contains(r.out, "deploy by ") && !strings.Contains(r.out, "another client"):
			t.Errorf("the one that failed does not say who is at it:\n%s", r.out)
		}
	}
	if good == 0 {
		t.Error("neither has deployed")
	}
	l.deploy(t)
	l.ready(t)
	if s := l.status(t); len(s.Nodes) != 3 {
		t.Errorf("%d nodes after the last deploy, want those of its topology", len(s.Nodes))
	}
	testcluster.Eventually(t, patience, "no claim to be left", func() error {
		list, err := l.Typed.CoordinationV1().Leases(l.ns).List(t.Context(), metav1.ListOptions{})
		for _, lease := range list.Items {
			if lease.Name == "c9s-deploy" {
				return fmt.Errorf("held by %v", lease.Spec.HolderIdentity)
			}
		}
		return err
	})
}
