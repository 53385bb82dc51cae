package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const small = `name: NAME
topology:
  defaults: {kind: linux, image: IMAGE}
  nodes:
    A: {}
    B: {}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
`

const goodImage = "ghcr.io/srl-labs/network-multitool:latest"

func smallLab(t *testing.T, name, image string) *lab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "small.clab.yml")
	text := strings.NewReplacer("NAME", name, "IMAGE", image).Replace(small)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return newLab(t, file, name)
}

// refused deploys, which must fail with exit code 1 and say each of want.
func (l *lab) refused(t *testing.T, want []string, args ...string) {
	t.Helper()
	out := l.refusal(t, args...)
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("deploy does not say %q:\n%s", text, out)
		}
	}
}

// refusal deploys, which must fail with exit code 1, and returns what it says.
func (l *lab) refusal(t *testing.T, args ...string) string {
	t.Helper()
	began := time.Now()
	out, err := l.try(t.Context(), append([]string{"deploy", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner, "--yes"}, args...)...)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Fatalf("deploy ended with %v:\n%s", err, out)
	}
	t.Logf("deploy ended after %s", time.Since(began).Round(100*time.Millisecond))
	return out
}

// namespace makes the lab's namespace beforehand.
func (l *lab) namespace(t *testing.T, labels map[string]string) {
	t.Helper()
	_, err := l.Typed.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.ns, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// objects counts the ConfigMaps and Deployments of the namespace that c9s made.
func (l *lab) objects(t *testing.T) int {
	t.Helper()
	managed := metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=c9s"}
	maps, err := l.Typed.CoreV1().ConfigMaps(l.ns).List(t.Context(), managed)
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := l.Typed.AppsV1().Deployments(l.ns).List(t.Context(), managed)
	if err != nil {
		t.Fatal(err)
	}
	return len(maps.Items) + len(deployments.Items)
}

// What is wrong before anything is applied leaves nothing behind.
func TestRefusedBeforeAnythingIsApplied(t *testing.T) {
	kubeconfig := func(t *testing.T, l *lab, old, replacement string) string {
		t.Helper()
		data, err := os.ReadFile(l.Kubeconfig())
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), old, replacement, 1)
		if text == string(data) {
			t.Fatalf("the kubeconfig has no %q", old)
		}
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	t.Run("no rights", func(t *testing.T) {
		l := smallLab(t, "bad", goodImage)
		l.refused(t, []string{"cannot", "nobody"}, "--kubeconfig", kubeconfig(t, l, "    client-certificate", "    as: nobody\n    client-certificate"))
	})
	t.Run("some rights", func(t *testing.T) {
		l := smallLab(t, "bad", goodImage)
		l.namespace(t, nil)
		// Those of edit except leases, which Kubernetes put into it only lately.
		edit, err := l.Typed.RbacV1().ClusterRoles().Get(t.Context(), "edit", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rules := slices.DeleteFunc(slices.Clone(edit.Rules), func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "leases") })
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "somebody"}, Rules: rules}
		if _, err := l.Typed.RbacV1().Roles(l.ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err = l.Typed.RbacV1().RoleBindings(l.ns).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "somebody"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "somebody"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "somebody"}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		somebody := []string{"--kubeconfig", kubeconfig(t, l, "    client-certificate", "    as: somebody\n    client-certificate")}
		l.refused(t, []string{"you may not", "list, create, patch roles.rbac.authorization.k8s.io", "leases", "--no-controller"}, somebody...)
		if n := l.objects(t); n != 0 {
			t.Errorf("%d objects were made", n)
		}
		role.Rules = edit.Rules
		if _, err := l.Typed.RbacV1().Roles(l.ns).Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		testcluster.Eventually(t, patience, "deploy by an editor", func() error {
			out, err := l.try(t.Context(), append([]string{"deploy", l.topo, "-n", l.ns, "--image", c9sImage, "--planner", planner, "--yes", "--no-controller"}, somebody...)...)
			if err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return nil
		})
		l.ready(t)
	})
	t.Run("wrong context", func(t *testing.T) {
		smallLab(t, "bad", goodImage).refused(t, []string{`context "nowhere" does not exist`}, "--context", "nowhere")
	})
	t.Run("API server out of reach", func(t *testing.T) {
		l := smallLab(t, "bad", goodImage)
		l.refused(t, []string{"is unreachable", "127.0.0.1:1"}, "--kubeconfig", kubeconfig(t, l, "server: "+l.Config.Host, "server: https://127.0.0.1:1"))
	})
	t.Run("privileged Pods forbidden", func(t *testing.T) {
		l := smallLab(t, "bad", goodImage)
		l.namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
		l.refused(t, []string{"forbids privileged Pods", "pod-security.kubernetes.io/enforce=baseline"})
		if n := l.objects(t); n > 0 {
			t.Errorf("%d objects were applied", n)
		}
	})
	t.Run("a foreign object in the way", func(t *testing.T) {
		l := smallLab(t, "bad", goodImage)
		l.namespace(t, nil)
		_, err := l.Typed.CoreV1().ConfigMaps(l.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a-links"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l.refused(t, []string{"ConfigMap a-links", "small.clab.yml:5", "was not created by c9s"})
		if n := l.objects(t); n > 0 {
			t.Errorf("%d objects were applied", n)
		}
	})
	t.Run("another lab", func(t *testing.T) {
		l := smallLab(t, "first", goodImage)
		l.deploy(t, "--wait=false")
		second := smallLab(t, "second", goodImage)
		second.ns = l.ns
		second.refused(t, []string{`already contains the lab "first"`, "-n"})
	})
}

// What shows only when Pods start ends the wait as soon as it is certain, with
// its cause.
func TestFailuresAreTold(t *testing.T) {
	long(t)
	t.Run("image", func(t *testing.T) {
		l := smallLab(t, "noimage", "registry.example.net/no/such:image")
		// One worker may be so much slower than another that the first deploy ends before
		// it has a word on its node. A later one finds both.
		testcluster.Eventually(t, patience, "both nodes in one error", func() error {
			out := l.refusal(t)
			for _, want := range []string{"image cannot be pulled", "registry.example.net/no/such:image"} {
				if !strings.Contains(out, want) {
					t.Errorf("deploy does not say %q:\n%s", want, out)
				}
			}
			for _, want := range []string{"node A (small.clab.yml:5)", "node B (small.clab.yml:6)"} {
				if !strings.Contains(out, want) {
					t.Logf("deploy does not say %q:\n%s", want, out)
					return fmt.Errorf("deploy does not say %q", want)
				}
			}
			return nil
		})
	})
	t.Run("worker", func(t *testing.T) {
		l := smallLab(t, "noworker", goodImage)
		const policy = "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: big\n    set: {resources: {requests: {memory: 9000Gi}}}\n"
		if err := os.WriteFile(filepath.Join(filepath.Dir(l.topo), "c9s.yaml"), []byte(policy), 0o644); err != nil {
			t.Fatal(err)
		}
		l.refused(t, []string{"node A", "no worker can take it", "Insufficient memory"})
	})
	// noneOf makes a quota that allows nothing of a resource.
	noneOf := func(t *testing.T, l *lab, name corev1.ResourceName) {
		t.Helper()
		l.namespace(t, nil)
		_, err := l.Typed.CoreV1().ResourceQuotas(l.ns).Create(t.Context(), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("0")}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Where what Pods use cannot be made, no Pod is.
	t.Run("services", func(t *testing.T) {
		l := smallLab(t, "noservices", goodImage)
		noneOf(t, l, corev1.ResourceServices)
		l.refused(t, []string{"Service/c9s-nodes", "(small.clab.yml)", "exceeded quota", "not everything was applied; run the same command again to continue"})
		list, err := l.Typed.AppsV1().Deployments(l.ns).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 0 {
			t.Errorf("%d Deployments are there, %v", len(list.Items), err)
		}
	})
	t.Run("quota", func(t *testing.T) {
		l := smallLab(t, "noquota", goodImage)
		noneOf(t, l, corev1.ResourcePods)
		l.refused(t, []string{"node A", "quota is used up", "exceeded quota"})
		if err := l.Typed.CoreV1().ResourceQuotas(l.ns).Delete(t.Context(), "none", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		l.deploy(t) // the old rejection is none of the new one's
		l.ready(t)
	})
	t.Run("command", func(t *testing.T) {
		l := smallLab(t, "crash", goodImage)
		text, err := os.ReadFile(l.topo)
		if err != nil {
			t.Fatal(err)
		}
		crash := strings.Replace(string(text), "A: {}", `A: {entrypoint: "sh -c 'echo the last words; exit 3'"}`, 1)
		if err := os.WriteFile(l.topo, []byte(crash), 0o644); err != nil {
			t.Fatal(err)
		}
		l.refused(t, []string{"node A", "ends again and again", "exit code 3", "the last words"})
	})
}
