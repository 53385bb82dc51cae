// Package control describes the node of the control plane: etcd, the API server,
// its controllers and scheduler, and the image registry.
package control

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/c9s-lab/c9s/test/cluster/internal/kubeconfig"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
	"github.com/c9s-lab/c9s/test/cluster/internal/pki"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// RegistryCommand is the hidden subcommand of the program that serves images.
const RegistryCommand = "registry"

const etcdAddress = "127.0.0.1:2379"

// WriteKubeconfigs writes those of the administrator and of the control plane's
// own programs.
func WriteKubeconfigs(c site.Cluster) error {
	if err := kubeconfig.Write(c, pki.Admin, c.Kubeconfig()); err != nil {
		return err
	}
	for _, name := range []string{pki.Controllers, pki.Scheduler} {
		if err := kubeconfig.Write(c, name, c.Access(name)); err != nil {
			return err
		}
	}
	return nil
}

// Spec is the control plane's node. With fake workers, kwok is one service more.
func Spec(c site.Cluster) node.Spec {
	n := c.Control()
	services := []node.Service{
		{Name: "registry", Args: []string{"self", RegistryCommand, "--listen", c.Registry().String(), "--images", c.Images()}},
		{Name: "etcd", Args: etcd(c)},
		{Name: "kube-apiserver", Args: apiserver(c), After: "tcp:" + etcdAddress},
		{Name: "kube-controller-manager", Args: controllers(c), After: "tcp:" + c.APIServer().String()},
		{Name: "kube-scheduler", Args: scheduler(c), After: "tcp:" + c.APIServer().String()},
	}
	if c.FakeWorkers > 0 {
		services = append(services, node.Service{Name: "kwok", Args: kwok(c), After: "tcp:" + c.APIServer().String()})
	}
	return node.Spec{
		Hostname:  n.Name(),
		NetnsPath: n.NetnsPath(),
		Cgroup:    n.CgroupPath(),
		Scratch:   filepath.Join(n.Run(), "root"),
		Logs:      n.Logs(),
		Path:      c.Bin() + ":/usr/sbin:/usr/bin:/sbin:/bin",
		Binds:     []node.Bind{{From: c.State(), To: c.State()}, {From: c.Cache, To: c.Cache}},
		Services:  services,
	}
}

func etcd(c site.Cluster) []string {
	return []string{
		"etcd",
		"--data-dir=" + filepath.Join(c.Control().State(), "etcd"),
		"--unsafe-no-fsync", // a reboot throws the cluster away anyway
		"--listen-client-urls=http://" + etcdAddress,
		"--advertise-client-urls=http://" + etcdAddress,
		"--listen-peer-urls=http://127.0.0.1:2380",
		"--quota-backend-bytes=4294967296",
		"--auto-compaction-retention=1h",
	}
}

func apiserver(c site.Cluster) []string {
	bind := "0.0.0.0"
	if c.IPv6 {
		bind = "::"
	}
	return append([]string{
		"kube-apiserver",
		"--etcd-servers=http://" + etcdAddress,
		"--bind-address=" + bind,
		"--advertise-address=" + c.APIServer().Addr().String(),
		fmt.Sprint("--secure-port=", c.APIServer().Port()),
		"--tls-cert-file=" + pki.Cert(c, pki.APIServer),
		"--tls-private-key-file=" + pki.Key(c, pki.APIServer),
		"--client-ca-file=" + pki.Cert(c, pki.CA),
		"--kubelet-certificate-authority=" + pki.Cert(c, pki.CA),
		"--kubelet-client-certificate=" + pki.Cert(c, pki.APIServer),
		"--kubelet-client-key=" + pki.Key(c, pki.APIServer),
		"--kubelet-preferred-address-types=InternalIP", // names of workers do not resolve here
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki.Key(c, pki.ServiceAccount),
		"--service-account-signing-key-file=" + pki.Key(c, pki.ServiceAccount),
		"--service-cluster-ip-range=" + join(c.ServiceSubnets()),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-aggregator-routing=true", // webhooks are reached at Pod addresses: no kube-proxy here
		"--allow-privileged=true",
		"--profiling=false",
	}, audit(c)...)
}

// lostAfter is when a worker counts as lost: sooner than Kubernetes' default, since
// tests wait for it. Leases are renewed every 3 s (see the kubelet's configuration),
// those of fake workers every 10 s.
func lostAfter(c site.Cluster) string {
	if c.FakeWorkers > 0 {
		return "50s"
	}
	return "16s"
}

func controllers(c site.Cluster) []string {
	return []string{
		"kube-controller-manager",
		"--kubeconfig=" + c.Access(pki.Controllers),
		"--leader-elect=false",
		"--allocate-node-cidrs=false", // the Pods' ranges go by the worker's number
		"--service-cluster-ip-range=" + join(c.ServiceSubnets()),
		"--root-ca-file=" + pki.Cert(c, pki.CA),
		"--service-account-private-key-file=" + pki.Key(c, pki.ServiceAccount),
		"--cluster-signing-cert-file=" + pki.Cert(c, pki.CA),
		"--cluster-signing-key-file=" + pki.Key(c, pki.CA),
		"--node-monitor-grace-period=" + lostAfter(c),
		"--node-monitor-period=2s",
		"--kube-api-qps=300",
		"--kube-api-burst=600",
		"--profiling=false",
	}
}

func scheduler(c site.Cluster) []string {
	return []string{
		"kube-scheduler",
		"--kubeconfig=" + c.Access(pki.Scheduler),
		"--leader-elect=false",
		"--kube-api-qps=300",
		"--kube-api-burst=600",
		"--profiling=false",
	}
}

func join(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}
