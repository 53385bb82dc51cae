#!/bin/bash
# Runs at every boot of XRd: sets the IPv6 address of the management port, which
# XRd does not take over from the container.
. /pkg/bin/ztp_helper.sh
{{- if .MgmtIPv6Address}}
lines=$(printf '%s\n' \
	'interface MgmtEth0/RP0/CPU0/0' \
	' no ipv6 address' \
	' ipv6 address {{.MgmtIPv6Address}}/{{.MgmtIPv6PrefixLength}}')
xrapply_string "$lines"
{{- end}}
