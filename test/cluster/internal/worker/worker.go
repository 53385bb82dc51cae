// Package worker describes a worker node: containerd, the kubelet, kube-proxy and
// the CNI configuration, all at the paths of an ordinary node.
package worker

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/kubeconfig"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
	"github.com/c9s-lab/c9s/test/cluster/internal/pki"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	containerdConfig = "/etc/containerd/config.toml"
	baseSpec         = "/etc/containerd/base.json"
	kubeletConfig    = "/etc/kubernetes/kubelet.yaml"
	kubeletCert      = "/etc/kubernetes/kubelet.crt"
	kubeletKey       = "/etc/kubernetes/kubelet.key"
	kubeletAccess    = "/etc/kubernetes/kubelet.kubeconfig"
	clientCA         = "/etc/kubernetes/ca.crt"
	proxyConfig      = "/etc/kubernetes/kube-proxy.yaml"
	proxyAccess      = "/etc/kubernetes/kube-proxy.kubeconfig"
	resolvConf       = "/etc/kubernetes/resolv.conf"
)

// WriteKubeconfigs writes those of every worker's programs.
func WriteKubeconfigs(c site.Cluster) error {
	names := []string{pki.Proxy}
	for _, worker := range c.AllWorkers() {
		names = append(names, worker.Name())
	}
	for _, name := range names {
		if err := kubeconfig.Write(c, name, c.Access(name)); err != nil {
			return err
		}
	}
	return nil
}

// Spec is a worker's node.
func Spec(n site.Node) (node.Spec, error) {
	files, err := files(n)
	if err != nil {
		return node.Spec{}, err
	}
	c := n.Cluster
	path, env := c.Bin(), []string(nil)
	if seconds := c.Clocks[n.Name()]; seconds != 0 {
		path = filepath.Join(c.Cache, binaries.ClockedBin) + ":" + path
		env = []string{fmt.Sprintf("%s=%d", binaries.ClockVariable, seconds)}
		files[containerdConfig] = strings.Replace(containerdTOML, runtimeType, runtimeType+"    base_runtime_spec = \""+baseSpec+"\"\n", 1)
		if files[baseSpec], err = baseSpecJSON(c, env); err != nil {
			return node.Spec{}, err
		}
	}
	binds := []node.Bind{{From: n.Logs(), To: n.Logs()}, {From: c.Cache, To: c.Cache}}
	for _, dir := range []string{"containerd", "kubelet"} {
		binds = append(binds, node.Bind{From: filepath.Join(n.State(), dir), To: filepath.Join("/var/lib", dir)})
	}
	for _, dir := range []string{"pods", "containers"} {
		binds = append(binds, node.Bind{From: filepath.Join(n.Logs(), dir), To: filepath.Join("/var/log", dir)})
	}
	binds = append(binds, node.Bind{From: c.Bin(), To: "/opt/cni/bin"})
	return node.Spec{
		Hostname:  n.Name(),
		NetnsPath: n.NetnsPath(),
		Cgroup:    n.CgroupPath(),
		Scratch:   filepath.Join(n.Run(), "root"),
		Logs:      n.Logs(),
		Path:      path + ":/usr/sbin:/usr/bin:/sbin:/bin",
		Env:       env,
		Binds:     binds,
		Files:     files,
		Services: []node.Service{
			{Name: "containerd", Args: []string{"containerd", "--config=" + containerdConfig}},
			{Name: "kubelet", Args: kubelet(n), After: "unix:" + containerdSocket},
			{Name: "kube-proxy", Args: []string{"kube-proxy", "--config=" + proxyConfig}, After: "tcp:" + c.APIServer().String()},
		},
	}, nil
}

func kubelet(n site.Node) []string {
	var addresses []string
	for _, address := range n.Addresses() {
		addresses = append(addresses, address.Addr().String())
	}
	return []string{
		"kubelet",
		"--config=" + kubeletConfig,
		"--kubeconfig=" + kubeletAccess,
		"--hostname-override=" + n.Name(),
		"--node-ip=" + strings.Join(addresses, ","),
	}
}

func files(n site.Node) (map[string]string, error) {
	c := n.Cluster
	cni, err := cniConfig(n)
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		"/etc/hostname":   n.Name() + "\n",
		"/etc/hosts":      "127.0.0.1 localhost\n::1 localhost\n" + n.Address().String() + " " + n.Name() + "\n",
		"/etc/machine-id": machineID(n) + "\n",
		"/etc/protocols":  protocols,
		resolvConf:        "# nothing outside the cluster is resolved\n",
		containerdConfig:  containerdTOML,
		"/etc/containerd/certs.d/_default/hosts.toml": mirrorTOML(c),
		"/etc/cni/net.d/10-c9s.conflist":              cni,
		kubeletConfig:                                 kubeletYAML(c),
		proxyConfig:                                   proxyYAML(n),
	}
	for target, source := range map[string]string{
		clientCA:      pki.Cert(c, pki.CA),
		kubeletCert:   pki.Cert(c, n.Name()),
		kubeletKey:    pki.Key(c, n.Name()),
		kubeletAccess: c.Access(n.Name()),
		proxyAccess:   c.Access(pki.Proxy),
	} {
		text, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		files[target] = string(text)
	}
	return files, nil
}

// machineID differs from node to node, as on real machines.
func machineID(n site.Node) string {
	return fmt.Sprintf("c9500000000000000000%04x%08x", n.Cluster.Index, n.Number)
}

// protocols are those that nft calls by name. Where a minimal system has no such
// file, nft lists TCP as 6; kube-proxy does not know its own entries again then,
// and removes those of Services that are in use.
const protocols = `icmp 1 ICMP
igmp 2 IGMP
tcp 6 TCP
udp 17 UDP
dccp 33 DCCP
gre 47 GRE
esp 50 IPSEC-ESP
ah 51 IPSEC-AH
ipv6-icmp 58 IPv6-ICMP
sctp 132 SCTP
udplite 136 UDPLite
`

// restrict_oom_score_adj: without CAP_SYS_RESOURCE (as in some virtual machines)
// runc may not lower the score, and dies without a word. The pause image has the
// name that the kubelet asks for.
const containerdTOML = `version = 3

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
` + runtimeType + `    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false

[plugins."io.containerd.cri.v1.images"]
  discard_unpacked_layers = true
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "registry.k8s.io/pause:3.10"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"
`

// baseSpecJSON is what containerd gives a container to begin with, and variables.
func baseSpecJSON(c site.Cluster, env []string) (string, error) {
	text, err := exec.Command(filepath.Join(c.Bin(), "ctr"), "oci", "spec").Output()
	if err != nil {
		return "", fmt.Errorf("reading containerd's own specification of a container: %w", err)
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		return "", err
	}
	process, ok := spec["process"].(map[string]any)
	if !ok {
		return "", fmt.Errorf("containerd's own specification of a container has no process: %s", text)
	}
	has, _ := process["env"].([]any)
	for _, e := range env {
		has = append(has, e)
	}
	process["env"] = has
	text, err = json.MarshalIndent(spec, "", "  ")
	return string(text), err
}

const runtimeType = "    runtime_type = \"io.containerd.runc.v2\"\n"

// mirrorTOML sends every image reference to the cluster's registry.
func mirrorTOML(c site.Cluster) string {
	return fmt.Sprintf("server = %[1]q\n\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", "http://"+c.Registry().String())
}

func cniConfig(n site.Node) (string, error) {
	var ranges [][]map[string]string
	var routes []map[string]string
	for _, pods := range n.PodSubnets() {
		ranges = append(ranges, []map[string]string{{"subnet": pods.String()}})
		routes = append(routes, map[string]string{"dst": netip.PrefixFrom(pods.Addr(), 0).Masked().String()})
	}
	config := map[string]any{
		"cniVersion": "1.0.0",
		"name":       "c9s",
		"plugins": []map[string]any{
			{
				"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "mtu": n.Cluster.MTU,
				// In memory: after a restart of the worker no Pod has an address.
				"ipam": map[string]any{"type": "host-local", "dataDir": "/run/cni-ipam", "ranges": ranges, "routes": routes},
			},
			{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}, "backend": "nftables"},
		},
	}
	text, err := json.MarshalIndent(config, "", "  ")
	return string(text), err
}

// The disk and the memory are shared with everything else on this machine, so
// that eviction and image collection would go by what is none of ours.
func kubeletYAML(c site.Cluster) string {
	return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://` + containerdSocket + `
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: ` + clientCA + `}
authorization: {mode: Webhook}
tlsCertFile: ` + kubeletCert + `
tlsPrivateKeyFile: ` + kubeletKey + `
clusterDomain: cluster.local
clusterDNS: [` + c.DNSService().String() + `]
resolvConf: ` + resolvConf + `
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
maxPods: 240
nodeLeaseDurationSeconds: 12
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: 100
kubeAPIBurst: 200
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
allowedUnsafeSysctls: ["net.*", "kernel.msg*", "kernel.shm*", "kernel.sem", "fs.mqueue.*"]
`
}

// The connection table's size is the whole kernel's, and read-only here.
func proxyYAML(n site.Node) string {
	var pods []string
	for _, p := range n.Cluster.PodSubnets() {
		pods = append(pods, p.String())
	}
	return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: ` + n.Name() + `
clusterCIDR: ` + strings.Join(pods, ",") + `
clientConnection: {kubeconfig: ` + proxyAccess + `}
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`
}
