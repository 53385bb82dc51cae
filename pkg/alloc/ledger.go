package alloc

import (
	"net/netip"
	"strconv"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// Ledger holds the values of all pools of a lab, as text, by pool and owner: those of an
// earlier run and those that Take adds.
type Ledger struct {
	// Before are the earlier values, ReleasedBefore those that were retained then.
	Before, ReleasedBefore map[string]map[string]string
	// Recycle frees the values of owners that no longer exist, unless their pool retains them.
	Recycle bool

	// Pools and Released are the values of this run. Sizes are the numbers of values that each
	// pool can give.
	Pools, Released map[string]map[string]string
	Sizes           map[string]uint64
}

// Form is how the values of a pool are written.
type Form[V any] struct {
	Parse func(string) (V, bool)
	Text  func(V) string
}

// The forms of values.
var (
	AddressForm = Form[netip.Addr]{func(s string) (netip.Addr, bool) { a, err := netip.ParseAddr(s); return a, err == nil }, netip.Addr.String}
	PrefixForm  = Form[netip.Prefix]{func(s string) (netip.Prefix, bool) { p, err := netip.ParsePrefix(s); return p, err == nil }, netip.Prefix.String}
	NumberForm  = Form[uint32]{func(s string) (uint32, bool) { v, err := strconv.ParseUint(s, 10, 32); return uint32(v), err == nil }, func(v uint32) string { return strconv.FormatUint(uint64(v), 10) }}
	TextForm    = Form[string]{func(s string) (string, bool) { return s, s != "" }, func(s string) string { return s }}
)

// Take allocates from the pool called name and enters the values.
func Take[V comparable](l *Ledger, name string, p Pool[V], claims []Claim[V], form Form[V], diags *diag.List) map[string]V {
	previous := map[string]V{}
	for _, m := range []map[string]string{l.ReleasedBefore[name], l.Before[name]} {
		for owner, value := range m {
			if v, ok := form.Parse(value); ok {
				previous[owner] = v
			}
		}
	}
	r := Allocate(p, claims, previous, !l.Recycle, diags)
	enter(&l.Pools, name, r.Values, form)
	enter(&l.Released, name, r.Released, form)
	if l.Sizes == nil {
		l.Sizes = map[string]uint64{}
	}
	l.Sizes[name] = p.Available()
	return r.Values
}

// enter writes values as text; a pool without any has no entry.
func enter[V comparable](to *map[string]map[string]string, name string, values map[string]V, form Form[V]) {
	if len(values) == 0 {
		return
	}
	if *to == nil {
		*to = map[string]map[string]string{}
	}
	out := make(map[string]string, len(values))
	for owner, v := range values {
		out[owner] = form.Text(v)
	}
	(*to)[name] = out
}
