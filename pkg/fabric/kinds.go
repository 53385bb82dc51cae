package fabric

import (
	"fmt"
	"regexp"
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
)

// Features are all features, in the order of the documentation.
var Features = []Feature{FeatureOSPF, FeatureISIS, FeatureEBGP, FeatureUnnumbered, FeatureIBGP, FeatureReflector, FeatureEVPN, FeatureServices, FeatureGateway}

// kind is how nodes of a kind are configured.
type kind struct {
	// template is the name of the template.
	template string
	// features are those that the template has, with the source of their syntax.
	features map[Feature]string
	// device spells an interface as the device does.
	device func(linux string) string
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
	},
}

// kinds are the kinds that can be members, by name.
var kinds = map[string]*kind{"frr": &frr, "linux": linuxFRR()}

// linuxFRR is a container with FRR's image: its files are mounted.
func linuxFRR() *kind {
	k := frr
	k.mounts = map[string]string{frrConf: "", "/etc/frr/daemons": "frr-daemons", "/etc/frr/vtysh.conf": "frr-vtysh.conf"}
	return &k
}

var frrImage = regexp.MustCompile(`(^|/)[^/]*(frr|frrouting)[^/]*$`)

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

// numbered spells eth1 as format with the number 1 plus offset, times factor.
func numbered(format string, factor, offset int) func(string) string {
	return func(linux string) string {
		n, err := strconv.Atoi(strings.TrimLeft(linux, "eth"))
		if err != nil {
			return linux
		}
		return fmt.Sprintf(format, factor*(n+offset))
	}
}
