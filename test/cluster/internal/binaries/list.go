package binaries

// A Binary is one program, built from its module path.
type Binary struct {
	Name    string
	Module  string // name of the module text in modules/
	Package string
	Seconds int // what a build took on two cores with an empty cache, in the order of the list
}

// Needed are the programs of every cluster, the one that fills the build cache
// for the others first.
var Needed = []Binary{
	{"kube-apiserver", "programs", "k8s.io/kubernetes/cmd/kube-apiserver", 255},
	{"kube-controller-manager", "programs", "k8s.io/kubernetes/cmd/kube-controller-manager", 75},
	{"kube-scheduler", "programs", "k8s.io/kubernetes/cmd/kube-scheduler", 10},
	{"kubelet", "programs", "k8s.io/kubernetes/cmd/kubelet", 27},
	{"kube-proxy", "programs", "k8s.io/kubernetes/cmd/kube-proxy", 10},
	{"etcd", "programs", "go.etcd.io/etcd/server/v3", 15},
	{"containerd", "containerd", "github.com/containerd/containerd/v2/cmd/containerd", 55},
	{"containerd-shim-runc-v2", "containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", 2},
	{"ctr", "containerd", "github.com/containerd/containerd/v2/cmd/ctr", 6},
	{"bridge", "programs", "github.com/containernetworking/plugins/plugins/main/bridge", 2},
	{"host-local", "programs", "github.com/containernetworking/plugins/plugins/ipam/host-local", 1},
	{"loopback", "programs", "github.com/containernetworking/plugins/plugins/main/loopback", 1},
	{"portmap", "programs", "github.com/containernetworking/plugins/plugins/meta/portmap", 1},
	{"coredns", "programs", ".", 18},
}

// FakeWorkers are the programs that simulated workers need also.
var FakeWorkers = []Binary{
	{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", 210},
}
