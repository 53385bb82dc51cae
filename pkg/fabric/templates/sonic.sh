# Configures ports and VLANs by SONiC's command line, and routing by vtysh.
set -e
{{- $ebgp := eq .Underlay "ebgp"}}
answers() {
	for try in $(seq 60); do
		vtysh -d "$1" -c 'show version' >/dev/null 2>&1 && return
		sleep 1
	done
	echo "$1 does not answer" >&2
	exit 1
}
answers zebra
{{- if .ASN}}
answers bgpd
{{- end}}
{{- with .IGP}}
# SONiC does not start it.
pidof {{.}}d >/dev/null || /usr/lib/frr/{{.}}d -d -A 127.0.0.1
answers {{.}}d
{{- end}}
config hostname {{.Hostname}}
config loopback add Loopback0
{{- range .Loopbacks}}
config interface ip add Loopback0 {{.}}/32
{{- end}}
{{- range .Links}}
config interface ip add {{.Device}} {{.Address}}
config interface mtu {{.Device}} {{.MTU}}
config interface startup {{.Device}}
{{- end}}
{{- range .Access}}
config interface ip add {{.Device}} {{.Address}}
config interface mtu {{.Device}} {{.MTU}}
config interface startup {{.Device}}
{{- end}}
{{- if .Services}}
config vxlan add vtep {{.VTEP}}
config vxlan evpn_nvo add nvo vtep
{{- end}}
{{- range $s := .Services}}
config vlan add {{.VLAN}}
{{- range .Ports}}
config vlan member add -u {{$s.VLAN}} {{.Device}}
config interface startup {{.Device}}
{{- end}}
config vxlan map add vtep {{.VLAN}} {{.VNI}}
{{- end}}
vtysh <<'END'
configure terminal
{{- if not $ebgp}}
interface Loopback0
{{- template "sonic-igp" .}}
{{- template "sonic-passive" .}}
exit
{{- range .Links}}
interface {{.Device}}
{{- template "sonic-igp" $}}
{{- if eq $.Underlay "ospf"}}
ip ospf network point-to-point
{{- else}}
isis network point-to-point
{{- end}}
exit
{{- end}}
{{- range .Access}}
interface {{.Device}}
{{- template "sonic-igp" $}}
{{- template "sonic-passive" $}}
exit
{{- end}}
{{- if eq .Underlay "ospf"}}
router ospf
ospf router-id {{.RouterID}}
exit
{{- else}}
router isis fabric
net {{.NET}}
is-type level-2-only
exit
{{- end}}
{{- end}}
{{- if .ASN}}
router bgp {{.ASN}}
bgp router-id {{.RouterID}}
no bgp default ipv4-unicast
{{- if $ebgp}}
no bgp ebgp-requires-policy
bgp bestpath as-path multipath-relax
{{- range .Links}}
neighbor {{.PeerAddress}} remote-as {{.PeerASN}}
neighbor {{.PeerAddress}} description {{.Peer}}:{{.PeerInterface}}
{{- end}}
address-family ipv4 unicast
{{- range .Loopbacks}}
network {{.}}/32
{{- end}}
{{- range .Access}}
network {{.Network}}
{{- end}}
{{- range .Links}}
neighbor {{.PeerAddress}} activate
{{- end}}
exit-address-family
{{- end}}
{{- range .Peers}}
neighbor {{.Address}} remote-as internal
neighbor {{.Address}} update-source {{$.RouterID}}
neighbor {{.Address}} description {{.Name}}
{{- end}}
{{- if .Peers}}
address-family l2vpn evpn
{{- range .Peers}}
neighbor {{.Address}} activate
{{- if .Client}}
neighbor {{.Address}} route-reflector-client
{{- end}}
{{- end}}
{{- if .Services}}
advertise-all-vni
{{- end}}
{{- range .Services}}
vni {{.VNI}}
route-target import {{.RouteTarget}}
route-target export {{.RouteTarget}}
exit-vni
{{- end}}
exit-address-family
{{- end}}
{{- end}}
end
END
{{define "sonic-igp"}}
{{- if eq .Underlay "ospf"}}
ip ospf area 0
{{- else}}
ip router isis fabric
{{- end}}
{{- end}}
{{define "sonic-passive"}}
{{- if eq .Underlay "ospf"}}
ip ospf passive
{{- else}}
isis passive
{{- end}}
{{- end}}
