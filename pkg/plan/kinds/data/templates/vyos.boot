interfaces {
    ethernet eth0 {
        description "management"
{{- if .MgmtIPv4Address}}
        address "{{.MgmtIPv4Address}}/{{.MgmtIPv4PrefixLength}}"
{{- end}}
{{- if .MgmtIPv6Address}}
        address "{{.MgmtIPv6Address}}/{{.MgmtIPv6PrefixLength}}"
{{- end}}
    }
    loopback lo {
    }
}
service {
    ssh {
        listen-address "0.0.0.0"
{{- if .MgmtIPv6Address}}
        listen-address "::"
{{- end}}
    }
}
system {
    config-management {
        commit-revisions "100"
    }
    host-name "{{.ShortName}}"
    login {
        user {{.Credentials.Username}} {
            authentication {
                plaintext-password "{{.Credentials.Password}}"
            }
        }
    }
}
