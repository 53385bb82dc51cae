#!/bin/bash
# Configures SR Linux at its first boot: the lines that its release knows, the
# certificate, the defaults of the lab, then the user's own. A node that has a
# saved configuration keeps it, unless its startup-config is enforced. The arguments are DNS servers.
set -u
resolvers=$*
cli=/opt/srlinux/bin/sr_cli
tls=/opt/clab-tls
work=/tmp/clab-commands
enforced='{{if and .EnforceStartupConfig .PartialCfg}}yes{{end}}'
[ -z "$enforced" ] && [ -e /etc/opt/srlinux/config.json ] && exit 0

# 2503 stands for release 25.3; a version that cannot be read is the newest.
release=$($cli -d 'info from state /system information version' | sed -nE 's/.*v([0-9]+)\.([0-9]+)\..*/\1 \2/p' | head -n 1)
read -r major minor <<<"${release:-99 99}"
[ "$major" = 0 ] && major=99
release=$((10#$major * 100 + 10#$minor))
since() { [ "$release" -ge "$1" ]; }
set_() { echo "set / $*"; }

grpc_server() { # name, port or nothing, tls or not
	local s="system grpc-server $1"
	set_ "$s" admin-state enable
	set_ "$s" network-instance mgmt
	set_ "$s" services '[ gnmi gnoi gnsi gribi p4rt ]'
	set_ "$s" rate-limit 65000
	set_ "$s" trace-options '[ request response common ]'
	set_ "$s" unix-socket admin-state enable
	[ -n "$2" ] && set_ "$s" port "$2"
	if [ "$3" = tls ]; then
		set_ "$s" tls-profile clab-profile
		echo "delete / $s default-tls-profile"
	fi
}

accept() { # family, entry, source or destination, TCP port
	local e="acl acl-filter cpm type $1 entry $2"
	local field=protocol
	[ "$1" = ipv6 ] && field=next-header
	set_ "$e" match "$1" $field tcp
	set_ "$e" match transport "$3-port" operator eq
	set_ "$e" match transport "$3-port" value "$4"
	set_ "$e" action accept
}

eda_server() { # name, port, services, ACL entry for IPv4
	local s="system grpc-server $1"
	set_ "$s" services "$3"
	set_ "$s" port "$2"
	set_ "$s" rate-limit 65535
	set_ "$s" session-limit 1024
	set_ "$s" metadata-authentication true
	set_ "$s" network-instance mgmt
	set_ "$s" admin-state enable
	accept ipv4 "$4" destination "$2"
	accept ipv6 $(($4 + 10)) destination "$2"
}

# A prompt on a line of its own, of what the release has.
prompt() {
	local own
	own=$($cli -d 'environment show | grep -A 2 prompt' | sed -nE 's/.*value += +"(.+)".*/\1/p' | head -n 1)
	[ -n "$own" ] || return 0
	echo 'environment save file /home/admin/srlinux_orig.rc'
	printf 'environment prompt "\\n%s"\n' "$own"
	echo 'environment save file /home/admin/.srlinuxrc'
}

commands() {
	local profile=server-profile
	since 2603 && profile=profile
	set_ system tls $profile clab-profile key "\"$(cat $tls/tls.key)\""
	set_ system tls $profile clab-profile certificate "\"$(cat $tls/tls.crt)\""
	set_ system tls $profile clab-profile authenticate-client false
	if since 2403; then
		grpc_server mgmt '' tls
		grpc_server insecure-mgmt 57401 plain
		set_ system snmp access-group lab-readers security-level no-auth-no-priv community-entry reader community public
		for rule in '88 source 23' '98 destination 23' '158 destination 80' '358 destination 57401'; do
			accept ipv4 $rule
		done
		for rule in '128 source 23' '138 destination 23' '188 destination 80' '368 destination 57401'; do
			accept ipv6 $rule
		done
	else
		set_ system gnmi-server admin-state enable
		set_ system gnmi-server network-instance mgmt admin-state enable
		set_ system gnmi-server network-instance mgmt tls-profile clab-profile
		set_ system gnmi-server rate-limit 65000
		set_ system gnmi-server unix-socket admin-state enable
		[ "$release" = 2310 ] && set_ system gnmi-server unix-socket services '[ gnmi gnoi ]'
		set_ system snmp community public
	fi
	set_ system snmp network-instance mgmt admin-state enable
	if since 2407; then
		set_ system ssh-server mgmt-netconf network-instance mgmt
		set_ system ssh-server mgmt-netconf port 830
		set_ system ssh-server mgmt-netconf disable-shell true
		set_ system ssh-server mgmt-netconf admin-state enable
		set_ system netconf-server mgmt ssh-server mgmt-netconf
		set_ system netconf-server mgmt admin-state enable
	fi
	if since 2410 && $cli -d 'info from state system features' | grep -q openconfig; then
		set_ system management openconfig admin-state enable
	fi
	if since 2410; then
		eda_server eda-discovery 50052 '[ gnmi gnsi ]' 355
		set_ system grpc-server eda-discovery default-tls-profile true
{{- if index .Keys "eda-default-grpc-server"}}
		set_ system grpc-server mgmt metadata-authentication true
		set_ system grpc-server mgmt tls-profile EDA
{{- else}}
		eda_server eda-mgmt 57410 '[ gnmi gnoi gnsi ]' 356
		set_ system grpc-server eda-mgmt tls-profile EDA
		eda_server eda-insecure-mgmt 57411 '[ gnmi gnoi gnsi ]' 357
{{- end}}
	fi
	since 2503 && set_ system ndk-server admin-state enable
	if [ -n "$resolvers" ]; then
		local dns='system dns'
		since 2603 && dns='system dns-instance clab-default'
		set_ "$dns" network-instance mgmt
		set_ "$dns" server-list "[ $resolvers ]"
	fi
	cat /tmp/clab-default-config
{{- if index .Keys "custom-prompt"}}
	prompt
{{- end}}
}

feed() { # file, as the admin user, so that what it saves belongs to admin
	su -s /bin/bash admin -c "$cli -ed < $1"
}

commands >$work
chown admin $work && chmod 0600 $work
feed $work
rm -f $work
if [ -e /tmp/clab-overlay-config ]; then
	errors=$(feed /tmp/clab-overlay-config 2>&1 >/dev/null)
	if [ -n "$errors" ]; then
		echo "startup-config: $errors" >&2
		exit 1
	fi
fi
$cli -ed commit save || exit 1
$cli '/tools system configuration generate-checkpoint name clab-initial comment "set by the lab"'
