# Configures addresses by SONiC's command line, and BGP by vtysh.
set -e
for try in $(seq 60); do
	vtysh -c 'show version' >/dev/null 2>&1 && break
	sleep 1
done
config hostname {{.Hostname}}
config loopback add Loopback0
{{- range .Loopbacks}}
config interface ip add Loopback0 {{.}}/32
{{- end}}
{{- range .Links}}
config interface ip add {{.Device}} {{.Address}}
config interface startup {{.Device}}
{{- end}}
{{- range .Access}}
config interface ip add {{.Device}} {{.Address}}
config interface startup {{.Device}}
{{- end}}
vtysh <<'END'
configure terminal
router bgp {{.ASN}}
bgp router-id {{.RouterID}}
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
exit-address-family
end
END
