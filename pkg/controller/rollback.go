package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// errRollback is why a term ends after the cluster's data was restored from a backup.
var errRollback = errors.New("the API server's data is older than what was read before, as after a restore of etcd")

// lookBack is how often the controller compares the version of its Lease with the one
// before.
const lookBack = 10 * time.Second

// untilRollback reads the resourceVersion of one object repeatedly until it is lower than
// before, and returns errRollback, or nil at the end of ctx. After a restore, a cluster's
// versions continue from the backup's. A watch that continues from a higher version misses what
// was undone, so all caches are wrong.
func untilRollback(ctx context.Context, every time.Duration, version func(context.Context) (string, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	before := ""
	for {
		now, err := version(ctx)
		if err == nil && before != "" {
			// Versions that cannot be compared (before Kubernetes 1.35 none had to be) say nothing.
			if order, err := resourceversion.CompareResourceVersion(now, before); err == nil && order < 0 {
				return errRollback
			}
		}
		if err == nil {
			before = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
