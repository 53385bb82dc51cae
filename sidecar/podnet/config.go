// Package podnet is the long-running part of the sidecar. From its own network namespace it
// makes the Pod's namespace look like that of a containerlab node. One loop compares the desired
// state in links.json and the directory with the kernel's.
package podnet

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// Config says where the sidecar is. Zero paths are a Pod's.
type Config struct {
	// PodIPs are the Pod's addresses, the primary first; at most one a family is
	// used.
	PodIPs    []netip.Addr
	PodName   string
	Namespace string
	// NodeName is the worker's.
	NodeName string
	// Version is the program's.
	Version string

	LinksDir     string
	DirectoryDir string
	PlanDir      string
	StateDir     string
	KeyFile      string
	HostsFile    string
	ResolvConf   string
	// HostNetNS is the worker's network namespace.
	HostNetNS string

	// Device is the Pod's network namespace, which is the device's. The sidecar
	// itself runs in another one.
	Device *nspace.Namespace `json:"-"`

	// Near is the worker's folder where sidecars find each other, nil for none.
	Near *os.File `json:"-"`

	Log *slog.Logger `json:"-"`
	// NewFabric makes the fabric wire; tests may have another.
	NewFabric FabricMaker `json:"-"`
}

// FromEnv reads the environment that render gives the container: POD_IPS,
// POD_NAME, POD_NAMESPACE, NODE_NAME.
func FromEnv() (Config, error) {
	c := Config{PodName: os.Getenv("POD_NAME"), Namespace: os.Getenv("POD_NAMESPACE"), NodeName: os.Getenv("NODE_NAME")}
	for _, text := range strings.Split(os.Getenv("POD_IPS"), ",") {
		if text == "" {
			continue
		}
		a, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return c, fmt.Errorf("address of the Pod in POD_IPS: %w", err)
		}
		if !slices.Contains(c.PodIPs, a.Unmap()) {
			c.PodIPs = append(c.PodIPs, a.Unmap())
		}
	}
	if len(c.PodIPs) == 0 {
		return c, errors.New("POD_IPS is empty: the sidecar runs in a Pod only")
	}
	return c, nil
}

func (c *Config) defaults() error {
	for _, d := range []struct {
		field *string
		value string
	}{
		{&c.LinksDir, contract.LinksDir},
		{&c.DirectoryDir, contract.DirectoryDir},
		{&c.PlanDir, contract.PlanDir},
		{&c.StateDir, contract.StateDir},
		{&c.KeyFile, contract.WireKeyFile},
		{&c.HostsFile, "/etc/hosts"},
		{&c.ResolvConf, "/etc/resolv.conf"},
		{&c.HostNetNS, contract.HostProc + "/1/ns/net"},
	} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.NewFabric == nil {
		c.NewFabric = newFabric
	}
	if len(c.PodIPs) == 0 {
		return errors.New("no address of the Pod is given")
	}
	if c.Device == nil {
		return errors.New("the device's network namespace is not given")
	}
	c.PodIPs = onePerFamily(c.PodIPs)
	return nil
}

func onePerFamily(all []netip.Addr) []netip.Addr {
	out := all[:1:1]
	for _, a := range all[1:] {
		if a.Is4() != all[0].Is4() {
			return append(out, a)
		}
	}
	return out
}

// state is a file of the sidecar's own that lives as long as the Pod.
func (c *Config) state(name string) string { return filepath.Join(StateFolder(c.StateDir), name) }

// StateFolder is the sidecar's own folder, which no device sees.
func StateFolder(stateDir string) string { return filepath.Join(stateDir, "wire") }
