package images

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Names of the device images. The domain cannot exist elsewhere (RFC 6761).
const (
	Linux = "c9s.test/linux:latest"
	FRR   = "c9s.test/frr:latest"
	BIRD  = "c9s.test/bird:latest"
)

var debianPath = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// A device is a Debian system: packages, files and a little work in between.
type device struct {
	packages []string
	files    map[string]file
	script   string // run by sh in the system after the packages
}

// version changes with everything that goes into a device.
func (d device) version(below ...string) string {
	h := sha256.New()
	fmt.Fprintln(h, suite, d.packages, d.script, below)
	for _, name := range sortedKeys(d.files) {
		fmt.Fprintf(h, "%s %v %q %q\n", name, d.files[name].mode, d.files[name].text, d.files[name].link)
	}
	return hex.EncodeToString(h.Sum(nil))[:10]
}

// linux has the tools of the multitool images that public labs use as hosts,
// under the names they have there: busybox replaces Alpine's own.
var linux = device{
	packages: []string{
		"bash", "bind9-dnsutils", "bridge-utils", "busybox", "ca-certificates", "curl", "ethtool", "iperf3", "iproute2", "iptables",
		"iputils-arping", "iputils-ping", "iputils-tracepath", "jq", "lldpd", "mtr-tiny", "net-tools", "netcat-openbsd", "nftables",
		"nginx-light", "openssh-client", "openssh-server", "procps", "python3-minimal", "socat", "tcpdump", "tini", "traceroute", "vim-tiny",
	},
	files: map[string]file{
		"usr/local/bin/start-services":   {mode: 0o755, text: []byte(startServices)},
		"etc/ssh/sshd_config.d/lab.conf": {mode: 0o644, text: []byte("PermitRootLogin yes\nPermitEmptyPasswords no\n")},
		"var/www/html/index.html":        {mode: 0o644, text: []byte("c9s test host\n")},
	},
	script: `
ln -sf /usr/bin/tini /usr/sbin/tini
for applet in ash udhcpc vi telnet; do command -v $applet >/dev/null || ln -s /usr/bin/busybox /usr/bin/$applet; done
rm -f /etc/ssh/ssh_host_* /var/www/html/index.nginx-debian.html
mkdir -p /run/sshd /docker
ln -sf /usr/local/bin/start-services /docker/entrypoint.sh
ln -sf /usr/local/bin/start-services /docker-entrypoint.sh
echo root:admin | chpasswd
`,
}

// startServices runs what the multitool images run, then what it was given.
const startServices = `#!/bin/sh
# Starts sshd and nginx (ports HTTP_PORT, 80, and 22), then runs its arguments or waits.
mkdir -p /run/sshd
[ -e /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key
/usr/sbin/sshd
if [ -n "$HTTP_PORT" ]; then
	sed -i "s/listen 80 default_server/listen $HTTP_PORT default_server/; s/listen \[::\]:80 default_server/listen [::]:$HTTP_PORT default_server/" /etc/nginx/sites-available/default
fi
nginx
[ $# -gt 0 ] && [ "$1" != nginx ] && exec "$@"
exec sleep infinity
`

var linuxRecipe = recipe{
	references: []string{Linux},
	version:    linux.version(),
	seconds:    180,
	config:     v1.Config{Entrypoint: []string{"/usr/sbin/tini", "--"}, Cmd: []string{"/usr/local/bin/start-services"}, Env: debianPath},
	layers:     linux.layers,
}

// frr starts as FRR's own image does: tini, then docker-start, which starts
// the daemons that /etc/frr/daemons names under watchfrr.
var frr = device{
	packages: []string{"bash", "busybox", "ethtool", "frr", "frr-pythontools", "frr-snmp", "iproute2", "iperf3", "iputils-ping", "nftables", "openssh-server", "procps", "tcpdump", "tini", "traceroute"},
	files: map[string]file{
		"usr/lib/frr/docker-start": {mode: 0o755, text: []byte(`#!/bin/bash
# Starts the daemons of /etc/frr/daemons under watchfrr, which keeps them running.
chown -R frr:frr /etc/frr 2>/dev/null # the files may be mounted, and read-only
install -d -o frr -g frr /run/frr
source /usr/lib/frr/frrcommon.sh
exec /usr/lib/frr/watchfrr $(daemon_list)
`)},
		"etc/frr/vtysh.conf": {mode: 0o640, text: []byte("service integrated-vtysh-config\n")},
	},
	script: `
ln -sf /usr/bin/tini /usr/sbin/tini
command -v ash >/dev/null || ln -s /usr/bin/busybox /usr/bin/ash
rm -f /etc/ssh/ssh_host_*
mkdir -p /var/log/frr /run/sshd
chown -R frr:frr /etc/frr /var/log/frr
`,
}

var frrRecipe = recipe{
	references: []string{FRR},
	version:    frr.version(),
	seconds:    120,
	config:     v1.Config{Entrypoint: []string{"/usr/sbin/tini", "--"}, Cmd: []string{"/usr/lib/frr/docker-start"}, Env: debianPath},
	layers:     frr.layers,
}

var bird = device{
	packages: []string{"bash", "bird2", "iproute2", "iputils-ping", "procps", "tcpdump", "tini", "traceroute"},
	script:   "ln -sf /usr/bin/tini /usr/sbin/tini\nmkdir -p /run/bird\n",
}

var birdRecipe = recipe{
	references: []string{BIRD},
	version:    bird.version(),
	seconds:    60,
	config:     v1.Config{Entrypoint: []string{"/usr/sbin/tini", "--"}, Cmd: []string{"/usr/sbin/bird", "-f", "-c", "/etc/bird/bird.conf"}, Env: debianPath},
	layers:     bird.layers,
}
