{{- $ebgp := eq .Underlay "ebgp" -}}
interfaces {
{{- range $s := .Services}}
    bridge br{{.VLAN}} {
        description "{{.Label}}"
        member {
{{- range .Ports}}
            interface {{.Device}} {
            }
{{- end}}
            interface vxlan{{.VLAN}} {
            }
        }
        mtu "{{$.TunnelMTU}}"
    }
{{- end}}
    ethernet eth0 {
        description "management"
{{- with .MgmtIPv4}}
        address "{{.}}"
{{- end}}
{{- with .MgmtIPv6}}
        address "{{.}}"
{{- end}}
    }
{{- range .Links}}
    ethernet {{.Device}} {
        description "{{.Peer}}:{{.PeerInterface}}"
{{- if .Address.IsValid}}
        address "{{.Address}}"
{{- end}}
        mtu "{{.MTU}}"
    }
{{- end}}
{{- range .Access}}
    ethernet {{.Device}} {
        description "{{.Peer}}"
        address "{{.Address}}"
        mtu "{{.MTU}}"
    }
{{- end}}
{{- range .Services}}
{{- range .Ports}}
    ethernet {{.Device}} {
        description "{{.Peer}}"
        mtu "{{$.TunnelMTU}}"
    }
{{- end}}
{{- end}}
    loopback lo {
{{- range .Loopbacks}}
        address "{{.}}/32"
{{- end}}
    }
{{- range .Services}}
    vxlan vxlan{{.VLAN}} {
        mtu "{{$.TunnelMTU}}"
        parameters {
            nolearning
        }
        port "4789"
        source-address "{{$.VTEP}}"
        vni "{{.VNI}}"
    }
{{- end}}
}
protocols {
{{- if .ASN}}
    bgp {
        system-as "{{.ASN}}"
        parameters {
            router-id "{{.RouterID}}"
{{- if $ebgp}}
            bestpath {
                as-path {
                    multipath-relax
                }
            }
{{- end}}
        }
{{- if .Services}}
        address-family {
            l2vpn-evpn {
                advertise-all-vni
{{- range .Services}}
                vni {{.VNI}} {
                    route-target {
                        export "{{.RouteTarget}}"
                        import "{{.RouteTarget}}"
                    }
                }
{{- end}}
            }
        }
{{- end}}
{{- if $ebgp}}
        address-family {
            ipv4-unicast {
{{- range .Loopbacks}}
                network {{.}}/32 {
                }
{{- end}}
{{- range .Access}}
                network {{.Network}} {
                }
{{- end}}
            }
        }
{{- end}}
{{- range .Peers}}
        neighbor {{.Address}} {
            address-family {
                l2vpn-evpn {
{{- if .Client}}
                    route-reflector-client
{{- end}}
                }
            }
            description "{{.Name}}"
            remote-as "{{$.ASN}}"
            update-source "{{$.RouterID}}"
        }
{{- end}}
{{- if $ebgp}}
{{- range .Links}}
        neighbor {{.PeerAddress}} {
            description "{{.Peer}}:{{.PeerInterface}}"
            remote-as "{{.PeerASN}}"
            address-family {
                ipv4-unicast {
                }
            }
        }
{{- end}}
{{- end}}
    }
{{- end}}
{{- if eq .Underlay "ospf"}}
    ospf {
        parameters {
            router-id "{{.RouterID}}"
        }
        interface lo {
            area "0"
            passive {
            }
        }
{{- range .Links}}
        interface {{.Device}} {
            area "0"
            network "point-to-point"
        }
{{- end}}
{{- range .Access}}
        interface {{.Device}} {
            area "0"
            passive {
            }
        }
{{- end}}
    }
{{- else if eq .Underlay "isis"}}
    isis {
        net "{{.NET}}"
        level "level-2"
        metric-style "wide"
        interface lo {
            passive
        }
{{- range .Links}}
        interface {{.Device}} {
            network {
                point-to-point
            }
        }
{{- end}}
{{- range .Access}}
        interface {{.Device}} {
            passive
        }
{{- end}}
    }
{{- end}}
}
service {
    ssh {
        listen-address "0.0.0.0"
    }
}
system {
    config-management {
        commit-revisions "100"
    }
    host-name "{{.Hostname}}"
    login {
        user {{.Username}} {
            authentication {
                plaintext-password "{{.Password}}"
            }
        }
    }
}
