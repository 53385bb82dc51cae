package cluster

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/common"
	cliobject "sigs.k8s.io/cli-utils/pkg/object"
)

func named(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetKind(kind)
	u.SetName(name)
	return u
}

// Every object is in one part, Deployments apart from what their Pods need.
func TestParts(t *testing.T) {
	for _, nodes := range []int{0, 1, 3, 20, 1000} {
		var all []*unstructured.Unstructured
		for i := range nodes {
			all = append(all, named("ConfigMap", fmt.Sprint(i)), named("Deployment", fmt.Sprint(i)), named("Service", fmt.Sprint(i)))
		}
		before, deployments := parts(all)
		seen := map[string]int{}
		for i, group := range [][][]*unstructured.Unstructured{before, deployments} {
			if len(group) == 0 || len(group) > appliers {
				t.Errorf("%d nodes: %d parts", nodes, len(group))
			}
			for _, part := range group {
				for _, u := range part {
					seen[u.GetKind()+u.GetName()]++
					if (u.GetKind() == "Deployment") != (i == 1) {
						t.Errorf("%d nodes: a %s is in group %d", nodes, u.GetKind(), i)
					}
				}
			}
		}
		if len(seen) != len(all) {
			t.Errorf("%d nodes: %d of %d objects are in parts", nodes, len(seen), len(all))
		}
		for name, n := range seen {
			if n != 1 {
				t.Errorf("%s is in %d parts", name, n)
			}
		}
	}
}

// An applier sees its part of the inventory only, and what it records goes nowhere
// yet.
func TestPartialInventory(t *testing.T) {
	id := func(name string) cliobject.ObjMetadata { return cliobject.ObjMetadata{Name: name} }
	p := &partialInventory{before: cliobject.ObjMetadataSet{id("stays"), id("goes")}}
	if seen, err := p.GetClusterObjs(nil); err != nil || !seen.Equal(p.before) {
		t.Errorf("it sees %v, %v", seen, err)
	}
	mine := cliobject.ObjMetadataSet{id("stays"), id("new")}
	if prune, err := p.Merge(nil, mine, common.DryRunNone); err != nil || !prune.Equal(cliobject.ObjMetadataSet{id("goes")}) {
		t.Errorf("it prunes %v, %v", prune, err)
	}
	if err := p.Replace(nil, mine, nil, common.DryRunNone); err != nil || !p.after.Equal(mine) {
		t.Errorf("it has recorded %v, %v", p.after, err)
	}
}
