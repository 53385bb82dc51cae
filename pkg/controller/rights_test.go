package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// What the controller asks of the API server is what its Role allows, and all of that.
func TestRoleIsWhatIsUsed(t *testing.T) {
	client := cluster(t, pods())
	c := newController(client, Options{Namespace: namespace, Identity: "c9s-controller-1", Interval: 50 * time.Millisecond, Log: quiet()})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	written := func(name, text string) func() bool {
		return func() bool {
			cm, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
			return err == nil && strings.Contains(fmt.Sprint(cm.Data), text)
		}
	}
	eventually(t, "the addresses", written(contract.AddressesConfigMap, "10.0.0.1"))
	eventually(t, "the status", written(contract.StatusConfigMap, "r1"))
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// A link that goes down, and a neighbour that moves.
	p := newPublisher(client, namespace, quiet())
	if err := p.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := pods()
	round(t, p, labOf(all), all)
	l := labOf(all)
	l.Links[0].Up = false
	all[1].Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.99"}}
	round(t, p, l, all)
	if _, err := newSyncer(client).sync(t.Context(), []latePod{{all[3], "new"}}, time.Now()); err != nil {
		t.Error(err)
	}
	loseNamespace(all[2])
	if err := newReplacer(client, p.events).replace(t.Context(), all); err != nil {
		t.Error(err)
	}

	used := make([]bool, len(rights.Controller()))
	for _, a := range client.Actions() {
		allowed := false
		for i, rule := range rights.Controller() {
			if permits(rule.PolicyRule, a) {
				used[i], allowed = true, true
			}
		}
		if !allowed && !ofTheTest(a) {
			t.Errorf("not in the Role: %s %s/%s %s", a.GetVerb(), a.GetResource().Resource, a.GetSubresource(), nameOf(a))
		}
	}
	for i, rule := range rights.Controller() {
		if !used[i] {
			t.Errorf("nothing uses the rule %v", rule.PolicyRule)
		}
		for _, verb := range rule.Verbs {
			if !slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == verb && permits(rule.PolicyRule, a) }) {
				t.Errorf("nothing uses %s of the rule %v", verb, rule.PolicyRule)
			}
		}
		if rule.Use == "" || rule.Worst == "" {
			t.Errorf("nothing is said of the rule %v", rule.PolicyRule)
		}
	}
}

// permits reports whether a rule allows an action.
func permits(rule rbacv1.PolicyRule, a clienttesting.Action) bool {
	resource := a.GetResource().Resource
	if sub := a.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	return slices.Contains(rule.APIGroups, a.GetResource().Group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, a.GetVerb()) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, nameOf(a)))
}

func nameOf(a clienttesting.Action) string {
	// The API server takes the name of a list or watch from its field selector.
	switch a := a.(type) {
	case clienttesting.ListAction:
		name, _ := a.GetListRestrictions().Fields.RequiresExactMatch(metav1.ObjectNameField)
		return name
	case clienttesting.WatchAction:
		name, _ := a.GetWatchRestrictions().Fields.RequiresExactMatch(metav1.ObjectNameField)
		return name
	}
	if named, ok := a.(interface{ GetName() string }); ok {
		return named.GetName()
	}
	if update, ok := a.(clienttesting.UpdateAction); ok {
		if object, err := meta.Accessor(update.GetObject()); err == nil {
			return object.GetName()
		}
	}
	return ""
}

// ofTheTest reports whether the fake itself or the test makes an action.
func ofTheTest(a clienttesting.Action) bool {
	return a.GetVerb() == "update" && a.GetResource().Resource == "pods"
}

// No rule lets the holder of the controller's token run a program, read a Secret or
// give itself more rights.
func TestRoleIsHarmless(t *testing.T) {
	for _, rule := range rights.Controller() {
		for _, resource := range rule.Resources {
			switch {
			case slices.Contains([]string{"pods/status", "configmaps", "events", "leases"}, resource):
			case resource == "pods" && slices.Equal(rule.Verbs, []string{"delete"}):
			case (resource == "pods" || resource == "deployments") && !slices.ContainsFunc(rule.Verbs, func(v string) bool { return v != "get" && v != "list" && v != "watch" }):
			default:
				t.Errorf("%v of %s", rule.Verbs, resource)
			}
		}
		if slices.Contains(rule.Resources, "configmaps") && len(rule.ResourceNames) == 0 {
			t.Errorf("%v of all ConfigMaps", rule.Verbs)
		}
	}
}
