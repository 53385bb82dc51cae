package cluster

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
)

// A deploy whose Deployment another client pruned ends, and says so.
func TestWaitForADeletedDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there, _ := r1()
		l := &Lab{Name: "mine", Namespace: "demo"}
		for _, name := range []string{"r1", "r2"} {
			u := &unstructured.Unstructured{}
			u.SetKind("Deployment")
			u.SetName(name)
			u.SetLabels(nodeLabels)
			l.objects = append(l.objects, u)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := (&Client{Typed: fake.NewClientset(there)}).WaitReady(ctx, l, nil)
		if err == nil || !strings.Contains(err.Error(), "another client changed it; 1 of its 2 Deployments") {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		cancel()
		synctest.Wait()
	})
}
