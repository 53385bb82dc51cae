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
	{"kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", 340},
	{"kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", 90},
	{"kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", 10},
	{"kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet", 50},
	{"kube-proxy", "kubernetes", "k8s.io/kubernetes/cmd/kube-proxy", 35},
	{"etcd", "etcd", "go.etcd.io/etcd/server/v3", 150},
	{"containerd", "containerd", "github.com/containerd/containerd/v2/cmd/containerd", 100},
	{"containerd-shim-runc-v2", "containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", 15},
	{"ctr", "containerd", "github.com/containerd/containerd/v2/cmd/ctr", 10},
	{"bridge", "cni", "github.com/containernetworking/plugins/plugins/main/bridge", 10},
	{"host-local", "cni", "github.com/containernetworking/plugins/plugins/ipam/host-local", 2},
	{"loopback", "cni", "github.com/containernetworking/plugins/plugins/main/loopback", 2},
	{"portmap", "cni", "github.com/containernetworking/plugins/plugins/meta/portmap", 4},
	{"coredns", "coredns", ".", 120},
}

// FakeWorkers are the programs that simulated workers need also.
var FakeWorkers = []Binary{
	{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", 210},
}
