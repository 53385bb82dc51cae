# Creates the bridge and the tunnel of each VLAN. It may run several times.
set -e
create() {
	name=$1
	shift
	ip link show "$name" >/dev/null 2>&1 || ip link add "$name" "$@"
}
{{- range $s := .Services}}
create br{{.VLAN}} type bridge
create vxlan{{.VLAN}} type vxlan id {{.VNI}} local {{$.VTEP}} dstport 4789 nolearning
ip link set vxlan{{.VLAN}} mtu {{$.TunnelMTU}} master br{{.VLAN}} up
bridge link set dev vxlan{{.VLAN}} learning off neigh_suppress on
{{- range .Ports}}
ip link set {{.Interface}} master br{{$s.VLAN}}
{{- end}}
{{- if .Gateway.IsValid}}
ip link set br{{.VLAN}} address {{.GatewayMAC}}
ip addr replace {{.Gateway}} dev br{{.VLAN}}
# An answer to another VTEP's ARP request, which has the same gateway address, arrives here.
echo 1 >/proc/sys/net/ipv4/conf/br{{.VLAN}}/arp_accept
{{- end}}
ip link set br{{.VLAN}} up
{{- end}}
