//go:build !nocluster

package cli

import (
	"bytes"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// studentsFile has an account for each copy, which can get into its nodes.
const studentsFile = "students.yaml"

// student is the name of the account in the namespace of a copy.
const student = "student"

// studentRules are what an account needs to see a lab and to get into its nodes.
var studentRules = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"configmaps", "events", "pods", "pods/log", "pods/proxy", "services"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{""}, Resources: []string{"pods/attach", "pods/exec"}, Verbs: []string{"create"}},
}

// students returns the manifests of the accounts. They carry the marks of the lab, so that
// destroy deletes them with it.
func students(copies []labCopy) ([]byte, error) {
	var b bytes.Buffer
	for i := range copies {
		l := &copies[i]
		meta := metav1.ObjectMeta{
			Name: student, Namespace: l.Namespace,
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "c9s", contract.LabelLab: contract.LabelValue(l.Name)},
			Annotations: map[string]string{contract.AnnotationLabName: l.Name},
		}
		for _, o := range []any{
			corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: meta},
			rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta, Rules: studentRules},
			rbacv1.RoleBinding{
				TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: meta,
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: student},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: student, Namespace: l.Namespace}},
			},
		} {
			text, err := yaml.Marshal(o)
			if err != nil {
				return nil, err
			}
			b.WriteString("---\n")
			b.Write(text)
		}
	}
	return b.Bytes(), nil
}
