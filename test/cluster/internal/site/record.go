package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
)

// maxClusters is bounded by the second octet of Pod addresses, 10.244 to 10.253.
const maxClusters = 10

// IndexLock is held while a cluster is given its index.
const IndexLock = RunBase + "/index.lock"

// ErrNone is returned by Load when there is no such cluster.
var ErrNone = errors.New("no such cluster")

// Load reads the record of a cluster.
func Load(name string) (Cluster, error) {
	text, err := os.ReadFile(filepath.Join(StateBase, name, "cluster.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Cluster{}, fmt.Errorf("cluster %s: %w: start it with `c9s-cluster up --name %s`", name, ErrNone, name)
	}
	if err != nil {
		return Cluster{}, err
	}
	var c Cluster
	if err := json.Unmarshal(text, &c); err != nil {
		return Cluster{}, fmt.Errorf("reading the record of cluster %s: %w", name, err)
	}
	return c, nil
}

// List reads the records of all clusters.
func List() ([]Cluster, error) {
	entries, err := os.ReadDir(StateBase)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Cluster
	for _, entry := range entries {
		if c, err := Load(entry.Name()); err == nil {
			all = append(all, c)
		}
	}
	return all, nil
}

// Create gives the cluster the first index whose addresses nothing else on this
// machine uses, and keeps its record.
func Create(ctx context.Context, c Cluster) (Cluster, error) {
	unlock, err := host.Lock(ctx, IndexLock)
	if err != nil {
		return c, err
	}
	defer unlock()
	all, err := List()
	if err != nil {
		return c, err
	}
	taken := map[int]bool{}
	for _, other := range all {
		taken[other.Index] = true
	}
	used, err := usedPrefixes()
	if err != nil {
		return c, err
	}
	for c.Index = 0; c.Index < maxClusters; c.Index++ {
		if !taken[c.Index] && !c.overlaps(used) {
			return c, c.Save()
		}
	}
	return c, fmt.Errorf("no addresses left for a cluster: there are %d clusters, and the host uses the rest of 10.99.0.0/16 and 10.244.0.0-10.253.0.0/16", len(all))
}

// Save keeps the record of a cluster.
func (c Cluster) Save() error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return host.WriteFile(filepath.Join(c.State(), "cluster.json"), text, 0o644)
}

func (c Cluster) overlaps(used []netip.Prefix) bool {
	for _, mine := range append(c.UnderlaySubnets(), c.PodSubnets()...) {
		for _, theirs := range used {
			if mine.Overlaps(theirs) {
				return true
			}
		}
	}
	return false
}

// usedPrefixes are the destinations of the host's routes, but the default.
func usedPrefixes() ([]netip.Prefix, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("reading the host's routes: %w", err)
	}
	var used []netip.Prefix
	for _, route := range routes {
		if route.Dst == nil {
			continue
		}
		if p, err := netip.ParsePrefix(route.Dst.String()); err == nil && p.Bits() > 0 {
			used = append(used, p)
		}
	}
	return used, nil
}

// BootID changes with every boot of the machine.
func BootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
