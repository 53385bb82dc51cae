// Package host is about the machine that carries a cluster: what it must offer,
// what is installed on it, and the settings that are changed and put back.
package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Check says everything the machine lacks, each with how to get it. Cgroups have
// a check of their own.
func Check() error {
	if os.Geteuid() != 0 {
		return errors.New("a cluster needs root, for namespaces, bridges and cgroups: run it with sudo")
	}
	return errors.Join(checkOverlay(), checkLinks(), checkBridgeFilter())
}

// modprobe is tried without a word: many kernels have everything built in, and
// those checks that follow tell what is really missing.
func modprobe(module string) {
	_ = exec.Command("modprobe", "-q", module).Run()
}

func checkOverlay() error {
	modprobe("overlay")
	text, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "\toverlay\n") {
		return errors.New("the kernel has no overlayfs, which holds container images: modprobe overlay, or a kernel with CONFIG_OVERLAY_FS")
	}
	return nil
}

// checkLinks makes one link of each needed kind in a namespace that ends with it.
func checkLinks() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := netns.Get()
	if err != nil {
		return err
	}
	defer home.Close()
	scratch, err := netns.New()
	if err != nil {
		return fmt.Errorf("making a network namespace (the kernel needs CONFIG_NET_NS, the user CAP_SYS_ADMIN): %w", err)
	}
	defer scratch.Close()
	defer netns.Set(home)

	var problems []error
	for kind, link := range map[string]netlink.Link{
		"bridge": &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "probe-bridge"}},
		"veth":   &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "probe-veth"}, PeerName: "probe-peer"},
	} {
		modprobe(kind)
		if err := netlink.LinkAdd(link); err != nil {
			problems = append(problems, fmt.Errorf("the kernel makes no %s: modprobe %s, or a kernel with CONFIG_%s: %w", kind, kind, strings.ToUpper(kind), err))
		}
	}
	return errors.Join(problems...)
}

// BridgeFilter is there when bridged packets pass netfilter, as Services of
// Pods on one worker need.
const BridgeFilter = "/proc/sys/net/bridge/bridge-nf-call-iptables"

func checkBridgeFilter() error {
	if _, err := os.Stat(BridgeFilter); err == nil {
		return nil
	}
	modprobe("br_netfilter")
	if _, err := os.Stat(BridgeFilter); err != nil {
		return errors.New("the kernel does not filter bridged packets, so Services fail between Pods of one worker: modprobe br_netfilter, or a kernel with CONFIG_BRIDGE_NETFILTER")
	}
	// The module starts with filtering on the host's own bridges as well.
	return errors.Join(
		writeSysctl("net.bridge.bridge-nf-call-iptables", "0"),
		writeSysctl("net.bridge.bridge-nf-call-ip6tables", "0"),
		writeSysctl("net.bridge.bridge-nf-call-arptables", "0"),
	)
}
