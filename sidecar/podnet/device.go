package podnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// host is what the Pod's containers share besides the network: it is set when
// links.json says something new, and not after a restart of the sidecar, since
// a device may have changed it by its own configuration.
type host struct {
	Hostname string            `json:"hostname"`
	Sysctls  map[string]string `json:"sysctls"`
}

func (h *host) load(file string) {
	if data, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(data, h)
	}
}

// forwarding is what a container of Docker's has and router images count on: the
// engine switches it on for the machine, from where namespaces inherit it. Workers
// of Kubernetes need not have it on.
const forwarding = "net.ipv4.ip_forward"

// sysctlsOf are the Pod's settings: the topology's over what Docker would give.
func sysctlsOf(doc *contract.Links) map[string]string {
	out := map[string]string{forwarding: "1"}
	maps.Copy(out, doc.Sysctls)
	return out
}

// apply sets the hostname and the sysctls that are new. Forwarding comes first,
// since changing it sets others back (ip-sysctl.rst).
func (h *host) apply(doc *contract.Links, device *nspace.Namespace, file string) error {
	want := sysctlsOf(doc)
	if h.Hostname == doc.Hostname && maps.Equal(h.Sysctls, want) {
		return nil
	}
	var errs []error
	if doc.Hostname != "" && doc.Hostname != h.Hostname {
		if err := unix.Sethostname([]byte(doc.Hostname)); err != nil {
			errs = append(errs, fmt.Errorf("set the hostname %s: %w", doc.Hostname, err))
		}
	}
	names := slices.Sorted(maps.Keys(want))
	if i := slices.Index(names, forwarding); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, forwarding)
	}
	for _, name := range names {
		if old, ok := h.Sysctls[name]; !ok || old != want[name] {
			errs = append(errs, device.Do(func() error { return setSysctl(name, want[name]) }))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	h.Hostname, h.Sysctls = doc.Hostname, want
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return link.WriteFile(file, data)
}

// namespaced are the settings that belong to the Pod's namespaces. No other is
// ever written: it would be the worker's.
var namespaced = []string{"net/", "kernel/shm", "kernel/msg", "kernel/sem", "kernel/domainname", "fs/mqueue/"}

// setSysctl takes the dotted or the slashed form; in either the other separator
// stands for itself (sysctl.d(5)).
func setSysctl(name, value string) error {
	path := name
	if dot := strings.IndexAny(name, "./"); dot >= 0 && name[dot] == '.' {
		path = strings.Map(func(r rune) rune {
			switch r {
			case '.':
				return '/'
			case '/':
				return '.'
			}
			return r
		}, name)
	}
	parts := strings.Split(path, "/")
	for _, p := range parts {
		if p == "" || p == "." || p == ".." {
			return fmt.Errorf("sysctl %q is not a name", name)
		}
	}
	for _, prefix := range namespaced {
		if strings.HasPrefix(path, prefix) {
			return link.SetSysctl(value, parts...)
		}
	}
	return fmt.Errorf("sysctl %s is not of the Pod's namespaces", name)
}
