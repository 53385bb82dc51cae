package render

import (
	"reflect"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/rights"
)

const (
	// controllerUser is an arbitrary user without a name in the image.
	controllerUser = 65532
)

func (b *labBuilder) controller() []apiObject {
	return []apiObject{
		b.serviceAccount(contract.ControllerName, contract.ComponentController),
		b.controllerRole(),
		b.controllerRoleBinding(),
		b.labConfigMap(contract.StatusConfigMap, contract.ComponentController, nil),
		b.labConfigMap(contract.AddressesConfigMap, contract.ComponentController, nil),
		b.controllerDeployment(),
	}
}

func (b *labBuilder) controllerRole() *rbacv1.Role {
	role := &rbacv1.Role{
		TypeMeta:   typeMeta("rbac.authorization.k8s.io/v1", "Role"),
		ObjectMeta: b.index.labMeta(contract.ControllerName, contract.ComponentController),
	}
	for _, rule := range rights.Controller() {
		role.Rules = append(role.Rules, rule.PolicyRule)
	}
	return role
}

func (b *labBuilder) controllerRoleBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   typeMeta("rbac.authorization.k8s.io/v1", "RoleBinding"),
		ObjectMeta: b.index.labMeta(contract.ControllerName, contract.ComponentController),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: contract.ControllerName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: contract.ControllerName, Namespace: b.index.lab.Namespace}},
	}
}

func (b *labBuilder) controllerDeployment() *appsv1.Deployment {
	meta := b.index.labMeta(contract.ControllerName, contract.ComponentController)
	b.index.recommend(meta.Labels, "c9s")
	selector := map[string]string{contract.LabelLab: b.index.labLabel, contract.LabelComponent: contract.ComponentController}
	common := b.common()
	return &appsv1.Deployment{
		TypeMeta:   typeMeta("apps/v1", "Deployment"),
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(int32(1)),
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: map[string]string{
					contract.AnnotationLabName: b.index.lab.Name,
					// Where most configurations of Prometheus look for Pods with metrics, at /metrics.
					"prometheus.io/scrape": "true",
					"prometheus.io/port":   strconv.Itoa(contract.ControllerPort),
				}},
				Spec: corev1.PodSpec{
					ServiceAccountName:            contract.ControllerName,
					AutomountServiceAccountToken:  new(true),
					EnableServiceLinks:            new(false),
					TerminationGracePeriodSeconds: new(int64(10)),
					NodeSelector:                  common.NodeSelector,
					Tolerations:                   common.Tolerations,
					ImagePullSecrets:              common.ImagePullSecrets,
					Affinity:                      &corev1.Affinity{NodeAffinity: realWorkers(nil)},
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot:   new(true),
						RunAsUser:      new(int64(controllerUser)),
						RunAsGroup:     new(int64(controllerUser)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{b.controllerContainer()},
				},
			},
		},
	}
}

// common is of placement and of the registries' credentials what the policies of all
// nodes have: it holds for the lab's own Pods too.
func (b *labBuilder) common() corev1.PodSpec {
	spec := corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelOSStable: "linux"}}
	var others []lab.Policy
	for _, n := range b.index.lab.Nodes {
		if b.index.podOf[n.Name] != nil {
			others = append(others, n.Policy)
		}
	}
	if len(others) == 0 {
		return spec
	}
	all := func(has func(lab.Policy) bool) bool {
		return !slices.ContainsFunc(others, func(p lab.Policy) bool { return !has(p) })
	}
	for key, value := range others[0].NodeSelector {
		if all(func(p lab.Policy) bool { return p.NodeSelector[key] == value }) {
			spec.NodeSelector[key] = value
		}
	}
	for _, t := range others[0].Tolerations {
		if all(func(p lab.Policy) bool {
			return slices.ContainsFunc(p.Tolerations, func(o corev1.Toleration) bool { return reflect.DeepEqual(o, t) })
		}) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
	for _, name := range others[0].ImagePullSecrets {
		if all(func(p lab.Policy) bool { return slices.Contains(p.ImagePullSecrets, name) }) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
	}
	return spec
}

func (b *labBuilder) controllerContainer() corev1.Container {
	probe := func(path string, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(contract.ControllerPort)}},
			PeriodSeconds: period,
		}
	}
	env := []corev1.EnvVar{fieldEnv("POD_NAME", "metadata.name"), fieldEnv("POD_NAMESPACE", "metadata.namespace")}
	if !b.index.opts.Expires.IsZero() {
		env = append(env, corev1.EnvVar{Name: contract.ExpiryEnv, Value: "true"})
	}
	return corev1.Container{
		Name:    "controller",
		Image:   b.index.image,
		Command: []string{"/c9s-controller"},
		Env:     env,
		Ports:   []corev1.ContainerPort{{Name: "http", ContainerPort: contract.ControllerPort, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		ReadinessProbe: probe("/readyz", 5),
		LivenessProbe:  probe("/healthz", 20),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}
