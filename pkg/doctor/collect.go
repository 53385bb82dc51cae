package doctor

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// Collector reads the facts of a cluster. It writes nothing.
type Collector struct {
	Client    kubernetes.Interface
	Namespace string
	// Fallback is the namespace for what must be asked in one that is there.
	Fallback string
}

// Collect reads everything but the probes. The error is for an API server that
// does not answer; what the user may not read is a fact.
func (c Collector) Collect(ctx context.Context, n Needs) (Facts, error) {
	f := Facts{NamespaceName: c.Namespace}
	server, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		return f, err
	}
	f.Server = *server
	if groups, err := c.Client.Discovery().ServerGroups(); err == nil {
		for _, g := range groups.Groups {
			f.Groups = append(f.Groups, g.Name)
		}
	}
	ns, err := c.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	switch {
	case err == nil:
		f.Namespace = ns
	case !apierrors.IsNotFound(err):
		f.NamespaceErr = err
	}
	fresh := f.newNamespace() // read here: what follows writes to f at the same time
	var wg sync.WaitGroup
	for _, read := range []func(){
		func() {
			// The API server dates the Pod that it is offered, and is asked right after.
			f.Admission = c.admission(ctx, fresh, n)
			f.Clocks = Clocks{Server: f.Admission.at, Renewed: c.renewed(ctx)}
		},
		func() {
			f.Missing, f.RightsErr = rights.Missing(ctx, rights.ReviewsOf(c.Client.AuthorizationV1()), c.Namespace, rights.Of(n.Kinds, n.Rules, fresh))
		},
		func() {
			list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if f.WorkersErr = err; err == nil {
				f.Workers = list.Items
			}
		},
		func() { f.Pods, f.PodsErr = c.pods(ctx, n) },
		func() {
			list, err := c.Client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
			if f.StorageClassesErr = err; err == nil {
				f.StorageClasses = list.Items
			}
		},
		func() { f.Balanced, f.BalancedErr = c.balanced(ctx) },
		func() { f.DNS = c.dns(ctx) },
	} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			read()
		}()
	}
	wg.Wait()
	return f, nil
}

// newNamespace reports whether a deploy would make the namespace.
func (f Facts) newNamespace() bool { return f.Namespace == nil && f.NamespaceErr == nil }

// admission offers a Pod like a lab's, which is not kept. fresh reports whether the
// namespace does not exist yet.
func (c Collector) admission(ctx context.Context, fresh bool, n Needs) Admission {
	a := Admission{Namespace: c.Namespace}
	if fresh {
		a.Namespace = c.Fallback
	}
	try := func(pod *corev1.Pod) (*corev1.Pod, error) {
		return c.Client.CoreV1().Pods(a.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	pod := dryPod(n)
	got, err := try(pod)
	if without := withoutNear(pod); err != nil && without != nil {
		if admitted, errWithout := try(without); errWithout == nil {
			got, err, a.Near = admitted, nil, err
		}
	}
	if a.Err = err; err == nil {
		a.at = got.CreationTimestamp.Time
		for _, s := range got.Spec.InitContainers {
			a.Sidecars = a.Sidecars || s.RestartPolicy != nil && *s.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return a
}

// renewed reads when the kubelets have renewed their Leases; nil where it may not.
func (c Collector) renewed(ctx context.Context) map[string]time.Time {
	leases, err := c.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	out := map[string]time.Time{}
	for _, l := range leases.Items {
		if l.Spec.RenewTime != nil {
			out[l.Name] = l.Spec.RenewTime.Time
		}
	}
	return out
}

// dryPod has a privileged sidecar and the paths of the worker that the lab mounts.
func dryPod(n Needs) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "c9s-doctor-", Labels: map[string]string{"app.kubernetes.io/managed-by": "c9s"}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			InitContainers: []corev1.Container{{
				Name: "wire", Image: "c9s", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
			}},
			Containers: []corev1.Container{{Name: "device", Image: "c9s", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}},
		},
	}
	seen := map[string]bool{}
	for _, p := range n.Pods {
		for _, v := range p.Spec.Volumes {
			if v.HostPath != nil && !seen[v.Name] {
				seen[v.Name] = true
				pod.Spec.Volumes = append(pod.Spec.Volumes, v)
			}
		}
	}
	return pod
}

// withoutNear is the Pod without the worker's folder of local wires, nil if it has none.
func withoutNear(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	out.Spec.Volumes = slices.DeleteFunc(out.Spec.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil && v.HostPath.Path == contract.NearFolder })
	if len(out.Spec.Volumes) == len(pod.Spec.Volumes) {
		return nil
	}
	return out
}

// page is how many objects are read at a time.
const page = 500

// pods are all Pods that take room, except those of the lab, which a deploy
// replaces.
func (c Collector) pods(ctx context.Context, n Needs) ([]corev1.Pod, error) {
	if n.Lab == "" { // nobody asks
		return nil, nil
	}
	var out []corev1.Pod
	o := metav1.ListOptions{Limit: page, FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
	for {
		list, err := c.Client.CoreV1().Pods("").List(ctx, o)
		if err != nil {
			return nil, err
		}
		for _, p := range list.Items {
			if p.Namespace != c.Namespace || p.Labels[contract.LabelLab] != contract.LabelValue(n.Lab) {
				out = append(out, p)
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return out, nil
		}
	}
}

func (c Collector) balanced(ctx context.Context) ([]corev1.Service, error) {
	list, err := c.Client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []corev1.Service
	for _, s := range list.Items {
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			out = append(out, s)
		}
	}
	return out, nil
}

// dns reads the cluster's DNS Service, which has this label whatever serves it
// (kubelet's and kubeadm's convention; DNS operators of OpenShift have their own).
func (c Collector) dns(ctx context.Context) DNS {
	var out DNS
	for _, place := range []struct{ namespace, selector string }{
		{"kube-system", "k8s-app=kube-dns"},
		{"openshift-dns", "dns.operator.openshift.io/owning-dns=default"},
	} {
		services, err := c.Client.CoreV1().Services(place.namespace).List(ctx, metav1.ListOptions{LabelSelector: place.selector})
		if err != nil {
			if out.Err == nil {
				out.Err = err
			}
			continue
		}
		if len(services.Items) == 0 {
			continue
		}
		slices, err := c.Client.DiscoveryV1().EndpointSlices(place.namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + services.Items[0].Name})
		if err != nil {
			return DNS{Err: err}
		}
		return DNS{Services: services.Items, Slices: slices.Items}
	}
	return out
}
