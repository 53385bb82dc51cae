package lab

// AllocationsVersion names the shape of Allocations in JSON.
const AllocationsVersion = "c9s.dev/allocations/v1"

// Allocations are the values that were taken from pools, by pool and owner. They
// are written with the output under a fixed name and read back by the next
// compile, so that an edit never changes what another owner has.
type Allocations struct {
	Version string `json:"version"`
	// Pools maps a pool ("mgmt-ipv4", "mgmt-ipv6", "index", "wire", "mac") to
	// owner -> value in text form.
	Pools map[string]map[string]string `json:"pools"`
	// Released holds values whose owner is gone and which are kept back.
	Released map[string]map[string]string `json:"released,omitempty"`
}
