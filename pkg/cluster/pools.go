package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// FreeKept releases the values that a lab keeps for an owner that was removed. It returns how
// many there were.
func (c *Client) FreeKept(ctx context.Context, l Found, owner string) (freed int, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		configMaps, err := c.labConfigMaps(ctx, l.Namespace)
		if err != nil {
			return err
		}
		for i := range configMaps {
			cm := &configMaps[i]
			if !strings.HasPrefix(cm.Name, contract.AllocationsName(0)) {
				continue
			}
			here := 0
			for key, text := range cm.Data {
				n, without, err := withoutKept(text, owner)
				if err != nil {
					return fmt.Errorf("reading ConfigMap %s: %w", cm.Name, err)
				}
				here += n
				cm.Data[key] = without
			}
			if here == 0 {
				continue
			}
			if _, err := c.Typed.CoreV1().ConfigMaps(l.Namespace).Update(ctx, cm, metav1.UpdateOptions{FieldManager: FieldManager + "-pools"}); err != nil {
				return err
			}
			freed += here
		}
		return nil
	})
	return freed, err
}

// withoutKept is a part of the allocations without what is kept for an owner, and how many
// values that were.
func withoutKept(text, owner string) (freed int, without string, err error) {
	a, err := lab.JoinAllocations([]byte(text))
	if err != nil {
		return 0, "", err
	}
	for pool, kept := range a.Released {
		if _, ok := kept[owner]; !ok {
			continue
		}
		freed++
		if delete(kept, owner); len(kept) == 0 {
			delete(a.Released, pool)
		}
	}
	if a.Pools == nil {
		a.Pools = map[string]map[string]string{}
	}
	data, err := json.MarshalIndent(a, "", " ")
	return freed, string(data) + "\n", err
}
