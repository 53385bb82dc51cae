package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// TestExpiry: a lab is removed when it has expired, after a warning; one that was extended
// stays, and gets a new warning.
func TestExpiry(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	client := cluster(t, nil)
	_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: contract.ExpiryConfigMap, UID: "1", ResourceVersion: "1",
		Annotations: map[string]string{contract.AnnotationLabName: "demo", contract.AnnotationExpires: contract.FormatExpiry(start.Add(time.Hour))},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	e := &expirer{client: client, namespace: namespace, log: quiet()}
	for _, step := range []struct {
		after    time.Duration
		extend   time.Duration
		warnings int
		gone     bool
	}{
		{0, 0, 0, false},
		{31 * time.Minute, 0, 1, false},
		{45 * time.Minute, 0, 1, false},
		{59 * time.Minute, 2 * time.Hour, 1, false},
		{70 * time.Minute, 0, 1, false},
		{3 * time.Hour, 0, 2, false}, // the controller was away: first it warns
		{3*time.Hour + 5*time.Second, 0, 2, false},
		{3*time.Hour + notice, 0, 2, true},
		{4 * time.Hour, 0, 2, true},
	} {
		if step.extend > 0 {
			cm, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), contract.ExpiryConfigMap, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			cm.Annotations[contract.AnnotationExpires] = contract.FormatExpiry(start.Add(step.extend))
			if _, err := client.CoreV1().ConfigMaps(namespace).Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.look(t.Context(), start.Add(step.after)); err != nil {
			t.Fatalf("after %s: %v", step.after, err)
		}
		warnings := 0
		for _, a := range client.Actions() {
			if a.Matches("create", "events") {
				warnings++
			}
		}
		if warnings != step.warnings {
			t.Errorf("after %s: %d warnings, want %d", step.after, warnings, step.warnings)
		}
		_, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), contract.ExpiryConfigMap, metav1.GetOptions{})
		if apierrors.IsNotFound(err) != step.gone {
			t.Errorf("after %s: %v, want gone %v", step.after, err, step.gone)
		}
	}
	// What it asks for is what it may, but for the Event, which the controller's own Role allows.
	for _, a := range client.Actions() {
		if a.GetVerb() != "update" && a.GetVerb() != "list" && a.GetResource().Resource != "events" && !permits(rights.Expiry().PolicyRule, a) {
			t.Errorf("not in the Role: %s %s %s", a.GetVerb(), a.GetResource().Resource, nameOf(a))
		}
	}
}
