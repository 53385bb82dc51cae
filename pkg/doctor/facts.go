package doctor

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/c9s-lab/c9s/pkg/rights"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// Facts are what is known of a cluster, as read. What could not be read has its
// error next to it.
type Facts struct {
	Server version.Info
	// Namespace is the one that was asked about; nil where it does not exist yet.
	Namespace     *corev1.Namespace
	NamespaceErr  error
	NamespaceName string
	// Admission is the answer to a privileged Pod that was not really made.
	Admission Admission
	// Missing are the rights that the user lacks.
	Missing    []rights.Right
	RightsErr  error
	Workers    []corev1.Node
	WorkersErr error
	// Pods are all Pods of the cluster that take room, without those of the lab
	// itself.
	Pods    []corev1.Pod
	PodsErr error

	StorageClasses    []storagev1.StorageClass
	StorageClassesErr error
	// Balanced are the cluster's Services of type LoadBalancer.
	Balanced    []corev1.Service
	BalancedErr error
	// Groups are the names of the API's groups.
	Groups []string
	DNS    DNS
	// Probes are by the name of the worker; nil where none was asked for.
	Probes map[string]Probe
	// Policies is whether NetworkPolicies are enforced; nil where it was not probed.
	Policies *Policies
	Clocks   Clocks
}

// Policies is what the probe of NetworkPolicies found, or why it found nothing.
type Policies struct {
	Enforced bool
	Err      error
}

// Clocks are the API server's and the workers'.
type Clocks struct {
	// Server is the API server's time, in whole seconds; zero where it is not known.
	Server time.Time
	// Renewed are the times at which the kubelets last renewed their Leases, by their
	// own clocks; nil where they cannot be read.
	Renewed map[string]time.Time
}

// Admission is what the API server says to a privileged Pod with a sidecar.
type Admission struct {
	// Namespace is where it was asked, which is another one than the lab's as
	// long as that does not exist.
	Namespace string
	Err       error
	// Near is why the Pod was rejected with the worker's folder of local wires, where it is
	// admitted without.
	Near error
	// Sidecars reports whether the Pod still had its sidecar's restartPolicy: an API
	// server that does not know it drops it.
	Sidecars bool
	// at is when the API server answered, by its own clock.
	at time.Time
}

// DNS is the cluster's name service.
type DNS struct {
	Services []corev1.Service
	Slices   []discoveryv1.EndpointSlice
	Err      error
}

// Probe is what the probe on one worker said, or why it said nothing.
type Probe struct {
	Report probe.Report
	Err    error
}
