package manifest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestEncode compares with encoding/json, except order and emptiness.
func TestEncode(t *testing.T) {
	now := metav1.NewTime(time.Unix(1e9, 0))
	obj := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{"b": "c<d>&\u2028\x01", "a": ""}, DeletionTimestamp: &now,
			OwnerReferences: []metav1.OwnerReference{{Name: "x", Controller: new(false)}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromString("10%"))}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Overhead:   corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")},
				Containers: []corev1.Container{{Name: "c", ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(1)}}}}},
				Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			}},
		},
	}
	got, err := encode(obj)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(got, []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{`)) || !json.Valid(got) {
		t.Errorf("%s", got)
	}
	if !bytes.Contains(got, []byte(`"emptyDir":{}`)) {
		t.Error("an empty struct behind a pointer is gone")
	}
	back := &appsv1.Deployment{}
	if err := json.Unmarshal(got, back); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(obj)
	b, _ := json.Marshal(back)
	if !bytes.Equal(a, b) {
		t.Errorf("differs:\n%s\n%s", a, b)
	}
}
