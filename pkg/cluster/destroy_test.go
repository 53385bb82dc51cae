package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// metaOf is an object's metadata; lab "" for one that c9s did not make.
func metaOf(kind, name, lab string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: versionOf(kind), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, UID: types.UID(kind + name)},
	}
	switch {
	case lab == "":
	case derived(kind): // what the template of a node's Deployment has
		m.Labels = map[string]string{contract.LabelLab: lab, contract.LabelComponent: contract.ComponentNode}
	default:
		m.Labels = map[string]string{"app.kubernetes.io/managed-by": "c9s", contract.LabelLab: lab}
		m.Annotations = map[string]string{contract.AnnotationLabName: lab}
	}
	return m
}

func versionOf(kind string) string {
	switch kind {
	case "Job":
		return "batch/v1"
	case "VirtualMachine":
		return "kubevirt.io/v1"
	case "ResourceQuota", "Event":
		return "v1"
	}
	return removed[kind].GroupVersion().String()
}

// goneAfter gives an object at the first time, and none after it.
func goneAfter(o runtime.Object) clienttesting.ReactionFunc {
	asked := 0
	return func(a clienttesting.Action) (bool, runtime.Object, error) {
		if asked++; asked > 1 {
			return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), "demo")
		}
		return true, o, nil
	}
}

// labIn are the objects of a lab with one node.
func labIn(lab string) []runtime.Object {
	return []runtime.Object{
		metaOf("Deployment", "r1", lab), metaOf("ReplicaSet", "r1-5", lab), metaOf("Pod", "r1-5-x", lab),
		metaOf("Service", "r1", lab), metaOf("ConfigMap", contract.DirectoryConfigMap, lab), metaOf("ConfigMap", contract.AllocationsName(0), lab),
		metaOf("Secret", "key", lab), metaOf("PersistentVolumeClaim", "r1-data", lab),
		metaOf("ConfigMap", "kube-root-ca.crt", ""), metaOf("ServiceAccount", "default", ""),
	}
}

type destroyed struct {
	*destruction
	meta   *metadatafake.FakeMetadataClient
	typed  *fake.Clientset
	told   []string
	graces map[string]*int64
}

func newDestroyed(t *testing.T, o DestroyOptions, objects ...runtime.Object) *destroyed {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	d := &destroyed{
		meta: metadatafake.NewSimpleMetadataClient(scheme, objects...),
		typed: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "demo", Labels: map[string]string{"app.kubernetes.io/managed-by": "c9s", contract.LabelLab: "mine"}, Annotations: map[string]string{contract.AnnotationLabName: "mine"},
		}}),
		graces: map[string]*int64{},
	}
	d.meta.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		del := a.(clienttesting.DeleteActionImpl)
		d.graces[del.GetResource().Resource+"/"+del.GetName()] = del.DeleteOptions.GracePeriodSeconds
		return false, nil, nil
	})
	d.typed.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: resourcesOf("ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim", "Pod", "ResourceQuota", "Event")},
		{GroupVersion: "apps/v1", APIResources: resourcesOf("Deployment", "ReplicaSet")},
		{GroupVersion: "batch/v1", APIResources: resourcesOf("Job")},
		{GroupVersion: "kubevirt.io/v1", APIResources: resourcesOf("VirtualMachine")},
	}
	o.Wait = true
	o.Tell = func(c Change) { d.told = append(d.told, c.Action+" "+c.Object) }
	d.destruction = &destruction{client: &Client{Typed: d.typed}, meta: collector{d.meta}, lab: &Lab{Name: "mine", Namespace: "demo"}, patience: 50 * time.Millisecond, DestroyOptions: o}
	return d
}

// collector deletes collections, which the fake client only records: one object after the other,
// with the options of the collection.
type collector struct{ metadata.Interface }

func (c collector) Resource(r schema.GroupVersionResource) metadata.Getter {
	return collectorGetter{c.Interface.Resource(r)}
}

type collectorGetter struct{ metadata.Getter }

func (g collectorGetter) Namespace(ns string) metadata.ResourceInterface {
	return collectorObjects{g.Getter.Namespace(ns)}
}

type collectorObjects struct{ metadata.ResourceInterface }

func (o collectorObjects) DeleteCollection(ctx context.Context, options metav1.DeleteOptions, which metav1.ListOptions) error {
	if err := o.ResourceInterface.DeleteCollection(ctx, options, which); err != nil {
		return err
	}
	list, err := o.List(ctx, which)
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := o.Delete(ctx, list.Items[i].Name, options); err != nil {
			return err
		}
	}
	return nil
}

// resourcesOf returns the discovery answer for kinds.
func resourcesOf(kinds ...string) []metav1.APIResource {
	var out []metav1.APIResource
	for _, kind := range kinds {
		out = append(out, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"get", "list", "delete"}})
	}
	return append(out, metav1.APIResource{Name: "tokens", Kind: "Token", Namespaced: true, Verbs: metav1.Verbs{"create"}})
}

// deleted are the objects that were deleted one by one, sorted.
func (d *destroyed) deleted() string {
	var out []string
	for name := range d.graces {
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (d *destroyed) namespaceThere(t *testing.T) bool {
	t.Helper()
	_, err := d.typed.CoreV1().Namespaces().Get(t.Context(), "demo", metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

// forbid rejects a verb on a resource.
func forbid(fake *clienttesting.Fake, verb, resource string) {
	fake.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no"))
	})
}

const (
	runs = "deployments/r1 pods/r1-5-x replicasets/r1-5"
	all  = "configmaps/c9s-allocations configmaps/c9s-directory deployments/r1 persistentvolumeclaims/r1-data pods/r1-5-x replicasets/r1-5 secrets/key services/r1"
)

func TestDestroy(t *testing.T) {
	tests := map[string]struct {
		options DestroyOptions
		more    []runtime.Object
		with    func(*destroyed)
		deleted string
		kept    bool   // the namespace
		told    string // in what is reported
	}{
		"a namespace of its own goes as a whole": {deleted: all, told: "deleted Namespace/demo"},
		"somebody's Job is in the namespace": {
			more: []runtime.Object{metaOf("Job", "backup", "")}, deleted: all, kept: true, told: "kept Namespace/demo (it contains Job backup)",
		},
		"somebody's Pod is in the namespace": {
			more: []runtime.Object{metaOf("Pod", "debug", "")}, deleted: all, kept: true, told: "kept Namespace/demo (it contains Pod debug)",
		},
		"somebody's quota is in the namespace": {
			more: []runtime.Object{metaOf("ResourceQuota", "team", "")}, deleted: all, kept: true, told: "kept Namespace/demo (it contains ResourceQuota team)",
		},
		"an object of a kind that Kubernetes does not know by itself is in the namespace": {
			more: []runtime.Object{metaOf("VirtualMachine", "windows", "")}, deleted: all, kept: true, told: "kept Namespace/demo (it contains VirtualMachine windows)",
		},
		"Kubernetes' own events are in the namespace": {
			more: []runtime.Object{metaOf("Event", "r1.17", "")}, deleted: all, told: "deleted Namespace/demo",
		},
		"the namespace was there before": {
			with: func(d *destroyed) {
				d.typed = fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo", Labels: map[string]string{"team": "a"}}})
				d.client.Typed = d.typed
			},
			deleted: all, kept: true, told: "deleted Service/r1",
		},
		"the user may not see Roles": {
			with: func(d *destroyed) {
				forbid(&d.meta.Fake, "list", "roles")
				forbid(&d.typed.Fake, "delete", "namespaces")
			},
			deleted: all, kept: true, told: "kept roles, if any",
		},
		"the namespace is going already": {
			with: func(d *destroyed) {
				now := metav1.Now()
				ns, _ := d.typed.CoreV1().Namespaces().Get(t.Context(), "demo", metav1.GetOptions{})
				ns.DeletionTimestamp = &now
				d.typed = fake.NewClientset(ns)
				d.client.Typed = d.typed
				forbid(&d.typed.Fake, "delete", "namespaces")
				d.typed.PrependReactor("get", "namespaces", goneAfter(ns))
			},
			deleted: all,
		},
		"another lab is in the namespace": {
			more: []runtime.Object{metaOf("Deployment", "other-r1", "other")}, deleted: all, kept: true, told: "kept Namespace/demo (it contains Deployment other-r1)",
		},
		"the user may not delete namespaces": {
			with:    func(d *destroyed) { forbid(&d.typed.Fake, "delete", "namespaces") },
			deleted: all, kept: true, told: "kept Namespace/demo (you may not delete it)",
		},
		"the user may not see Jobs": {
			with:    func(d *destroyed) { forbid(&d.meta.Fake, "list", "jobs") },
			deleted: all, kept: true, told: "kept Namespace/demo (you may not check whether it contains a Job)",
		},
		"the user may not delete ReplicaSets": {
			with:    func(d *destroyed) { forbid(&d.meta.Fake, "delete", "replicasets") },
			deleted: strings.Replace(all, "replicasets/r1-5 ", "", 1), told: "deleted Namespace/demo",
		},
		"the user may not delete collections": {
			with:    func(d *destroyed) { forbid(&d.meta.Fake, "delete-collection", "*") },
			deleted: runs + " services/r1", told: "deleted Namespace/demo",
		},
		"the user may not see ReplicaSets": {
			with:    func(d *destroyed) { forbid(&d.meta.Fake, "list", "replicasets") },
			deleted: all[:strings.Index(all, "replicasets")] + "secrets/key services/r1", kept: true, told: "you may not check whether it contains a ReplicaSet",
		},
		"an earlier version's inventory is in the namespace": {
			with: func(d *destroyed) {
				old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: "demo", Name: InventoryName, Labels: map[string]string{"app.kubernetes.io/managed-by": "c9s"}, Annotations: map[string]string{contract.AnnotationLabName: "mine"},
				}}
				if err := d.typed.Tracker().Add(old); err != nil {
					t.Fatal(err)
				}
				d.typed.PrependReactor("delete", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
					if _, err := d.typed.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "demo", InventoryName); !apierrors.IsNotFound(err) {
						t.Errorf("the inventory is still there: %v", err)
					}
					return false, nil, nil
				})
			},
			deleted: all, told: "deleted Namespace/demo",
		},
		"the data is kept": {
			options: DestroyOptions{KeepData: true}, deleted: "configmaps/c9s-directory " + runs + " services/r1", kept: true, told: "deleted Deployment/r1",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDestroyed(t, tt.options, append(labIn("mine"), tt.more...)...)
			if tt.with != nil {
				tt.with(d)
			}
			if err := d.run(t.Context(), t.Context(), func() {}); err != nil {
				t.Fatal(err)
			}
			if got := d.deleted(); got != tt.deleted {
				t.Errorf("deleted %s, want %s", got, tt.deleted)
			}
			if d.namespaceThere(t) != tt.kept {
				t.Errorf("the namespace is there: %t, want %t", !tt.kept, tt.kept)
			}
			if !strings.Contains(strings.Join(d.told, "\n"), tt.told) {
				t.Errorf("%q is not in what is reported:\n%s", tt.told, strings.Join(d.told, "\n"))
			}
			for i, line := range d.told {
				if slices.Contains(d.told[:i], line) {
					t.Errorf("reported twice: %s", line)
				}
				if strings.Contains(line, "Pod/") || strings.Contains(line, "ReplicaSet/") {
					t.Errorf("reported what is no object of the lab: %s", line)
				}
			}
		})
	}
}

// Pods are ended at once, but not before their worker has done it, and only by
// --graceful in their own time.
func TestDestroyGrace(t *testing.T) {
	d := newDestroyed(t, DestroyOptions{}, labIn("mine")...)
	if err := d.run(t.Context(), t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	if grace := d.graces["pods/r1-5-x"]; grace == nil || *grace != killAfter {
		t.Errorf("a Pod is given %v, want %d s", grace, killAfter)
	}
	if grace := d.graces["deployments/r1"]; grace != nil {
		t.Errorf("a Deployment is given %d s", *grace)
	}
	d = newDestroyed(t, DestroyOptions{Graceful: true}, labIn("mine")...)
	if err := d.run(t.Context(), t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	if grace, ok := d.graces["pods/r1-5-x"]; !ok || grace != nil {
		t.Errorf("with --graceful, a Pod is given %v (deleted: %t), want its own time", grace, ok)
	}
}

// A Pod that is on its way out already, with more time than it is to have, is hurried.
func TestDestroyShortensGracePeriods(t *testing.T) {
	now := metav1.Now()
	for grace, want := range map[int64]bool{10: true, killAfter: false, 0: false} {
		pod := metaOf("Pod", "r1", "mine")
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds, pod.Finalizers = &now, &grace, []string{"test"}
		for _, graceful := range []bool{false, true} {
			d := newDestroyed(t, DestroyOptions{Graceful: graceful}, pod)
			going, there, err := d.find(t.Context(), "Pod")
			if err != nil || len(there) != 1 || (len(going) == 1) != (want && !graceful) {
				t.Errorf("with %d s left, graceful %t: deletes %d of %d, %v", grace, graceful, len(going), len(there), err)
			}
		}
	}
}

// A Pod that does not end, as on a lost worker, is named, and everything else goes.
func TestDestroyLostWorker(t *testing.T) {
	for _, shared := range []bool{false, true} {
		objects := labIn("mine")
		if shared {
			objects = append(objects, metaOf("ResourceQuota", "team", ""))
		}
		d := newDestroyed(t, DestroyOptions{}, objects...)
		d.meta.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "r1-5-x", Labels: map[string]string{contract.LabelLab: "mine"}}, Spec: corev1.PodSpec{NodeName: "n2"}}
		if _, err := d.typed.CoreV1().Pods("demo").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		err := d.run(t.Context(), t.Context(), func() {})
		if err == nil || !strings.Contains(err.Error(), "r1-5-x on worker n2") || !strings.Contains(err.Error(), "--force") {
			t.Errorf("got %v", err)
		}
		if d.namespaceThere(t) != shared {
			t.Errorf("shared %t: the namespace is there: %t", shared, !shared)
		}
		if left, err := d.meta.Resource(removed["ConfigMap"]).Namespace("demo").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=c9s"}); shared && (err != nil || len(left.Items) > 0) {
			t.Errorf("%d ConfigMaps are left, %v", len(left.Items), err)
		}
	}
}

// All are deleted, what no longer exists already is no error, and each error names its object.
func TestRemoveAll(t *testing.T) {
	var there []runtime.Object
	var going []*metav1.PartialObjectMetadata
	for i := range 3 * requestsAtOnce {
		m := metaOf("ConfigMap", fmt.Sprintf("c%d", i), "mine")
		going = append(going, m)
		if i != 1 {
			there = append(there, m)
		}
	}
	d := newDestroyed(t, DestroyOptions{}, there...)
	refused := errors.New("refused")
	d.meta.PrependReactor("delete", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.DeleteAction).GetName() == "c2", nil, refused
	})
	if err := d.removeAll(t.Context(), "ConfigMap", going); err == nil || err.Error() != "ConfigMap/c2: refused" {
		t.Errorf("got %v, want the one that was refused", err)
	}
	left, err := d.meta.Resource(removed["ConfigMap"]).Namespace("demo").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 {
		t.Errorf("%d are left, want the one that was refused: %v", len(left.Items), err)
	}
	if len(d.told) != len(going) {
		t.Errorf("reported %d of %d", len(d.told), len(going))
	}
}

// In a namespace of its own, what is left of the lab is deleted at once, so that nobody finds the
// lab there while Kubernetes takes its time. What belongs to somebody else is not touched.
func TestDestroyClears(t *testing.T) {
	for _, wait := range []bool{true, false} {
		d := newDestroyed(t, DestroyOptions{}, labIn("mine")...)
		d.Wait = wait
		forbid(&d.meta.Fake, "delete-collection", "secrets") // which does not matter
		if err := d.run(t.Context(), t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
		var cleared []string
		for _, a := range d.meta.Actions() {
			if c, ok := a.(clienttesting.DeleteCollectionActionImpl); ok {
				cleared = append(cleared, a.GetResource().Resource)
				if got := c.GetListRestrictions().Labels.String(); got != labSelector("mine") && got != labelOf("mine") || a.GetNamespace() != "demo" {
					t.Errorf("%s %q of namespace %s are deleted", a.GetResource().Resource, got, a.GetNamespace())
				}
			}
		}
		slices.Sort(cleared)
		want := "deployments replicasets services"
		if wait {
			want = "configmaps deployments networkpolicies persistentvolumeclaims replicasets rolebindings roles secrets serviceaccounts services services"
		}
		if got := strings.Join(cleared, " "); got != want {
			t.Errorf("wait %t: cleared %q, want %q", wait, got, want)
		}
	}
}

// Each step is announced before it runs, and only those that the options ask for.
func TestDestroySteps(t *testing.T) {
	for _, wait := range []bool{true, false} {
		d := newDestroyed(t, DestroyOptions{}, labIn("mine")...)
		var steps []string
		d.Wait, d.Step = wait, func(name string) { steps = append(steps, name) }
		released := false
		if err := d.run(t.Context(), t.Context(), func() { released = true }); err != nil {
			t.Fatal(err)
		}
		want := []string{"delete the namespace", "delete Deployments and Pods", "wait until the Pods have stopped", "delete all other objects"}
		if !wait {
			want = slices.DeleteFunc(want, func(s string) bool { return strings.HasPrefix(s, "wait") })
		}
		if !slices.Equal(steps, want) {
			t.Errorf("wait %v: %q, want %q", wait, steps, want)
		}
		if !released {
			t.Error("the claim is held although the namespace is being deleted")
		}
	}
}
