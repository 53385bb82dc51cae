package lab

import (
	"encoding/json"
	"fmt"
	"maps"
)

// AllocationsVersion is the version of Allocations in JSON.
const AllocationsVersion = "c9s.dev/allocations/v1"

// Allocations holds the values that were allocated from pools, by pool and owner.
// They are written with the output under a fixed name, and the next compile reads
// them back, so that an edit never changes another owner's values.
type Allocations struct {
	Version string `json:"version"`
	// Pools maps a pool ("mgmt-ipv4", "mgmt-ipv6", "index", "wire", "mac", "port", "segment/NAME") to
	// owner -> value in text form.
	Pools map[string]map[string]string `json:"pools"`
	// Released holds retained values whose owner no longer exists.
	Released map[string]map[string]string `json:"released,omitempty"`
}

// JoinAllocations merges the parts of the allocations ConfigMaps, in any order.
func JoinAllocations(parts ...[]byte) (Allocations, error) {
	var out Allocations
	for _, data := range parts {
		var part Allocations
		if err := json.Unmarshal(data, &part); err != nil {
			return Allocations{}, fmt.Errorf("reading allocations: %w", err)
		}
		if part.Version != AllocationsVersion {
			return Allocations{}, fmt.Errorf("reading allocations: version %q, but this c9s reads %q", part.Version, AllocationsVersion)
		}
		out.Version = part.Version
		mergePools(&out.Pools, part.Pools)
		mergePools(&out.Released, part.Released)
	}
	return out, nil
}

func mergePools(into *map[string]map[string]string, from map[string]map[string]string) {
	for pool, claims := range from {
		if *into == nil {
			*into = map[string]map[string]string{}
		}
		if (*into)[pool] == nil {
			(*into)[pool] = map[string]string{}
		}
		maps.Copy((*into)[pool], claims)
	}
}

// Adopted are addresses and ids that a lab has elsewhere, for the owners that have none
// here. Values that do not fit are ignored.
type Adopted struct {
	// IPv4 and IPv6 are management addresses by node, or by the name that Kubernetes has
	// for it.
	IPv4, IPv6 map[string]string
	// Wires are wire ids by both ends ("node:interface") in either order.
	Wires map[[2]string]uint32
}

// NewAdopted returns an empty Adopted.
func NewAdopted() Adopted {
	return Adopted{IPv4: map[string]string{}, IPv6: map[string]string{}, Wires: map[[2]string]uint32{}}
}

// Empty reports whether there is nothing to adopt.
func (a Adopted) Empty() bool { return len(a.IPv4)+len(a.IPv6)+len(a.Wires) == 0 }
