package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// liveObject is an object in the cluster: of a lab, if any, and with a field manager.
func liveObject(kind, namespace, name, lab, manager string, operation metav1.ManagedFieldsOperationType) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	gvr, ok := rights.Resources[kind]
	if !ok {
		gvr = schema.GroupVersionResource{Version: "v1"}
	}
	u.SetAPIVersion(gvr.GroupVersion().String())
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID(namespace + kind + name))
	if lab != "" {
		u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "c9s", contract.LabelLab: lab})
		u.SetAnnotations(map[string]string{contract.AnnotationLabName: lab})
	}
	if manager != "" {
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: operation}})
	}
	return u
}

const (
	byApply  = metav1.ManagedFieldsOperationApply
	byUpdate = metav1.ManagedFieldsOperationUpdate
)

// fakeCluster is a cluster with some objects. Of server-side apply it has what the tests
// need: an object that is applied replaces the one of its name, and its manager is noted.
func fakeCluster(t *testing.T, objects ...*unstructured.Unstructured) (*Client, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{namespaces: "NamespaceList"}
	for kind, gvr := range rights.Resources {
		kinds[gvr] = kind + "List"
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	for _, u := range objects {
		gvr, ok := rights.Resources[u.GetKind()]
		if !ok {
			gvr = schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(u.GetKind()) + "s"}
		}
		if err := client.Tracker().Create(gvr, u, u.GetNamespace()); err != nil {
			t.Fatal(err)
		}
	}
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchActionImpl)
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(patch.GetPatch(), &u.Object); err != nil {
			return true, nil, err
		}
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: patch.PatchOptions.FieldManager, Operation: byApply}})
		if len(patch.PatchOptions.DryRun) > 0 {
			return true, u, nil
		}
		_ = client.Tracker().Delete(a.GetResource(), a.GetNamespace(), u.GetName())
		return true, u, client.Tracker().Create(a.GetResource(), u, a.GetNamespace())
	})
	return &Client{Dynamic: client, Typed: fake.NewClientset()}, client
}

// deletions are the objects that were deleted, sorted.
func deletions(client *dynamicfake.FakeDynamicClient) string {
	var out []string
	for _, a := range client.Actions() {
		if d, ok := a.(clienttesting.DeleteAction); ok {
			out = append(out, d.GetNamespace()+"/"+d.GetResource().Resource+"/"+d.GetName())
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// A deploy deletes what c9s applied for the lab in its namespace, and nothing else.
func TestPrune(t *testing.T) {
	wanted := liveObject("Deployment", "", "r1", "mine", "", "")
	planted := liveObject("ConfigMap", "demo", InventoryName, "mine", "kubectl", byUpdate)
	planted.Object["data"] = map[string]any{
		"kube-system_admin-token__Secret": "", "_kube-system__Namespace": "", "_cluster-admin_rbac.authorization.k8s.io_ClusterRole": "",
		"demo_others__Secret": "", "demo_r2_apps_Deployment": "",
	}
	labelled := liveObject("Secret", "demo", "labelled", "mine", "kubectl-edit", byUpdate) // by whoever may write it
	scaled := liveObject("Deployment", "demo", "replicas", "mine", FieldManager, byApply)  // of its scale alone
	scaled.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: byApply, Subresource: "scale"}})
	namesake := liveObject("ConfigMap", "demo", "namesake", "mine", FieldManager, byApply) // labels of two labs may be the same
	namesake.SetAnnotations(map[string]string{contract.AnnotationLabName: "Mine"})
	client, dynamic := fakeCluster(t,
		scaled, namesake,
		liveObject("Deployment", "demo", "r1", "mine", FieldManager, byApply),
		liveObject("Deployment", "demo", "r2", "mine", FieldManager, byApply),
		liveObject("ConfigMap", "demo", "r2-links", "mine", FieldManager, byApply),
		liveObject("PersistentVolumeClaim", "demo", "r2-data", "mine", FieldManager, byApply),
		liveObject("Service", "demo", "gitops", "mine", "kustomize-controller", byApply),
		liveObject("ConfigMap", "demo", "scaled", "mine", FieldManager, byUpdate), // c9s stop, not c9s deploy
		liveObject("ConfigMap", "demo", "other-lab", "other", FieldManager, byApply),
		liveObject("ConfigMap", "elsewhere", "same-lab", "mine", FieldManager, byApply),
		liveObject("Secret", "demo", "others", "", "kubectl", byUpdate),
		liveObject("Secret", "kube-system", "admin-token", "mine", FieldManager, byApply),
		labelled, planted,
	)
	lab := &Lab{Name: "mine", Namespace: "demo", objects: []*unstructured.Unstructured{wanted}}
	d, err := client.Diff(t.Context(), lab)
	if err != nil {
		t.Fatal(err)
	}
	var prune, foreign []string
	for _, p := range d.Prune {
		text := p.Object
		if p.Data {
			text += " (data)"
		}
		prune = append(prune, text)
	}
	for _, f := range d.Foreign {
		foreign = append(foreign, f.Object+" by "+strings.Join(f.Managers, ","))
	}
	if got, want := strings.Join(prune, ", "), "ConfigMap/r2-links, Deployment/r2, PersistentVolumeClaim/r2-data (data)"; got != want {
		t.Errorf("diff lists %s, want %s", got, want)
	}
	if got, want := strings.Join(foreign, ", "), "ConfigMap/scaled by c9s, Deployment/replicas by , Secret/labelled by kubectl-edit, Service/gitops by kustomize-controller"; got != want {
		t.Errorf("diff keeps %s, want %s", got, want)
	}
	if got := deletions(dynamic); got != "" {
		t.Errorf("diff deletes %s", got)
	}
	// The user agrees to all but the data.
	agreed := slices.DeleteFunc(d.Prune, func(p Prune) bool { return p.Data })
	if err := client.Apply(t.Context(), lab, ApplyOptions{Prune: agreed}); err != nil {
		t.Fatal(err)
	}
	if got, want := deletions(dynamic), "demo/configmaps/r2-links demo/deployments/r2"; got != want {
		t.Errorf("deploy deletes %s, want %s", got, want)
	}
	for _, a := range dynamic.Actions() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok && (d.DeleteOptions.Preconditions == nil || *d.DeleteOptions.Preconditions.UID == "") {
			t.Errorf("%s is deleted whatever it is by then", d.Name)
		}
	}
}

// Nothing is deleted, and no Deployment changed, if something that Pods mount could not
// be applied.
func TestApplyFailure(t *testing.T) {
	client, dynamic := fakeCluster(t, liveObject("Deployment", "demo", "r2", "mine", FieldManager, byApply))
	forbid(&dynamic.Fake, "patch", "configmaps")
	lab := &Lab{Name: "mine", Namespace: "demo", objects: []*unstructured.Unstructured{
		liveObject("Deployment", "", "r1", "mine", "", ""), liveObject("ConfigMap", "", "r1-links", "mine", "", ""),
	}}
	d, err := client.Diff(t.Context(), lab)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	err = client.Apply(t.Context(), lab, ApplyOptions{Prune: d.Prune, Tell: func(c Change) { told = append(told, c.Action+" "+c.Object) }})
	if err == nil || !strings.Contains(err.Error(), "ConfigMap/r1-links") {
		t.Errorf("got %v", err)
	}
	if got := deletions(dynamic); got != "" || strings.Join(told, ", ") != "applied ConfigMap/r1-links" {
		t.Errorf("deletes %q; tells %q", got, told)
	}
}

// The inventory of an earlier version goes; what it names that is no lab's is reported.
func TestDropInventory(t *testing.T) {
	inventory := func(lab string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: InventoryName, Labels: map[string]string{"app.kubernetes.io/managed-by": "c9s"}, Annotations: map[string]string{contract.AnnotationLabName: lab}},
			Data: map[string]string{
				"demo_r1_apps_Deployment": "", "demo_r1-links__ConfigMap": "", "demo_c9s-controller_rbac.authorization.k8s.io_Role": "",
				"other_token__Secret": "", "_other__Namespace": "", "_all_rbac.authorization.k8s.io_ClusterRole": "", "nonsense": "",
			},
		}
	}
	for name, c := range map[string]struct {
		of   string
		want string
		left int
	}{
		"the lab's": {"mine", `ClusterRole/all, Namespace/other, "nonsense", Secret/token of namespace other`, 0},
		"another's": {"other", "", 1},
	} {
		client := &Client{Typed: fake.NewClientset(inventory(c.of))}
		got, err := client.DropInventory(t.Context(), &Lab{Name: "mine", Namespace: "demo"})
		if err != nil || strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
		list, err := client.Typed.CoreV1().ConfigMaps("demo").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != c.left {
			t.Errorf("%s: %d are left, %v", name, len(list.Items), err)
		}
	}
	none, err := (&Client{Typed: fake.NewClientset()}).DropInventory(t.Context(), &Lab{Name: "mine", Namespace: "demo"})
	if err != nil || none != nil {
		t.Errorf("without one: %v, %v", none, err)
	}
}

// What c9s sets on a namespace of somebody else is the level, for as long as the lab is
// there.
func TestNamespaceLevel(t *testing.T) {
	rendered := liveObject("Namespace", "", "demo", "mine", "", "")
	labels := rendered.GetLabels()
	labels[podSecurity] = privileged
	rendered.SetLabels(labels)
	lab := &Lab{Name: "mine", Namespace: "demo", namespace: rendered}
	for name, c := range map[string]struct {
		existing Existing
		asks     bool
		applied  string // the labels and annotations that c9s applies
	}{
		"new":                         {Existing{Fresh: true}, false, "app.kubernetes.io/managed-by c9s.dev/lab c9s.dev/lab-name " + podSecurity},
		"the lab's":                   {Existing{Namespace: namespaceOf("mine", "")}, false, "app.kubernetes.io/managed-by c9s.dev/lab c9s.dev/lab-name " + podSecurity},
		"somebody else's":             {Existing{Namespace: namespaceOf("", "")}, true, annotationLevelFor + " " + podSecurity},
		"somebody else's, privileged": {Existing{Namespace: namespaceOf("", privileged)}, false, ""},
		"one that cannot be seen":     {Existing{}, false, ""},
	} {
		client, dynamic := fakeCluster(t)
		if got := c.existing.SetsLevel(lab); got != c.asks {
			t.Errorf("%s: asks %t", name, got)
		}
		if err := client.EnsureNamespace(t.Context(), lab, c.existing); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var applied []string
		if ns, err := dynamic.Tracker().Get(namespaces, "", "demo"); err == nil {
			u := ns.(*unstructured.Unstructured)
			for key := range u.GetLabels() {
				applied = append(applied, key)
			}
			for key := range u.GetAnnotations() {
				applied = append(applied, key)
			}
			slices.Sort(applied)
		}
		if got := strings.Join(applied, " "); got != c.applied {
			t.Errorf("%s: applies %q, want %q", name, got, c.applied)
		}
	}
}

func namespaceOf(lab, level string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo", Labels: map[string]string{}}}
	if lab != "" {
		ns.Labels = map[string]string{"app.kubernetes.io/managed-by": "c9s", contract.LabelLab: lab}
		ns.Annotations = map[string]string{contract.AnnotationLabName: lab}
	}
	if level != "" {
		ns.Labels[podSecurity] = level
	}
	return ns
}

func TestRestoreLevel(t *testing.T) {
	set := func(lab, marked string, managers ...string) *corev1.Namespace {
		ns := namespaceOf(lab, privileged)
		if marked != "" {
			ns.Annotations = map[string]string{annotationLevelFor: marked}
		}
		for _, m := range managers {
			ns.ManagedFields = append(ns.ManagedFields, metav1.ManagedFieldsEntry{Manager: m, Operation: byApply})
		}
		return ns
	}
	for name, c := range map[string]struct {
		ns   *corev1.Namespace
		want bool
	}{
		"set for the lab":                  {set("", "mine", "kubectl", FieldManager), true},
		"set by an earlier version":        {set("", "", FieldManager), true},
		"set for another lab":              {set("", "other", FieldManager), false},
		"set by somebody else":             {set("", "", "kubectl"), false},
		"a namespace that the lab created": {set("mine", "", FieldManager), false},
	} {
		client, dynamic := fakeCluster(t)
		client.Typed = fake.NewClientset(c.ns)
		got, err := client.restoreLevel(t.Context(), &Lab{Name: "mine", Namespace: "demo"})
		if err != nil || got != c.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
		ns, err := dynamic.Tracker().Get(namespaces, "", "demo")
		if (err == nil) != c.want {
			t.Errorf("%s: applied: %v, %v", name, ns, err)
		}
		if err == nil && len(ns.(*unstructured.Unstructured).GetLabels()) > 0 {
			t.Errorf("%s: keeps %v", name, ns)
		}
	}
}
