package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// TestExistingImage: the version and the c9s image of a lab are read from the cluster.
func TestExistingImage(t *testing.T) {
	meta := func(name, component string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "demo", Labels: map[string]string{contract.LabelLab: "demo", contract.LabelComponent: component},
			Annotations: map[string]string{contract.AnnotationLabName: "demo", contract.AnnotationVersion: "1.2"}}
	}
	d := &appsv1.Deployment{ObjectMeta: meta("r1", contract.ComponentNode)}
	d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "other", Image: "other:1"}, {Name: contract.WireContainer, Image: "mirror/c9s:1.2"}}
	c := &Client{Typed: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}, d,
		&corev1.ConfigMap{ObjectMeta: meta("c9s-directory", contract.ComponentLab)})}
	e, err := c.Existing(t.Context(), "demo")
	if err != nil || e.Version != "1.2" || e.Image != "mirror/c9s:1.2" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestKVMWorkers: one worker with one of the labels is enough; no right is no label.
func TestKVMWorkers(t *testing.T) {
	worker := func(label, value string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w", Labels: map[string]string{label: value}}}
	}
	for name, c := range map[string]struct {
		client *fake.Clientset
		want   bool
	}{
		"ours":         {fake.NewClientset(worker(contract.LabelKVM, "true")), true},
		"features":     {fake.NewClientset(worker(contract.KVMLabels[2], "true")), true},
		"says no":      {fake.NewClientset(worker(contract.LabelKVM, "false")), false},
		"says nothing": {fake.NewClientset(worker("a", "true")), false},
	} {
		if got, err := (&Client{Typed: c.client}).KVMWorkers(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	blind := fake.NewClientset(worker(contract.LabelKVM, "true"))
	forbid(&blind.Fake, "list", "nodes")
	if got, err := (&Client{Typed: blind}).KVMWorkers(t.Context()); err != nil || got {
		t.Errorf("without the right: %v, %v", got, err)
	}
}

// TestMissingPullSecrets: a pull secret is in the namespace, in the lab, or reported.
func TestMissingPullSecrets(t *testing.T) {
	secret := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetKind("Secret")
		u.SetName(name)
		return u
	}
	deployment := func(name string, secrets ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetKind("Deployment")
		u.SetName(name)
		_ = unstructured.SetNestedSlice(u.Object, secrets, "spec", "template", "spec", "imagePullSecrets")
		return u
	}
	a, b, own := map[string]any{"name": "a"}, map[string]any{"name": "b"}, map[string]any{"name": "own"}
	l := &Lab{Name: "demo", Namespace: "demo", objects: []*unstructured.Unstructured{deployment("r1", a, own), deployment("r2", b), deployment("r3", b), secret("own")}}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, metaOf("Secret", "a", ""))
	err := missingPullSecrets(t.Context(), client, l, Existing{})
	if err == nil || !strings.Contains(err.Error(), "no pull secret b, which r2 and 1 more use") || strings.Contains(err.Error(), "secret a,") || strings.Contains(err.Error(), "own") {
		t.Errorf("%v", err)
	}
	if err := missingPullSecrets(t.Context(), client, l, Existing{Fresh: true}); err == nil || !strings.Contains(err.Error(), "no pull secret a, which r1 uses") {
		t.Errorf("new namespace: %v", err)
	}
	l.objects = l.objects[:1]
	l.objects = append(l.objects, secret("own"))
	if err := missingPullSecrets(t.Context(), client, l, Existing{}); err != nil {
		t.Errorf("nothing is missing: %v", err)
	}
}

func TestExistingAfter(t *testing.T) {
	ns := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"example.com/late"}},
		Status:     corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating},
	}
	synctest.Test(t, func(t *testing.T) {
		c := &Client{Typed: fake.NewClientset(ns)}
		began := time.Now()
		existing, err := c.ExistingAfter(t.Context(), "demo", time.Minute)
		if err != nil || !existing.Terminating() || time.Since(began) != time.Minute {
			t.Errorf("a namespace that is never deleted: %v, terminating %t, after %s", err, existing.Terminating(), time.Since(began))
		}
		go func() {
			time.Sleep(5 * time.Second)
			if err := c.Typed.(*fake.Clientset).Tracker().Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", "demo"); err != nil {
				t.Error(err)
			}
		}()
		began = time.Now()
		existing, err = c.ExistingAfter(t.Context(), "demo", time.Minute)
		if took := time.Since(began); err != nil || !existing.Fresh || took < 5*time.Second || took > 6*time.Second {
			t.Errorf("a namespace that is deleted after 5 s: %v, fresh %t, after %s", err, existing.Fresh, took)
		}
	})
}
