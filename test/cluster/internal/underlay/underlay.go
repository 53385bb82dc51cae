// Package underlay makes the network that joins a cluster's nodes: a bridge in
// the control plane's namespace, one port per worker and one for the host. The
// host itself gets one interface and routes over it; no packet is forwarded
// through the host's namespace, so its firewall does not matter.
package underlay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

const (
	bridgeName = "underlay"
	nodeLink   = "eth0" // a worker's end
	hostPort   = "host" // the host's port on the bridge
)

// Ensure makes what is missing of the network; it is safe to run again.
func Ensure(c site.Cluster) error {
	for _, node := range c.AllNodes() {
		if err := ensureNetns(node.Netns()); err != nil {
			return err
		}
	}
	if err := in(c.Control().Netns(), func() error { return ensureBridge(c) }); err != nil {
		return fmt.Errorf("making the underlay bridge: %w", err)
	}
	for _, worker := range c.AllWorkers() {
		if err := ensureWorker(worker); err != nil {
			return fmt.Errorf("connecting worker %s: %w", worker.Name(), err)
		}
	}
	if err := ensureHost(c); err != nil {
		return fmt.Errorf("connecting the host: %w", err)
	}
	return nil
}

func ensureBridge(c site.Cluster) error {
	if err := writeSysctls(map[string]string{
		"net/ipv4/ip_forward":              "1",
		"net/ipv6/conf/all/forwarding":     "1",
		"net/ipv6/conf/default/accept_dad": "0",
	}); err != nil {
		return err
	}
	bridge, err := ensureLink(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgeName, MTU: c.MTU}})
	if err != nil {
		return err
	}
	if err := configure(bridge, c.MTU, c.Control().Addresses()); err != nil {
		return err
	}
	if err := addRoutes(bridge, c.AllWorkers()); err != nil {
		return err
	}
	return up("lo")
}

// ensureWorker makes the veth of a worker, one end on the bridge under the
// worker's name, one in its namespace.
func ensureWorker(worker site.Node) error {
	c := worker.Cluster
	if err := ensurePort(c, worker.Name(), worker.NetnsPath(), nodeLink); err != nil {
		return err
	}
	return in(worker.Netns(), func() error {
		if err := writeSysctls(map[string]string{
			"net/ipv4/ip_forward":                       "1",
			"net/ipv6/conf/all/forwarding":              "1",
			"net/ipv6/conf/default/accept_dad":          "0",
			"net/ipv6/conf/" + nodeLink + "/accept_dad": "0",
		}); err != nil {
			return err
		}
		if err := os.WriteFile(host.BridgeFilter, []byte("1"), 0); err != nil {
			return err
		}
		if err := up("lo"); err != nil {
			return err
		}
		link, err := netlink.LinkByName(nodeLink)
		if err != nil {
			return err
		}
		if err := configure(link, c.MTU, worker.Addresses()); err != nil {
			return err
		}
		if err := addDefaultRoutes(link, c); err != nil {
			return err
		}
		var others []site.Node
		for _, other := range c.AllWorkers() {
			if other.Number != worker.Number {
				others = append(others, other)
			}
		}
		return addRoutes(link, others)
	})
}

func ensureHost(c site.Cluster) error {
	// Not self: that is the program's first thread, which may be one that
	// onOwnThread has left in a node's namespace.
	if err := ensurePort(c, hostPort, "/proc/thread-self/ns/net", c.HostLink()); err != nil {
		return err
	}
	link, err := netlink.LinkByName(c.HostLink())
	if err != nil {
		return err
	}
	if err := configure(link, c.MTU, c.HostAddresses()); err != nil {
		return err
	}
	return addRoutes(link, c.AllWorkers())
}

// ensurePort makes a veth from a bridge port to a link in another namespace.
func ensurePort(c site.Cluster, port, peerNetns, peerName string) error {
	peer, err := netns.GetFromPath(peerNetns)
	if err != nil {
		return err
	}
	defer peer.Close()
	return in(c.Control().Netns(), func() error {
		bridge, err := netlink.LinkByName(bridgeName)
		if err != nil {
			return err
		}
		attrs := netlink.LinkAttrs{Name: port, MTU: c.MTU, MasterIndex: bridge.Attrs().Index}
		link, err := ensureLink(&netlink.Veth{LinkAttrs: attrs, PeerName: peerName, PeerNamespace: netlink.NsFd(peer)})
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
}

// SetPort takes a worker's port on the bridge up or down, as a cable would be
// plugged or unplugged.
func SetPort(worker site.Node, connected bool) error {
	return in(worker.Cluster.Control().Netns(), func() error {
		link, err := netlink.LinkByName(worker.Name())
		if err != nil {
			return fmt.Errorf("finding the port of worker %s: %w", worker.Name(), err)
		}
		if connected {
			return netlink.LinkSetUp(link)
		}
		return netlink.LinkSetDown(link)
	})
}

// PortIsUp reports whether a worker is connected.
func PortIsUp(worker site.Node) bool {
	connected := false
	err := in(worker.Cluster.Control().Netns(), func() error {
		link, err := netlink.LinkByName(worker.Name())
		if err == nil {
			connected = link.Attrs().Flags&net.FlagUp != 0
		}
		return err
	})
	return err == nil && connected
}

// ResetNode throws a worker's namespace away, with everything that its Pods
// and kube-proxy left in it, and makes it again.
func ResetNode(worker site.Node) error {
	if err := removePort(worker); err != nil {
		return err
	}
	if err := removeNetns(worker.Netns()); err != nil {
		return err
	}
	if err := ensureNetns(worker.Netns()); err != nil {
		return err
	}
	return ensureWorker(worker)
}

func removePort(worker site.Node) error {
	return in(worker.Cluster.Control().Netns(), func() error {
		link, err := netlink.LinkByName(worker.Name())
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil
		}
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
}

// Remove takes everything away again, in whatever state it is.
func Remove(c site.Cluster) error {
	var problems []error
	if link, err := netlink.LinkByName(c.HostLink()); err == nil {
		problems = append(problems, netlink.LinkDel(link)) // its routes go with it
	}
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !os.IsNotExist(err) {
		problems = append(problems, err)
	}
	mine := c.Control().Netns()
	for _, entry := range entries {
		if isNodeOf(c, entry.Name()) && entry.Name() != mine {
			problems = append(problems, removeNetns(entry.Name()))
		}
	}
	return errors.Join(append(problems, removeNetns(mine))...)
}

// isNodeOf goes by the name, since a record may tell fewer workers than a torn
// start made.
func isNodeOf(c site.Cluster, netns string) bool {
	var number int
	if netns == c.Control().Netns() {
		return true
	}
	_, err := fmt.Sscanf(netns, "c9s-"+c.Name+"-n%d", &number)
	return err == nil && netns == c.Worker(number).Netns()
}

func ensureLink(want netlink.Link) (netlink.Link, error) {
	name := want.Attrs().Name
	if err := netlink.LinkAdd(want); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("adding link %s: %w", name, err)
	}
	return netlink.LinkByName(name)
}

func configure(link netlink.Link, mtu int, addresses []netip.Prefix) error {
	if err := netlink.LinkSetMTU(link, mtu); err != nil {
		return err
	}
	for _, p := range addresses {
		addr := &netlink.Addr{IPNet: ipNet(p)}
		if p.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrReplace(link, addr); err != nil {
			return fmt.Errorf("adding address %s to %s: %w", p, link.Attrs().Name, err)
		}
	}
	return netlink.LinkSetUp(link)
}

// addRoutes leads to the Pods of workers by way of the workers.
func addRoutes(link netlink.Link, workers []site.Node) error {
	for _, worker := range workers {
		for i, pods := range worker.PodSubnets() {
			route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(pods), Gw: worker.Addresses()[i].Addr().AsSlice()}
			if err := netlink.RouteReplace(route); err != nil {
				return fmt.Errorf("adding the route to the Pods of %s: %w", worker.Name(), err)
			}
		}
	}
	return nil
}

func addDefaultRoutes(link netlink.Link, c site.Cluster) error {
	for _, gateway := range c.Control().Addresses() {
		everything := netip.PrefixFrom(gateway.Addr(), 0).Masked()
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(everything), Gw: gateway.Addr().AsSlice()}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("adding the default route: %w", err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// writeSysctls sets those of the calling thread's network namespace; one that
// this kernel lacks (IPv6 may be off) is passed over.
func writeSysctls(values map[string]string) error {
	for name, value := range values {
		err := os.WriteFile("/proc/sys/"+name, []byte(value), 0)
		if err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}
