package mgmt

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/link"
)

// Mesh is the management VXLAN between the lab's Pods.
type Mesh struct {
	nl  *netlink.Handle
	lab string
	pod string
	ip  netip.Addr
	// tuned is the ifindex of the interface that has its settings.
	tuned int
}

// NewMesh is for the Pod of that name. lab tells labs apart: namespace and name
// of the lab, for Pod addresses are given out again.
func NewMesh(nl *netlink.Handle, lab, pod string, ip netip.Addr) *Mesh {
	return &Mesh{nl: nl, lab: lab, pod: pod, ip: ip}
}

// Overhead of VXLAN in bytes: outer IP header, UDP, VXLAN, inner Ethernet (RFC
// 7348, 5).
const (
	overheadV4 = 20 + 8 + 8 + 14
	overheadV6 = 40 + 8 + 8 + 14
)

// MTU of the mesh for an underlay of mtu bytes.
func (m *Mesh) MTU(mtu int) int {
	if m.ip.Is4() {
		return mtu - overheadV4
	}
	return mtu - overheadV6
}

// VNI of the lab, never 0.
func VNI(lab string) int {
	sum := sha256.Sum256([]byte("c9s mesh\x00" + lab))
	return int(binary.BigEndian.Uint32(sum[:])>>8) | 1
}

// MAC of the mesh interface of a Pod. Peers work it out, so nobody needs to ask.
// The first byte says locally administered, one station.
func MAC(pod string) net.HardwareAddr {
	sum := sha256.Sum256([]byte("c9s mesh\x00" + pod))
	return net.HardwareAddr{0x0e, sum[0], sum[1], sum[2], sum[3], sum[4]}
}

// Ensure has the VXLAN on the underlay.
func (m *Mesh) Ensure(snap *link.Snapshot, underlay netlink.Link) (netlink.Link, error) {
	mtu := m.MTU(underlay.Attrs().MTU)
	want := &netlink.Vxlan{
		LinkAttrs:    netlink.NewLinkAttrs(),
		VxlanId:      VNI(m.lab),
		VtepDevIndex: underlay.Attrs().Index,
		SrcAddr:      m.ip.AsSlice(),
		Port:         contract.MgmtPort,
		// Peers makes the entries; one that is not used ages by itself.
		Age:    int(fdbAge.Seconds()),
		L2miss: true,
	}
	want.Name, want.MTU, want.HardwareAddr = MeshName, mtu, MAC(m.pod)
	l := snap.ByName(MeshName)
	have, ok := l.(*netlink.Vxlan)
	if l != nil && !(ok && !have.Learning && have.VxlanId == want.VxlanId && have.VtepDevIndex == want.VtepDevIndex &&
		have.Port == want.Port && have.SrcAddr.Equal(want.SrcAddr) && have.HardwareAddr.String() == want.HardwareAddr.String()) {
		if err := m.nl.LinkDel(l); err != nil {
			return nil, fmt.Errorf("remove %s: %w", MeshName, err)
		}
		l = nil
	}
	if l == nil {
		if err := m.nl.LinkAdd(want); err != nil {
			return nil, fmt.Errorf("make %s: %w", MeshName, err)
		}
		made, err := m.nl.LinkByName(MeshName)
		if err != nil {
			return nil, fmt.Errorf("make %s: %w", MeshName, err)
		}
		l = made
	}
	if l.Attrs().MTU != mtu {
		if err := m.nl.LinkSetMTU(l, mtu); err != nil {
			return nil, fmt.Errorf("MTU %d of %s: %w", mtu, MeshName, err)
		}
	}
	if m.tuned != l.Attrs().Index {
		if err := m.sysctls(); err != nil {
			return nil, err
		}
		m.tuned = l.Attrs().Index
	}
	if l.Attrs().Flags&net.FlagUp == 0 {
		if err := m.nl.LinkSetUp(l); err != nil {
			return nil, fmt.Errorf("set %s up: %w", MeshName, err)
		}
	}
	return l, nil
}

// sysctls make neighbour resolution quick: the sidecar answers the first question.
func (m *Mesh) sysctls() error {
	var errs []error
	for _, family := range []string{"ipv4", "ipv6"} {
		for key, value := range map[string]string{
			"retrans_time_ms": "500",
			"mcast_solicit":   "4",
		} {
			errs = append(errs, link.SetSysctl(value, "net", family, "neigh", MeshName, key))
		}
	}
	// Its link-local address is where probes come from, at once.
	errs = append(errs, link.SetSysctl("0", "net", "ipv6", "conf", MeshName, "accept_dad"))
	return errors.Join(errs...)
}
