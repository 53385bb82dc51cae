package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Own makes the ConfigMap of a lab that expires the owner of all its other objects, as far as
// that exists: Kubernetes then deletes them after it.
func (l *Lab) Own(existing Existing) { l.own(existing.expiry) }

func (l *Lab) own(uid types.UID) {
	if l.expiry() == nil || uid == "" {
		return
	}
	for _, u := range l.objects {
		if u.GetKind() != "ConfigMap" || u.GetName() != contract.ExpiryConfigMap {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: contract.ExpiryConfigMap, UID: uid}})
		}
	}
}

// expiry returns the ConfigMap of a lab that expires, nil for another lab.
func (l *Lab) expiry() *unstructured.Unstructured {
	for _, u := range l.objects {
		if u.GetKind() == "ConfigMap" && u.GetName() == contract.ExpiryConfigMap {
			return u
		}
	}
	return nil
}

// ApplyExpiry applies the ConfigMap that is to own the lab's objects, before those.
func (c *Client) ApplyExpiry(ctx context.Context, l *Lab) error {
	u := l.expiry()
	if u == nil {
		return nil
	}
	if err := c.noExpiry(ctx, l.Namespace); err != nil {
		return err
	}
	live, err := c.applyObject(ctx, l.Namespace, u, false)
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", contract.ExpiryConfigMap, err)
	}
	l.own(live.GetUID())
	return nil
}

// noExpiry waits while a lab's ConfigMap is terminating: what it would be made the owner of
// would be deleted with it.
func (c *Client) noExpiry(ctx context.Context, namespace string) error {
	for {
		cm, err := c.Typed.CoreV1().ConfigMaps(namespace).Get(ctx, contract.ExpiryConfigMap, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && cm.DeletionTimestamp == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading ConfigMap %s: %w", contract.ExpiryConfigMap, err)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting until Kubernetes has deleted ConfigMap %s: %w", contract.ExpiryConfigMap, ctx.Err())
		}
	}
}

// Extend changes when a lab expires.
func (c *Client) Extend(ctx context.Context, lab Found, expires time.Time) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, contract.AnnotationExpires, contract.FormatExpiry(expires))
	_, err := c.Typed.CoreV1().ConfigMaps(lab.Namespace).Patch(ctx, contract.ExpiryConfigMap, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: FieldManager + "-extend"})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("lab %s does not expire; 'c9s deploy --ttl' makes it", lab.Name)
	}
	if err != nil {
		return fmt.Errorf("extending lab %s: %w", lab.Name, err)
	}
	return nil
}

// User returns the name by which the cluster knows the caller, "" if it does not say.
func (c *Client) User(ctx context.Context) string {
	review, err := c.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}
