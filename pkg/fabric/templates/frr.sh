# Creates the bridge and the tunnel of each VLAN. It may run several times.
set -e
create() {
	name=$1
	shift
	ip link show "$name" >/dev/null 2>&1 || ip link add "$name" "$@"
}
{{- if .Multicast}}
# pimd receives the groups on the interface of this name.
create ipmr-lo type bridge
ip link set ipmr-lo mtu {{.LinkMTU}} up
{{- if gt (len .Services) 20}}
echo {{len .Services}} >/proc/sys/net/ipv4/igmp_max_memberships
{{- end}}
{{- end}}
{{- range $s := .Services}}
create br{{.VLAN}} type bridge
create vxlan{{.VLAN}} type vxlan id {{.VNI}} local {{$.VTEP}} dstport 4789 nolearning
{{- if .Group.IsValid}} ttl 64 group {{.Group}} dev ipmr-lo
# Frames to the group leave by lo: the kernel forwards what arrives there along the trees of pimd.
if bridge fdb del 00:00:00:00:00:00 dev vxlan{{.VLAN}} dst {{.Group}} via ipmr-lo 2>/dev/null; then
	bridge fdb append 00:00:00:00:00:00 dev vxlan{{.VLAN}} dst {{.Group}} via lo
fi
{{- end}}
ip link set vxlan{{.VLAN}} mtu {{$.TunnelMTU}} master br{{.VLAN}} up
bridge link set dev vxlan{{.VLAN}} learning off neigh_suppress on
{{- range .Ports}}
ip link set {{.Interface}} master br{{$s.VLAN}}
{{- end}}
{{- range .Segments}}
create es{{.ID}} type bond mode 802.3ad miimon 100 lacp_rate fast min_links 1 xmit_hash_policy layer3+4 ad_actor_system {{.SystemMAC}}
ip link set es{{.ID}} mtu "$(cat /sys/class/net/{{(index .Ports 0).Interface}}/mtu)"
{{- $id := .ID}}
{{- range .Ports}}
ip link set {{.Interface}} down
ip link set {{.Interface}} master es{{$id}}
ip link set {{.Interface}} up
{{- end}}
ip link set es{{.ID}} master br{{$s.VLAN}} up
{{- end}}
{{- if .Gateway.IsValid}}
ip link set br{{.VLAN}} address {{.GatewayMAC}}
ip addr replace {{.Gateway}} dev br{{.VLAN}}
# An answer to another VTEP's ARP request, which has the same gateway address, arrives here.
echo 1 >/proc/sys/net/ipv4/conf/br{{.VLAN}}/arp_accept
{{- end}}
ip link set br{{.VLAN}} up
{{- end}}
