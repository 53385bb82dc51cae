package rights

import (
	"context"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/internal/bounded"
)

// atOnce bounds the questions that are under way.
const atOnce = 16

// A Creator creates one kind of review and returns the API server's answer, as client-go's
// clients do. This package does not import client-go: the half of c9s that needs no cluster
// builds without it.
type Creator[T any] interface {
	Create(ctx context.Context, review T, o metav1.CreateOptions) (T, error)
}

// Reviews are how Missing asks the API server.
type Reviews struct {
	Rules  Creator[*authorizationv1.SelfSubjectRulesReview]
	Access Creator[*authorizationv1.SelfSubjectAccessReview]
}

// ReviewsOf are the reviews of a client of authorization.k8s.io/v1.
func ReviewsOf[R Creator[*authorizationv1.SelfSubjectRulesReview], A Creator[*authorizationv1.SelfSubjectAccessReview]](client interface {
	SelfSubjectRulesReviews() R
	SelfSubjectAccessReviews() A
}) Reviews {
	return Reviews{Rules: client.SelfSubjectRulesReviews(), Access: client.SelfSubjectAccessReviews()}
}

// Missing are the rights that the user lacks in a namespace, in their order. One request
// lists most (SelfSubjectRulesReview); the others are checked one by one,
// since an authorizer need not list its rules, nor let everybody ask for them.
func Missing(ctx context.Context, ask Reviews, namespace string, rights []Right) ([]Right, error) {
	known, err := ask.Rules.Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	unsure := slices.DeleteFunc(slices.Clone(rights), func(r Right) bool {
		return err == nil && !r.Cluster && slices.ContainsFunc(known.Status.ResourceRules, r.in)
	})
	// Who gives rights away must have them by RBAC itself, whatever else allows them.
	var given []Right
	if err == nil {
		given = slices.DeleteFunc(slices.Clone(unsure), func(r Right) bool { return !r.given })
		unsure = slices.DeleteFunc(unsure, func(r Right) bool { return r.given })
	}
	missing, err := refused(ctx, ask.Access, namespace, unsure)
	missing = append(missing, given...)
	if err != nil || !slices.ContainsFunc(missing, func(r Right) bool { return r.given }) {
		return missing, err
	}
	roles := Resources["Role"].Resource
	beyond, err := refused(ctx, ask.Access, namespace, []Right{
		{Verb: "escalate", Group: rbacv1.GroupName, Resource: roles}, {Verb: "bind", Group: rbacv1.GroupName, Resource: roles},
	})
	if err == nil && len(beyond) == 0 {
		missing = slices.DeleteFunc(missing, func(r Right) bool { return r.given })
	}
	return missing, err
}

// refused asks about each right, some at a time. A user who may not ask is assumed to have the right.
func refused(ctx context.Context, access Creator[*authorizationv1.SelfSubjectAccessReview], namespace string, rights []Right) ([]Right, error) {
	lacks, errs := make([]bool, len(rights)), make([]error, len(rights))
	bounded.Each(len(rights), atOnce, func(i int) {
		answer, err := access.Create(ctx, rights[i].review(namespace), metav1.CreateOptions{})
		if errs[i] = err; err == nil {
			lacks[i] = !answer.Status.Allowed
		}
	})
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil && !apierrors.IsForbidden(err) }); i >= 0 {
		return nil, errs[i] // all say the same
	}
	var out []Right
	for i, r := range rights {
		if lacks[i] {
			out = append(out, r)
		}
	}
	return out, nil
}
