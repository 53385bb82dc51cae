package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	cliobject "sigs.k8s.io/cli-utils/pkg/object"
)

// made is an object of namespace demo, with the annotations "name=value".
func made(apiVersion, kind, name string, annotations ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace("demo")
	u.SetName(name)
	all := map[string]string{}
	for _, a := range annotations {
		name, value, _ := strings.Cut(a, "=")
		all[name] = value
	}
	u.SetAnnotations(all)
	return u
}

// fakeCluster has objects, takes applies and notes the writes, as "apply Kind/name".
func fakeCluster(there ...*unstructured.Unstructured) (*Client, func() []string) {
	var objects []runtime.Object
	for _, u := range there {
		objects = append(objects, u)
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		resources["ConfigMap"]: "ConfigMapList", resources["Deployment"]: "DeploymentList",
	}, objects...)
	var mu sync.Mutex
	var writes []string
	note := func(verb, resource, name string) {
		mu.Lock()
		defer mu.Unlock()
		writes = append(writes, verb+" "+resource+"/"+name)
	}
	client.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.PatchAction)
		if p.GetName() == "refused" {
			return true, nil, errors.New("the API server refuses it")
		}
		note("apply", p.GetResource().Resource, p.GetName())
		return true, &unstructured.Unstructured{}, nil
	})
	client.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		note("delete", a.GetResource().Resource, a.(clienttesting.DeleteAction).GetName())
		return false, nil, nil
	})
	return &Client{Dynamic: client}, func() []string { mu.Lock(); defer mu.Unlock(); return writes }
}

var demo = &Lab{Name: "demo", Namespace: "demo"}

// Every object is applied once and told, and each failure is that of its object.
func TestApplyAll(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 3 * appliesAtOnce {
		objects = append(objects, made("v1", "ConfigMap", fmt.Sprintf("c%d", i)))
	}
	objects = append(objects,
		made("v1", "ConfigMap", "refused", "c9s.dev/source=topo.clab.yml:17"),
		made("v1", "ConfigMap", "theirs"), made("v1", "ConfigMap", "ours"), made("v1", "ConfigMap", "nobodys"))
	c, writes := fakeCluster(
		made("v1", "ConfigMap", "theirs", owningInventory+"=other"),
		made("v1", "ConfigMap", "ours", owningInventory+"="+inventoryID("demo", "demo")), made("v1", "ConfigMap", "nobodys"))
	told := 0
	err := c.applyAll(t.Context(), demo, objects, ApplyOptions{Tell: func(Change) { told++ }})
	if err == nil || !strings.Contains(err.Error(), "ConfigMap/refused (topo.clab.yml:17): the API server refuses it") || !strings.Contains(err.Error(), "ConfigMap/theirs: ") {
		t.Errorf("the error is %v", err)
	}
	if told != len(objects) {
		t.Errorf("%d of %d are told", told, len(objects))
	}
	got := writes()
	slices.Sort(got)
	if len(got) != len(objects)-2 || len(slices.Compact(got)) != len(objects)-2 || !slices.Contains(got, "apply configmaps/ours") || !slices.Contains(got, "apply configmaps/nobodys") {
		t.Errorf("it writes %v", got)
	}
}

// Deployments come when all that their Pods mount is there.
func TestWaves(t *testing.T) {
	w := waves([]*unstructured.Unstructured{made("apps/v1", "Deployment", "r1"), made("v1", "ConfigMap", "r1-links"), made("v1", "Service", "r1")})
	if len(w[0]) != 2 || len(w[1]) != 1 || w[1][0].GetName() != "r1" {
		t.Errorf("the waves are %v", w)
	}
}

func TestPrune(t *testing.T) {
	ours := owningInventory + "=" + inventoryID("demo", "demo")
	c, writes := fakeCluster(
		made("v1", "ConfigMap", "r1-links", ours), made("apps/v1", "Deployment", "r1", ours),
		made("v1", "ConfigMap", "kept", ours, "client.lifecycle.config.k8s.io/deletion=detach"),
		made("v1", "ConfigMap", "theirs", owningInventory+"=other"))
	id := func(group, kind, name string) cliobject.ObjMetadata {
		return cliobject.ObjMetadata{Namespace: "demo", Name: name, GroupKind: schema.GroupKind{Group: group, Kind: kind}}
	}
	unknown := id("example.org", "Widget", "w")
	left, err := c.prune(t.Context(), demo, cliobject.ObjMetadataSet{
		id("", "ConfigMap", "r1-links"), id("", "ConfigMap", "kept"), id("", "ConfigMap", "theirs"), id("", "ConfigMap", "gone"), unknown,
		id("apps", "Deployment", "r1"),
	}, ApplyOptions{})
	if err == nil || !strings.Contains(err.Error(), "Widget/w: ") {
		t.Errorf("the error is %v", err)
	}
	if !left.Equal(cliobject.ObjMetadataSet{unknown}) {
		t.Errorf("%v is left", left)
	}
	// The Pod first.
	if got := writes(); !slices.Equal(got, []string{"delete deployments/r1", "delete configmaps/r1-links"}) {
		t.Errorf("it writes %v", got)
	}
}
