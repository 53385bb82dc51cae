interfaces {
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
    }
{{- end}}
{{- range .Access}}
    ethernet {{.Device}} {
        description "{{.Peer}}"
        address "{{.Address}}"
    }
{{- end}}
    loopback lo {
{{- range .Loopbacks}}
        address "{{.}}/32"
{{- end}}
    }
}
protocols {
{{- if eq .Underlay "ebgp"}}
    bgp {
        system-as "{{.ASN}}"
        parameters {
            router-id "{{.RouterID}}"
            bestpath {
                as-path {
                    multipath-relax
                }
            }
        }
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
