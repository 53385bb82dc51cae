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
	FeatureOSPF       Feature = "underlay ospf"
	FeatureISIS       Feature = "underlay isis"
	FeatureEBGP       Feature = "underlay ebgp"
	FeatureUnnumbered Feature = "unnumbered links"
	FeatureIBGP       Feature = "overlay ibgp"
	FeatureReflector  Feature = "route reflector"
	FeatureEVPN       Feature = "overlay ebgp"
	FeatureServices   Feature = "services"
	FeatureGateway    Feature = "gateways"
	FeatureAccess     Feature = "access links"
	FeatureCustomers  Feature = "customers"
	FeaturePorts      Feature = "ports in advance"
)

// Features are all features, in the order of the documentation.
var Features = []Feature{FeatureOSPF, FeatureISIS, FeatureEBGP, FeatureUnnumbered, FeatureIBGP, FeatureReflector, FeatureEVPN, FeatureServices, FeatureGateway, FeatureAccess, FeatureCustomers, FeaturePorts}

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
	// merge reports whether the configuration can be appended to another one.
	merge bool
	// mounts are the files that the device reads, for a kind that reads no startup-config: the
	// configuration ("") and templates of other files, by their paths.
	mounts map[string]string
	// script is the template of a shell script that runs in VTEPs, "" for none.
	script string
}

const (
	frrManual = "FRRouting User Guide, "
	frrConf   = "/etc/frr/frr.conf"
)

var frr = kind{
	template: "frr.conf", merge: true, script: "frr.sh",
	features: map[Feature]string{
		FeatureOSPF:       frrManual + "OSPFv2",
		FeatureISIS:       frrManual + "ISIS",
		FeatureEBGP:       frrManual + "BGP, Peers",
		FeatureUnnumbered: frrManual + "BGP, Configuring Peers (neighbor PEER interface remote-as)",
		FeatureIBGP:       frrManual + "BGP, Ethernet Virtual Network - EVPN",
		FeatureReflector:  frrManual + "BGP, Configuring FRR as a Route Reflector",
		FeatureEVPN:       frrManual + "BGP, Ethernet Virtual Network - EVPN",
		FeatureServices:   frrManual + "EVPN, EVPN route-targets; ip-link(8); bridge(8)",
		FeatureGateway:    frrManual + "EVPN; Linux, ip-sysctl (arp_accept)",
		FeatureAccess:     frrManual + "OSPFv2 (ip ospf passive); ISIS (isis passive); BGP, Networks",
		FeatureCustomers:  frrManual + "BGP, Configuring Peers (next-hop-self), and Configuring FRR as a Route Reflector",
		FeaturePorts:      frrManual + "BGP, Configuring Peers (bgp listen range)",
	},
}

// The manuals of the other kinds.
const (
	srlTutorial = "learn.srlinux.dev, tutorial L2 EVPN, "
	avd         = "Arista Validated Designs (aristanetworks/avd), "
	vyosManual  = "VyOS documentation, Protocols, "
	junosManual = "Junos OS, "
	iosxrManual = "Cisco IOS XR Routing Configuration Guide, "
	nxosManual  = "Cisco NX-OS Unicast Routing, "
)

// kinds are the kinds that can be members, by name.
var kinds = map[string]*kind{
	"frr":   &frr,
	"linux": linuxFRR(),
	"nokia_srlinux": {
		template: "srlinux.cli", merge: true, device: srlinuxName,
		features: map[Feature]string{
			FeatureOSPF:      "SR Linux Routing Protocols Guide, OSPF, Basic OSPF configuration",
			FeatureEBGP:      srlTutorial + "Fabric configuration, EBGP",
			FeatureIBGP:      srlTutorial + "EVPN configuration, IBGP for EVPN",
			FeatureReflector: "learn.srlinux.dev, tutorial L3 EVPN, Overlay routing, EVPN Route Reflector",
			FeatureServices:  srlTutorial + "EVPN configuration, MAC-VRF and EVPN in MAC-VRF",
			FeatureAccess:    "SR Linux Routing Protocols Guide, OSPF, Basic OSPF configuration (passive); " + srlTutorial + "Fabric configuration",
		},
	},
	"arista_ceos": {
		template: "ceos.cfg", device: ceosName,
		features: map[Feature]string{
			FeatureISIS:      avd + "eos_cli_config_gen, Router ISIS",
			FeatureEBGP:      avd + "example dual-dc-l3ls, Router BGP",
			FeatureIBGP:      avd + "example dual-dc-l3ls, Router BGP, address family evpn",
			FeatureReflector: avd + "eos_cli_config_gen, Router BGP, peer groups",
			FeatureServices:  avd + "example dual-dc-l3ls, VXLAN interface and VLANs of Router BGP",
			FeatureAccess:    avd + "eos_cli_config_gen, Router ISIS (isis passive) and Router BGP (network)",
		},
	},
	"vyosnetworks_vyos": {
		template: "vyos.boot",
		features: map[Feature]string{
			FeatureOSPF:   vyosManual + "OSPF, Interface Configuration",
			FeatureISIS:   vyosManual + "IS-IS, Interface Configuration",
			FeatureEBGP:   vyosManual + "BGP, Peers Configuration",
			FeatureAccess: vyosManual + "OSPF and IS-IS, Interface Configuration (passive); BGP, Network Advertisement",
		},
	},
	"juniper_crpd": {
		template: "crpd.conf",
		features: map[Feature]string{
			FeatureOSPF:   junosManual + "CLI Reference, interface (Protocols OSPF) and interface-type",
			FeatureISIS:   junosManual + "IS-IS User Guide, Understanding IS-IS Configuration; containerlab, lab SR Linux and cRPD",
			FeatureEBGP:   junosManual + "BGP User Guide, BGP Peering Sessions; CLI Reference, type and export (Protocols BGP)",
			FeatureAccess: junosManual + "CLI Reference, interface (Protocols OSPF) and interface (Protocols IS-IS), passive; export (Protocols BGP)",
		},
	},
	"cisco_xrd": {
		template: "xrd.cfg", device: xrdName, addresses: true,
		features: map[Feature]string{
			FeatureISIS:   iosxrManual + "Implementing IS-IS, IS-IS Interfaces",
			FeatureEBGP:   iosxrManual + "Implementing BGP, Routing Policy Enforcement",
			FeatureAccess: iosxrManual + "Implementing IS-IS, IS-IS Interfaces (passive); Implementing BGP",
		},
	},
	"cisco_n9kv": {
		template: "n9kv.cfg", device: func(linux string) string { return strings.Replace(linux, "eth", "Ethernet1/", 1) }, addresses: true,
		features: map[Feature]string{
			FeatureEBGP:   nxosManual + "Configuring Basic BGP; Command Reference, neighbor and network",
			FeatureAccess: nxosManual + "Command Reference, network",
		},
	},
	"sonic-vs": {
		template: "sonic.sh", exec: true, addresses: true, device: sonicName,
		features: map[Feature]string{
			FeatureEBGP:   "SONiC Command Line Interface Guide, Interfaces and Loopback Interfaces; " + frrManual + "BGP, Peers",
			FeatureAccess: "SONiC Command Line Interface Guide, Interfaces; " + frrManual + "BGP, Networks",
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
