// Command standin takes the place of network operating systems in tests. It is started as the
// device's own first program is, insists on what that program needs of its container, and says
// on standard error what is missing. docs/kinds says where each need is from.
//
// Which device it is, STANDIN says. By other names it is the programs around the device.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	name := filepath.Base(os.Args[0])
	if tool, ok := tools[name]; ok {
		if err := tool(os.Args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	kind := os.Getenv("STANDIN")
	checks, ok := devices[kind]
	if !ok {
		fmt.Fprintf(os.Stderr, "standin: there is no device %q\n", kind)
		os.Exit(2)
	}
	failed := false
	for _, c := range checks {
		if err := c.holds(); err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %s: %v\n", kind, c.what, err)
		}
	}
	if failed {
		os.Exit(1)
	}
	fmt.Printf("%s: all of %d needs are met\n", kind, len(checks))
	if len(os.Args) > 1 && os.Args[1] == "--once" {
		return
	}
	if run := running[kind]; run != nil {
		if err := run(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", kind, err)
			os.Exit(1)
		}
	}
	wait()
}

// wait is the device's life: it ends when it is told to, and buries its children.
func wait() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			var status syscall.WaitStatus
			if pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

// running is what devices do once they have started.
var running = map[string]func() error{
	// The management stack has a network namespace of its own, and takes eth0 there.
	"nokia_srlinux": func() error {
		const space = "srbase-mgmt"
		addresses, err := output("ip", "-o", "address", "show", "dev", "eth0", "scope", "global")
		if err != nil {
			return err
		}
		gateway, err := output("sh", "-c", "ip -4 route show default | cut -d' ' -f3")
		if err != nil {
			return err
		}
		for _, argv := range [][]string{
			{"ip", "netns", "add", space},
			{"ip", "link", "set", "dev", "eth0", "down"},
			{"ip", "link", "set", "dev", "eth0", "netns", space, "name", "mgmt0"},
			{"ip", "-n", space, "link", "set", "dev", "mgmt0", "up"},
			{"ip", "-n", space, "link", "set", "dev", "lo", "up"},
		} {
			if _, err := output(argv...); err != nil {
				return err
			}
		}
		for line := range strings.Lines(addresses) {
			if fields := strings.Fields(line); len(fields) > 3 {
				if _, err := output("ip", "-n", space, "address", "add", fields[3], "dev", "mgmt0", "nodad"); err != nil && fields[2] == "inet" {
					return err
				}
			}
		}
		if _, err := output("ip", "-n", space, "route", "add", "default", "via", strings.TrimSpace(gateway)); err != nil {
			return err
		}
		if _, err := output("ip", "netns", "exec", space, "sh", "-c", "busybox httpd -p 80 -h /var/www/html"); err != nil {
			return err
		}
		if err := os.MkdirAll("/etc/opt/srlinux/devices", 0o755); err != nil {
			return err
		}
		return os.WriteFile("/etc/opt/srlinux/devices/app_ephemeral.mgmt_server.ready_for_config", []byte("loaded initial configuration\n"), 0o644)
	},
}
