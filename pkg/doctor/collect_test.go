package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// fakeCluster allows every right but those whose resource is named, and forbids
// reading the resources in forbidden.
func fakeCluster(t *testing.T, lacks, forbidden []string, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(objects...)
	client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: "v1.31.2"}
	client.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = !slices.Contains(lacks, review.Spec.ResourceAttributes.Resource)
		return true, review, nil
	})
	client.PrependReactor("create", "selfsubjectrulesreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, a.(clienttesting.CreateAction).GetObject(), nil // it lists none
	})
	// The fake keeps what a dry-run makes.
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, a.(clienttesting.CreateAction).GetObject(), nil
	})
	for _, resource := range forbidden {
		client.PrependReactor("*", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
		})
	}
	return client
}

func clusterObjects() []runtime.Object {
	n1, n2 := worker("n1"), worker("n2")
	own := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "r1-1", Namespace: "demo", Labels: map[string]string{contract.LabelLab: "demo"}}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	return []runtime.Object{
		&n1, &n2, own, other,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kube-dns", Namespace: "kube-system", Labels: map[string]string{"k8s-app": "kube-dns"}}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10"}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-dns-1", Namespace: "kube-system", Labels: map[string]string{"kubernetes.io/service-name": "kube-dns"}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
	}
}

// A policy that forbids the worker's folder is not one that forbids the Pod.
func TestCollectNear(t *testing.T) {
	for name, n := range map[string]Needs{"any lab": Any(), "one lab": func() Needs {
		n := Any()
		n.Lab = "demo"
		return n
	}()} {
		t.Run(name, func(t *testing.T) {
			client := fakeCluster(t, nil, nil, clusterObjects()...)
			client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				for _, v := range a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).Spec.Volumes {
					if v.HostPath != nil {
						return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("HostPath volumes are forbidden"))
					}
				}
				return false, nil, nil
			})
			f, err := Collector{Client: client, Namespace: "demo", Fallback: "default"}.Collect(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if f.Admission.Err != nil || f.Admission.Near == nil || !f.Admission.Sidecars {
				t.Errorf("admission %+v", f.Admission)
			}
			want := Warning
			if n.Lab != "" {
				want = Problem
			}
			checks := checkNear(f, n)
			if len(checks) != 1 || checks[0].Result != want || !strings.Contains(checks[0].Found, "/run/c9s") || !strings.Contains(checks[0].Remedy, "wires: {local: false}") {
				t.Errorf("checks %+v", checks)
			}
			if c := checkAdmission(f, n); c[0].Result != OK {
				t.Errorf("privileged Pods: %+v", c)
			}
		})
	}
}

func TestCollect(t *testing.T) {
	client := fakeCluster(t, nil, nil, clusterObjects()...)
	n := lab(pod("R1", "1m", "1Mi"))
	f, err := Collector{Client: client, Namespace: "demo", Fallback: "default"}.Collect(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if f.Admission.Namespace != "default" || f.Admission.Err != nil || !f.Admission.Sidecars {
		t.Errorf("admission %+v: the lab's namespace is not there, so it is asked in the context's", f.Admission)
	}
	if len(f.Workers) != 2 || len(f.Balanced) != 1 || len(f.DNS.Services) != 1 || len(f.Missing) != 0 {
		t.Errorf("%d workers, %d balanced, %d of DNS, missing %v", len(f.Workers), len(f.Balanced), len(f.DNS.Services), f.Missing)
	}
	if len(f.Pods) != 1 || f.Pods[0].Name != "x" {
		t.Errorf("Pods that take room: %d; the lab's own do not count", len(f.Pods))
	}
	for _, c := range Examine(f, n) {
		if c.Result != OK {
			t.Errorf("%+v", c)
		}
	}
	for _, a := range client.Actions() {
		if create, ok := a.(clienttesting.CreateActionImpl); ok && a.GetResource().Resource == "pods" && !slices.Contains(create.CreateOptions.DryRun, metav1.DryRunAll) {
			t.Error("a Pod was made that is no dry-run")
		}
	}
}

// A user of one namespace may not read the cluster: each fact that is missing is a
// warning, and none of them is a problem.
func TestCollectForbidden(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	client := fakeCluster(t, nil, []string{"nodes", "storageclasses", "services"}, append(clusterObjects(), ns)...)
	f, err := Collector{Client: client, Namespace: "demo", Fallback: "default"}.Collect(t.Context(), Any())
	if err != nil {
		t.Fatal(err)
	}
	if f.Admission.Namespace != "demo" {
		t.Errorf("admission was asked in %q, and the namespace is there", f.Admission.Namespace)
	}
	demand(t, Examine(f, Any()), []expect{
		{"API server", OK, ""}, {"namespace", OK, ""}, {"privileged Pods", OK, ""}, {"your rights", OK, ""},
		{"workers", Warning, "nodes is forbidden"}, {"StorageClass", Warning, "forbidden"}, {"DNS", Warning, "forbidden"},
	})
}

func TestCollectMissingRights(t *testing.T) {
	client := fakeCluster(t, []string{"secrets"}, nil, clusterObjects()...)
	f, err := Collector{Client: client, Namespace: "demo", Fallback: "default"}.Collect(t.Context(), Any())
	if err != nil {
		t.Fatal(err)
	}
	got := checkRights(f, Any())
	demand(t, got, []expect{
		{"your rights", Problem, "for deploy you may not: list, create, patch secrets"},
		{"your rights", Warning, "for redeploy you may not: delete secrets"},
	})
	if !strings.Contains(got[0].Remedy, "ClusterRole admin") {
		t.Errorf("remedy %q", got[0].Remedy)
	}
}
