#!/bin/sh
# Holds the start back until the links of the node are there: CLAB_INTFS
# interfaces named like data ports, for at most five minutes.
want=${CLAB_INTFS:-0}
case $want in
'' | *[!0-9]*) want=0 ;;
esac

present() {
	n=0
	for dev in /sys/class/net/*; do
		case ${dev##*/} in
		eth[1-9]* | et[0-9]* | e[1-9]* | ens* | eno* | enp* | net[0-9]*) n=$((n + 1)) ;;
		esac
	done
	echo "$n"
}

left=300
while [ "$(present)" -lt "$want" ] && [ "$left" -gt 0 ]; do
	left=$((left - 1))
	sleep 1
done
if [ "$(present)" -lt "$want" ]; then
	echo "if-wait: $(present) of $want interfaces after five minutes, starting anyway" >&2
fi
