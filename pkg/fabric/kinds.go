package fabric

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// Feature is what a fabric can ask of a node.
type Feature string

// The features.
const (
	FeatureOSPF        Feature = "underlay ospf"
	FeatureISIS        Feature = "underlay isis"
	FeatureEBGP        Feature = "underlay ebgp"
	FeatureUnnumbered  Feature = "unnumbered links"
	FeatureIBGP        Feature = "overlay ibgp"
	FeatureReflector   Feature = "route reflector"
	FeatureEVPN        Feature = "overlay ebgp"
	FeatureServices    Feature = "services"
	FeatureGateway     Feature = "gateways"
	FeatureMulticast   Feature = "multicast"
	FeatureMultihoming Feature = "multihoming"
	FeatureAccess      Feature = "access links"
	FeatureCustomers   Feature = "customers"
	FeaturePorts       Feature = "ports in advance"
)

// Features are all features, in the order of the documentation.
var Features = []Feature{FeatureOSPF, FeatureISIS, FeatureEBGP, FeatureUnnumbered, FeatureIBGP, FeatureReflector, FeatureEVPN, FeatureServices, FeatureGateway, FeatureMulticast, FeatureMultihoming, FeatureAccess, FeatureCustomers, FeaturePorts}

// kind is how nodes of a kind are configured.
type kind struct {
	// template is the name of the template.
	template string
	// features are those that the template has, with the source of their syntax.
	features map[Feature]string
	// device spells an interface as the device does.
	device func(linux string) string
	// exec reports whether the configuration is a shell script that runs in the node.
	exec bool
	// addresses reports whether the device sets the addresses of its ports itself, on interfaces
	// that are not the Pod's.
	addresses bool
	// mtu is the largest MTU that the configuration sets for IP packets on ports, in bytes; 0 for a
	// kind whose ports are Linux interfaces, and have their MTU.
	mtu int
	// vlans are the first and the last VLAN that the device takes, 0 for 1 to 4094.
	vlans [2]int
	// merge reports whether the configuration can be appended to another one.
	merge bool
	// mounts are the files that the device reads, for a kind that reads no startup-config: the
	// configuration ("") and templates of other files, by their paths.
	mounts map[string]string
	// anycast is how rendezvous points tell each other the sources.
	anycast string
	// multicastPorts is the number of interfaces that route multicast at most, 0 for any.
	multicastPorts int
	// script is the template of a shell script that runs in VTEPs, "" for none.
	script string
}

// jumboMTU is an MTU that the ports of all devices can have, in bytes. SONiC's ports have 9100, the
// others more.
const jumboMTU = 9000

const (
	frrManual = "FRRouting User Guide, "
	frrConf   = "/etc/frr/frr.conf"
)

// linuxMulticastPorts is MAXVIFS of the kernel (linux/mroute.h).
const linuxMulticastPorts = 32

var frr = kind{
	template: "frr.conf", merge: true, script: "frr.sh", anycast: "MSDP", multicastPorts: linuxMulticastPorts,
	features: map[Feature]string{
		FeatureOSPF:        frrManual + "OSPFv2",
		FeatureISIS:        frrManual + "ISIS",
		FeatureEBGP:        frrManual + "BGP, Peers",
		FeatureUnnumbered:  frrManual + "BGP, Configuring Peers (neighbor PEER interface remote-as)",
		FeatureIBGP:        frrManual + "BGP, Ethernet Virtual Network - EVPN",
		FeatureReflector:   frrManual + "BGP, Configuring FRR as a Route Reflector",
		FeatureEVPN:        frrManual + "BGP, Ethernet Virtual Network - EVPN",
		FeatureServices:    frrManual + "EVPN, EVPN route-targets; ip-link(8); bridge(8)",
		FeatureGateway:     frrManual + "EVPN; Linux, ip-sysctl (arp_accept)",
		FeatureMulticast:   frrManual + "PIM, PIM EVPN configuration and MSDP Configuration; ip-link(8); bridge(8)",
		FeatureMultihoming: frrManual + "EVPN, All-Active Layer-2 Multihoming; ip-link(8), bond",
		FeatureAccess:      frrManual + "OSPFv2 (ip ospf passive); ISIS (isis passive); BGP, Networks",
		FeatureCustomers:   frrManual + "BGP, Configuring Peers (next-hop-self), and Configuring FRR as a Route Reflector",
		FeaturePorts:       frrManual + "BGP, Configuring Peers (bgp listen range)",
	},
}

// The manuals of the other kinds.
const (
	srlAsymmetric = "learn.srlinux.dev, blog Asymmetric routing with SR Linux in EVPN VXLAN fabrics, "
	srlTutorial   = "learn.srlinux.dev, tutorial L2 EVPN, "
	avd           = "Arista Validated Designs (aristanetworks/avd), "
	vyosManual    = "VyOS documentation, Protocols, "
	junosManual   = "Junos OS, "
	iosxrManual   = "Cisco IOS XR Routing Configuration Guide, "
	nxosManual    = "Cisco NX-OS Unicast Routing, "
	nxosVXLAN     = "Cisco Nexus 9000 Series NX-OS VXLAN Configuration Guide, Configuring VXLAN BGP EVPN"
	nxosUnicast   = "Cisco Nexus 9000 Series NX-OS Unicast Routing Configuration Guide, "
	iosxrEVPN     = "Cisco IOS XR L3VPN Configuration Guide, Implementing DCI Layer 3 Gateway between MPLS-VPN and EVPN Data Center"
	sonicGuide    = "SONiC Command Line Interface Guide, "
)

// kinds are the kinds that can be members, by name.
var kinds = map[string]*kind{
	"frr":   &frr,
	"linux": linuxFRR(),
	"nokia_srlinux": {
		template: "srlinux.cli", merge: true, device: srlinuxName, mtu: jumboMTU,
		features: map[Feature]string{
			FeatureOSPF:        "SR Linux Routing Protocols Guide, OSPF, Basic OSPF configuration",
			FeatureISIS:        "learn.srlinux.dev, tutorial MPLS, IGP configuration (IS-IS)",
			FeatureEBGP:        srlTutorial + "Fabric configuration, EBGP",
			FeatureIBGP:        srlTutorial + "EVPN configuration, IBGP for EVPN",
			FeatureReflector:   "learn.srlinux.dev, tutorial L3 EVPN, Overlay routing, EVPN Route Reflector",
			FeatureEVPN:        srlAsymmetric + "BGP for underlay and overlay (inter-as-vpn)",
			FeatureServices:    srlTutorial + "EVPN configuration, MAC-VRF and EVPN in MAC-VRF",
			FeatureGateway:     srlAsymmetric + "IRBs; SR Linux Interfaces Guide, IRB interfaces (from release 24.3, of the default network instance)",
			FeatureAccess:      "SR Linux Routing Protocols Guide, OSPF, Basic OSPF configuration (passive); learn.srlinux.dev, tutorial MPLS, IGP configuration (IS-IS); " + srlTutorial + "Fabric configuration",
			FeatureMultihoming: "learn.srlinux.dev, tutorial EVPN Multihoming, EVPN-MH Configuration",
		},
	},
	"arista_ceos": {
		template: "ceos.cfg", device: ceosName, mtu: jumboMTU,
		features: map[Feature]string{
			FeatureOSPF:        avd + "eos_cli_config_gen, Router OSPF",
			FeatureISIS:        avd + "eos_cli_config_gen, Router ISIS",
			FeatureEBGP:        avd + "example dual-dc-l3ls, Router BGP",
			FeatureIBGP:        avd + "example dual-dc-l3ls, Router BGP, address family evpn",
			FeatureReflector:   avd + "eos_cli_config_gen, Router BGP, peer groups",
			FeatureEVPN:        avd + "eos_cli_config_gen, Router BGP, EVPN (bgp next-hop-unchanged)",
			FeatureServices:    avd + "example dual-dc-l3ls, VXLAN interface and VLANs of Router BGP",
			FeatureGateway:     avd + "example dual-dc-l3ls, VLAN interfaces (ip address virtual) and IP virtual router MAC address",
			FeatureAccess:      avd + "eos_cli_config_gen, Router OSPF (passive-interface), Router ISIS (isis passive) and Router BGP (network)",
			FeatureMultihoming: avd + "eos_cli_config_gen, Port-Channel Interfaces (evpn ethernet-segment)",
		},
	},
	"vyosnetworks_vyos": {
		template: "vyos.boot", mtu: jumboMTU,
		features: map[Feature]string{
			FeatureOSPF:      vyosManual + "OSPF, Interface Configuration",
			FeatureISIS:      vyosManual + "IS-IS, Interface Configuration",
			FeatureEBGP:      vyosManual + "BGP, Peers Configuration",
			FeatureIBGP:      vyosManual + "BGP, Peers Configuration; configuration example L3VPN EVPN with VyOS",
			FeatureReflector: vyosManual + "BGP, Route Reflector; configuration example L3VPN EVPN with VyOS",
			FeatureServices:  "VyOS documentation, Interfaces, VXLAN and Bridge; configuration example L3VPN EVPN with VyOS",
			FeatureAccess:    vyosManual + "OSPF and IS-IS, Interface Configuration (passive); BGP, Network Advertisement",
		},
	},
	"juniper_crpd": {
		template: "crpd.conf",
		features: map[Feature]string{
			FeatureOSPF:      junosManual + "CLI Reference, interface (Protocols OSPF) and interface-type",
			FeatureISIS:      junosManual + "IS-IS User Guide, Understanding IS-IS Configuration; containerlab, lab SR Linux and cRPD",
			FeatureEBGP:      junosManual + "BGP User Guide, BGP Peering Sessions; CLI Reference, type and export (Protocols BGP)",
			FeatureIBGP:      junosManual + "EVPN User Guide, Configuring IBGP Sessions Between PE Routers in VPNs; CLI Reference, rib (Route Resolution) and resolution-ribs",
			FeatureReflector: junosManual + "CLI Reference, cluster (Protocols BGP)",
			FeatureAccess:    junosManual + "CLI Reference, interface (Protocols OSPF) and interface (Protocols IS-IS), passive; export (Protocols BGP)",
		},
	},
	"cisco_xrd": {
		template: "xrd.cfg", device: xrdName, addresses: true, mtu: jumboMTU,
		features: map[Feature]string{
			FeatureOSPF:      iosxrManual + "Implementing OSPF; netlab (ipspace/netlab), template ospf/iosxr",
			FeatureISIS:      iosxrManual + "Implementing IS-IS, IS-IS Interfaces",
			FeatureIBGP:      iosxrEVPN + "; netlab (ipspace/netlab), templates bgp/iosxr and evpn/iosxr",
			FeatureReflector: iosxrEVPN + ", Spine RR; netlab (ipspace/netlab), template evpn/iosxr",
			FeatureEBGP:      iosxrManual + "Implementing BGP, Routing Policy Enforcement",
			FeatureAccess:    iosxrManual + "Implementing OSPF (passive interface); Implementing IS-IS, IS-IS Interfaces (passive); Implementing BGP",
		},
	},
	"cisco_n9kv": {
		template: "n9kv.cfg", device: func(linux string) string { return strings.Replace(linux, "eth", "Ethernet1/", 1) }, addresses: true, mtu: jumboMTU, anycast: "PIM (RFC 4610)",
		vlans: [2]int{2, 3967}, // 1 is the default VLAN, and NX-OS reserves those from 3968 on
		features: map[Feature]string{
			FeatureOSPF:      nxosUnicast + "Configuring OSPFv2; netlab (ipspace/netlab), template ospf/nxos",
			FeatureISIS:      nxosUnicast + "Configuring IS-IS; netlab (ipspace/netlab), template isis/nxos",
			FeatureEBGP:      nxosManual + "Configuring Basic BGP; Command Reference, neighbor and network",
			FeatureIBGP:      nxosVXLAN + "; netlab (ipspace/netlab), templates bgp/nxos and evpn/nxos",
			FeatureReflector: nxosVXLAN + "; netlab (ipspace/netlab), template evpn/nxos",
			FeatureServices:  nxosVXLAN + "; netlab (ipspace/netlab), templates vxlan/nxos and evpn/nxos",
			FeatureMulticast: nxosVXLAN + " (mcast-group), and Configuring the Underlay (PIM Anycast RP)",
			FeatureAccess:    nxosManual + "Command Reference, network",
		},
	},
	"sonic-vs": {
		template: "sonic.sh", exec: true, addresses: true, device: sonicName, mtu: jumboMTU,
		vlans: [2]int{2, 4094}, // config vlan add rejects the default VLAN
		features: map[Feature]string{
			FeatureOSPF:      sonicGuide + "Interfaces and Loopback Interfaces; " + frrManual + "Basic Setup and OSPFv2",
			FeatureISIS:      sonicGuide + "Interfaces and Loopback Interfaces; " + frrManual + "Basic Setup and ISIS",
			FeatureEBGP:      sonicGuide + "Interfaces and Loopback Interfaces; " + frrManual + "BGP, Peers",
			FeatureIBGP:      frrManual + "BGP, Ethernet Virtual Network - EVPN",
			FeatureReflector: frrManual + "BGP, Configuring FRR as a Route Reflector",
			FeatureServices:  sonicGuide + "VLAN and VxLAN config commands; SONiC EVPN VxLAN HLD; " + frrManual + "EVPN, EVPN route-targets",
			FeatureAccess:    sonicGuide + "Interfaces; " + frrManual + "OSPFv2 (ip ospf passive); ISIS (isis passive); BGP, Networks",
		},
	},
}

// linuxFRR is a container with FRR's image: its files are mounted.
func linuxFRR() *kind {
	k := frr
	k.mounts = map[string]string{frrConf: "", "/etc/frr/daemons": "frr-daemons", "/etc/frr/vtysh.conf": "frr-vtysh.conf"}
	return &k
}

var frrImage = regexp.MustCompile(`(^|/)[^/]*(frr|frrouting)[^/]*$`)

// Kinds are the names of the kinds that can be members.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// Supports reports whether the configuration of a kind has a feature. A container of the kind
// linux needs an image whose name contains frr.
func Supports(kind, image string, f Feature) bool {
	k := kindOf(&lab.Node{Kind: kind, Image: image})
	return k != nil && k.has(f)
}

// kindOf returns how a node is configured, nil if it cannot be.
func kindOf(n *lab.Node) *kind {
	if n.Kind == "linux" && !frrImage.MatchString(n.Image) {
		return nil
	}
	return kinds[n.Kind]
}

// has reports whether the kind has a feature.
func (k *kind) has(f Feature) bool { return k.features[f] != "" }

// limited is an MTU of a link, or the largest one that the kind's configuration sets.
func (k *kind) limited(mtu int) int {
	if k.mtu != 0 && mtu > k.mtu {
		return k.mtu
	}
	return mtu
}

// spelled is the device's name of an interface.
func (k *kind) spelled(linux string) string {
	if k.device == nil {
		return linux
	}
	return k.device(linux)
}

// srlinuxName spells e1-2 as ethernet-1/2.
func srlinuxName(linux string) string {
	return "ethernet-" + strings.ReplaceAll(strings.TrimPrefix(linux, "e"), "-", "/")
}

// ceosName spells eth1 and et1 as Ethernet1, eth1_2 as Ethernet1/2.
func ceosName(linux string) string {
	number := strings.TrimPrefix(strings.TrimPrefix(linux, "et"), "h")
	return "Ethernet" + strings.ReplaceAll(number, "_", "/")
}

// xrdName spells Gi0-0-0-1 as GigabitEthernet0/0/0/1.
func xrdName(linux string) string {
	return "GigabitEthernet" + strings.ReplaceAll(strings.TrimPrefix(linux, "Gi"), "-", "/")
}

// sonicName spells eth1 as Ethernet0 and eth2 as Ethernet4: ports have four lanes each.
func sonicName(linux string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(linux, "eth"))
	if err != nil {
		return linux
	}
	return fmt.Sprintf("Ethernet%d", 4*(n-1))
}
