package status

import (
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Deployment's progress is the same without what Trim leaves out.
func TestTrimDeployment(t *testing.T) {
	for name, whole := range map[string]*appsv1.Deployment{
		"running": deployment(1),
		"stopped": deployment(0),
		"refused": func() *appsv1.Deployment {
			d := deployment(1)
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "quota"}}
			return d
		}(),
	} {
		whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "c9s", Time: &metav1.Time{Time: time.Unix(1, 0)}}}
		whole.Annotations = map[string]string{"c9s.dev/node-name": "R1"}
		whole.Spec.Template.Spec.Containers = []corev1.Container{{Name: "r1", Image: "frr"}}
		o, err := Trim(whole.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		trimmed := o.(*appsv1.Deployment)
		if len(trimmed.ManagedFields) > 0 || len(trimmed.Spec.Template.Spec.Containers) > 0 || !reflect.DeepEqual(trimmed.Annotations, whole.Annotations) {
			t.Errorf("%s: it keeps %+v", name, trimmed)
		}
		if got, want := Of(trimmed, nil, nil), Of(whole, nil, nil); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: its state is %+v, want %+v", name, got, want)
		}
	}
}
