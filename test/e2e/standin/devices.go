package main

// check is one need of a device.
type check struct {
	what  string
	holds func() error
}

// systemd is what an init of that kind needs (systemd's container interface).
var systemd = []check{
	{"it is process 1", isFirst},
	{"cgroups are there and writable", writableCgroups},
	{"it may mount file systems", mayMount},
	{"/run is writable", writable("/run")},
}

// devices are the needs by kind.
var devices = map[string][]check{
	"nokia_srlinux": {
		{"it is root", isRoot},
		{"capabilities", capabilities("SYS_ADMIN", "NET_ADMIN", "NET_RAW", "NET_BIND_SERVICE", "SYS_NICE", "IPC_LOCK", "SYS_PTRACE", "SYS_CHROOT", "MKNOD")},
		{"the environment", environment("SRLINUX", "1")},
		{"a marker that it is a container", exists("/.dockerenv")},
		{"no forwarding", sysctl("net.ipv4.ip_forward", "0")},
		{"IPv6", sysctl("net.ipv6.conf.all.disable_ipv6", "0")},
		{"no duplicate address detection", sysctl("net.ipv6.conf.all.accept_dad", "0")},
		{"no duplicate address detection on new interfaces", sysctl("net.ipv6.conf.default.accept_dad", "0")},
		{"no address configuration", sysctl("net.ipv6.conf.all.autoconf", "0")},
		{"no address configuration of new interfaces", sysctl("net.ipv6.conf.default.autoconf", "0")},
		{"sysctls can be set", writable("/proc/sys/net/ipv4/conf/all/rp_filter")},
		{"namespaces by name do not outlive the container", mountedAs("/run/netns", "tmpfs")},
		{"its configuration stays", writable("/etc/opt/srlinux")},
		{"its hardware", holds("/tmp/topology.yml", "chassis_type")},
		{"shared memory", writable("/dev/shm")},
		{"management", addressed("eth0", true)},
		{"a port", port("e1-1", 9232)},
		{"checksums that the peer can check", noOffload("e1-1")},
		{"it can look at frames", packetSocket("e1-1")},
	},
	"arista_ceos": append([]check{
		{"capabilities", capabilities("SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_NICE", "IPC_LOCK", "SYS_PTRACE", "MKNOD")},
		{"the environment", environment("CEOS", "1", "EOS_PLATFORM", "ceoslab", "ETBA", "1", "INTFTYPE", "eth", "MAPETH0", "1", "MGMT_INTF", "eth0", "container", "docker", "SKIP_ZEROTOUCH_BARRIER_IN_SYSDBINIT", "1")},
		{"the environment for services", setenv("CEOS=1", "EOS_PLATFORM=ceoslab", "MGMT_INTF=eth0")},
		{"its ports before init", port("eth1", 1500)},
		{"management", addressed("eth0", true)},
		{"an address of Arista", hardware("eth0", "00:1c:73:")},
		{"its own address is the next one", nextAddress("/mnt/flash/system_mac_address", "eth0")},
		{"the flash", writable("/mnt/flash")},
		{"its configuration", holds("/mnt/flash/startup-config", "hostname")},
		{"its key", holds("/persist/secure/ssl/keys/node.key", "PRIVATE KEY")},
		{"its certificate", holds("/persist/secure/ssl/certs/node.crt", "CERTIFICATE")},
		{"forwarding", sysctl("net.ipv4.ip_forward", "1")},
	}, systemd...),
	"cisco_xrd": append([]check{
		{"capabilities", capabilities("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETUID", "SETPCAP", "SYS_CHROOT", "IPC_LOCK", "NET_ADMIN", "SYS_ADMIN", "SYSLOG", "SYS_NICE", "SYS_PTRACE")},
		{"tap devices", openTap("xrtap0")},
		{"inotify instances", atLeast("/proc/sys/fs/inotify/max_user_instances", 4000)},
		{"IPv6", sysctl("net.ipv6.conf.all.disable_ipv6", "0")},
		{"the interfaces that XR_INTERFACES names", xrInterfaces},
		{"the interface that XR_MGMT_INTERFACES names, with addresses and a gateway to take over", addressed("eth0", true)},
		{"a configuration for the first boot", holds("/etc/xrd/first-boot.cfg", "hostname")},
		{"a script for every boot", holds("/etc/xrd/mgmt_intf_v6_addr.sh", "ipv6 address")},
		{"that can be run", executable("/etc/xrd/mgmt_intf_v6_addr.sh")},
		{"what it stores stays", writable("/xr-storage")},
		{"it can look at frames", packetSocket("Gi0-0-0-0")},
	}, systemd...),
	"juniper_crpd": {
		{"capabilities", capabilities("NET_ADMIN", "NET_RAW", "SYS_ADMIN", "NET_BIND_SERVICE", "SYS_NICE", "CHOWN")},
		{"its configuration", holds("/config/juniper.conf", "root-authentication")},
		{"what it commits stays", writable("/config")},
		{"its log", writable("/var/log")},
		{"how sshd is configured", holds("/etc/ssh/sshd_config", "Subsystem")},
		{"forwarding", sysctl("net.ipv4.ip_forward", "1")},
		{"forwarding can be set", writable("/proc/sys/net/ipv6/conf/all/forwarding")},
		{"management", addressed("eth0", true)},
		{"a port", port("eth1", 1500)},
		{"routes", setsRoutes},
	},
	"nokia_srsim": {
		{"it is root", isRoot},
		{"capabilities", capabilities("CHOWN", "SYS_CHROOT", "IPC_LOCK", "NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW", "SYS_TIME")},
		{"no reverse path filter", sysctl("net.ipv4.conf.all.rp_filter", "0")},
		{"no reverse path filter on new interfaces", sysctl("net.ipv4.conf.default.rp_filter", "0")},
		{"no router advertisements", sysctl("net.ipv6.conf.all.accept_ra", "0")},
		{"no router advertisements on new interfaces", sysctl("net.ipv6.conf.default.accept_ra", "0")},
		{"no forwarding", sysctl("net.ipv4.ip_forward", "0")},
		{"the environment", environment("NOKIA_SROS_CHASSIS", "SR-1", "NOKIA_SROS_SLOT", "A")},
		{"the base address is that of eth0", baseAddress("NOKIA_SROS_SYSTEM_BASE_MAC", "eth0")},
		{"a licence", holds("/nokia/license/license.txt", "licence of the test")},
		{"compact flash 1", writable("/home/sros/flash1")},
		{"compact flash 2", writable("/home/sros/flash2")},
		{"compact flash 3", writable("/home/sros/flash3")},
		{"its configuration", holds("/home/sros/flash3/config.cfg", "configure")},
		{"management", addressed("eth0", true)},
		{"a port", port("e1-1-c1-1", 9000)},
		{"it can look at frames", packetSocket("e1-1-c1-1")},
	},
	"sonic-vs": {
		{"capabilities", capabilities("NET_ADMIN", "NET_RAW", "SYS_ADMIN")},
		{"its ports before the services", port("eth1", 1500)},
		{"no ARP of the kernel's on ports", noARP("eth1")},
		{"an address for the switch", hardware("eth0", "")},
		{"tap devices for host interfaces", openTap("Ethernet0")},
		{"configuration", writable("/etc")},
		{"the database's socket", writable("/var/run")},
	},
}
