package cluster

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/apis/actuation"
	"sigs.k8s.io/cli-utils/pkg/apply"
	"sigs.k8s.io/cli-utils/pkg/apply/event"
	"sigs.k8s.io/cli-utils/pkg/common"
	"sigs.k8s.io/cli-utils/pkg/inventory"
	"sigs.k8s.io/cli-utils/pkg/kstatus/watcher"
	cliobject "sigs.k8s.io/cli-utils/pkg/object"
)

// An applier of cli-utils sends one request after the other, so that most of a
// deploy would be waiting for answers. A lab is applied by several, each of which has
// a part of the objects: first what Pods mount and use, then the Deployments. The
// applier of the last part prunes.

// appliers is the most that work at the same time, and partSize how many objects are
// worth one of their own.
const (
	appliers = 12
	partSize = 4
)

// parts divides objects among appliers. The Deployments are behind everything else.
func parts(objects []*unstructured.Unstructured) (before, deployments [][]*unstructured.Unstructured) {
	var kinds [2][]*unstructured.Unstructured
	for _, u := range objects {
		if u.GetKind() == "Deployment" {
			kinds[1] = append(kinds[1], u)
		} else {
			kinds[0] = append(kinds[0], u)
		}
	}
	return divide(kinds[0]), divide(kinds[1])
}

// divide deals objects out; there is at least one part, which may be empty.
func divide(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	out := make([][]*unstructured.Unstructured, max(1, min(appliers, (len(objects)+partSize-1)/partSize)))
	for i, u := range objects {
		out[i%len(out)] = append(out[i%len(out)], u)
	}
	return out
}

// partialInventory is the lab's inventory as the applier of a part sees it: what was
// there of the part, and for the one that prunes also what the lab has no more. What
// an applier records is kept here, until all are ready; of one that does not get so
// far, all that may be there.
type partialInventory struct {
	inventory.Client
	before, after cliobject.ObjMetadataSet
}

func (p *partialInventory) GetClusterObjs(inventory.Info) (cliobject.ObjMetadataSet, error) {
	return p.before, nil
}

func (p *partialInventory) Merge(_ inventory.Info, objs cliobject.ObjMetadataSet, _ common.DryRunStrategy) (cliobject.ObjMetadataSet, error) {
	return p.before.Diff(objs), nil
}

func (p *partialInventory) Replace(_ inventory.Info, objs cliobject.ObjMetadataSet, _ []actuation.ObjectStatus, _ common.DryRunStrategy) error {
	p.after = objs
	return nil
}

// applyParts runs an applier for each part, all at once. old is what the lab had; the
// last applier prunes what is obsolete. It returns what belongs into the inventory of
// the parts.
func (c *Client) applyParts(ctx context.Context, info inventory.Info, book inventory.Client, all [][]*unstructured.Unstructured, old, obsolete cliobject.ObjMetadataSet, o apply.ApplierOptions, note func(event.Event)) (cliobject.ObjMetadataSet, error) {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		views = make([]*partialInventory, len(all))
	)
	for i, objects := range all {
		wanted := cliobject.UnstructuredSetToObjMetadataSet(objects)
		before := old.Intersection(wanted)
		if i == len(all)-1 {
			before = before.Union(obsolete)
		}
		views[i] = &partialInventory{Client: book, before: before, after: before.Union(wanted)}
		applier, err := apply.NewApplierBuilder().WithFactory(c.factory).WithInventoryClient(views[i]).
			WithStatusWatcher(watcher.BlindStatusWatcher{}).Build()
		if err != nil {
			group.Wait()
			return nil, err
		}
		group.Go(func() {
			for e := range applier.Run(ctx, info, objects, o) {
				mu.Lock()
				note(e)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	var after cliobject.ObjMetadataSet
	for _, v := range views {
		after = after.Union(v.after)
	}
	return after, ctx.Err()
}
