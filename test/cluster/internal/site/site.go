// Package site says where everything of a cluster is: every name, address and
// path follows from the cluster's name and its index among the clusters of this
// machine, so that two clusters share nothing and a torn one can be found again.
package site

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
)

// Base folders of all clusters: what outlives a reboot, and what does not.
const (
	StateBase = "/var/lib/c9s-cluster"
	RunBase   = "/run/c9s-cluster"
)

// MaxWorkers is bounded by the underlay's /24.
const MaxWorkers = 200

// A Cluster is what the user asked for and the index it was given.
type Cluster struct {
	Name        string `json:"name"`
	Index       int    `json:"index"`
	Workers     int    `json:"workers"`
	MTU         int    `json:"mtu"`
	IPv6        bool   `json:"ipv6"`
	FakeWorkers int    `json:"fakeWorkers"`
	Audit       bool   `json:"audit"` // the API server keeps a log of writes
	Merge       bool   `json:"mergeKubeconfig"`
	Merged      Merged `json:"merged"`
	Cache       string `json:"cache"`  // folder that holds its programs and images
	BootID      string `json:"bootID"` // the boot of the machine it belongs to
	// Clocks are the workers' clocks that are off, by name, and by how many seconds.
	Clocks map[string]int `json:"clocks,omitempty"`
}

// Merged holds what was done to the user's kubeconfig, to undo it.
type Merged struct {
	Into   string   `json:"into,omitempty"`   // its path; none when nothing was done
	Former string   `json:"former,omitempty"` // the current context before
	Made   []string `json:"made,omitempty"`   // the file and folders that were not there
}

var validName = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,9}[a-z0-9])?$`)

// Validate reports what is impossible.
func (c Cluster) Validate() error {
	switch {
	case !validName.MatchString(c.Name):
		return fmt.Errorf("cluster name %q: use up to 11 lower-case letters, digits and dashes, a letter first", c.Name)
	case c.Workers < 1 || c.Workers > MaxWorkers:
		return fmt.Errorf("%d workers: between 1 and %d are possible", c.Workers, MaxWorkers)
	case c.MTU < 1280 || c.MTU > 9500:
		return fmt.Errorf("MTU %d: between 1280 (the least of IPv6) and 9500 is possible", c.MTU)
	case c.FakeWorkers < 0 || c.FakeWorkers > 5000:
		return fmt.Errorf("%d fake workers: between 0 and 5000 are possible", c.FakeWorkers)
	}
	return nil
}

// State is the folder of the cluster's data: certificates, etcd, images, logs.
func (c Cluster) State() string { return filepath.Join(StateBase, c.Name) }

// Run is the folder of what a reboot should forget.
func (c Cluster) Run() string { return filepath.Join(RunBase, c.Name) }

// Kubeconfig is the administrator's.
func (c Cluster) Kubeconfig() string { return filepath.Join(c.State(), "kubeconfig") }

// PKI is the folder of certificates and keys.
func (c Cluster) PKI() string { return filepath.Join(c.State(), "pki") }

// Access is the kubeconfig of a component or node.
func (c Cluster) Access(name string) string { return filepath.Join(c.PKI(), name+".kubeconfig") }

// Images is the folder whose OCI layouts the registry serves.
func (c Cluster) Images() string { return filepath.Join(c.State(), "images") }

// HostLink is the interface with which the host reaches the cluster.
func (c Cluster) HostLink() string { return "c9s-" + c.Name }

// CgroupPath is the parent of the nodes' cgroups.
func (c Cluster) CgroupPath() string { return filepath.Join("c9s", c.Name) }

// ServiceSubnets are the ranges of ClusterIPs; they never leave a worker, so
// that all clusters have the same.
func (c Cluster) ServiceSubnets() []netip.Prefix {
	return c.families(netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fdc9:0:ff::/112"))
}

// PodSubnets are the ranges of all Pods.
func (c Cluster) PodSubnets() []netip.Prefix {
	return c.families(
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, c.podOctet(), 0, 0}), 16),
		netip.PrefixFrom(ula(0x100+c.Index, 0, 0), 48))
}

// UnderlaySubnets are the ranges of the nodes.
func (c Cluster) UnderlaySubnets() []netip.Prefix {
	return c.families(
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 99, byte(c.Index), 0}), 24),
		netip.PrefixFrom(ula(c.Index, 0, 0), 64))
}

// HostAddresses are the host's own on HostLink.
func (c Cluster) HostAddresses() []netip.Prefix { return c.underlay(254) }

// KubernetesService is the ClusterIP of the API server.
func (c Cluster) KubernetesService() netip.Addr { return netip.MustParseAddr("10.96.0.1") }

// DNSService is the ClusterIP of CoreDNS.
func (c Cluster) DNSService() netip.Addr { return netip.MustParseAddr("10.96.0.10") }

// APIServer is the address and port of the API server.
func (c Cluster) APIServer() netip.AddrPort { return netip.AddrPortFrom(c.Control().Address(), 6443) }

// Registry is the address and port of the image registry.
func (c Cluster) Registry() netip.AddrPort { return netip.AddrPortFrom(c.Control().Address(), 5000) }

func (c Cluster) podOctet() byte { return byte(244 + c.Index) }

func (c Cluster) underlay(host byte) []netip.Prefix {
	return c.families(
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 99, byte(c.Index), host}), 24),
		netip.PrefixFrom(ula(c.Index, 0, host), 64))
}

func (c Cluster) families(v4, v6 netip.Prefix) []netip.Prefix {
	if c.IPv6 {
		return []netip.Prefix{v4, v6}
	}
	return []netip.Prefix{v4}
}

// ula is fdc9:0:<site>:<subnet>::<host>.
func ula(site, subnet int, host byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0xc9, 4: byte(site >> 8), 5: byte(site), 6: byte(subnet >> 8), 7: byte(subnet), 15: host})
}

// Bin is the folder of the programs it was started with.
func (c Cluster) Bin() string { return filepath.Join(c.Cache, "bin") }
