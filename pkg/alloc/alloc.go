// Package alloc takes values out of pools by claims, offline and repeatably.
//
// A claim's first choice is a hash of its owner, so what an owner gets depends on
// the other owners only where two first choices are the same. Values of an
// earlier allocation go to the same owners again, whatever is added or removed.
package alloc

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// Claim asks for one value of a pool.
type Claim[V comparable] struct {
	// Owner is unique in the pool ("r1", "r1:eth1 r2:eth1").
	Owner string
	// Want is a value that the user wrote; Has reports whether there is one.
	Want V
	Has  bool
	// Prefer is a first choice in place of the hash, given if it is free;
	// HasPrefer reports whether there is one.
	Prefer    V
	HasPrefer bool
	// Within, if it is not 0, allows the first so many values of the pool only, unless
	// the owner had another one before.
	Within uint64
	Pos    diag.Pos
}

// Pool is a numbered range of values.
type Pool[V comparable] struct {
	// Name is for messages: "management IPv4 addresses".
	Name string
	// Size is how many values there are, at least 1.
	Size uint64
	// At returns value number i, 0 <= i < Size; Index is its inverse, with ok
	// false for a value outside the pool.
	At    func(i uint64) V
	Index func(v V) (i uint64, ok bool)
	// Larger explains how to enlarge the pool; "" if that is impossible.
	Larger string
	// Reserved values are given to nobody who did not write them.
	Reserved []V
	// Order is how a value is chosen among the free ones.
	Order Order
	// Reclaim is what happens to values whose owner no longer exists.
	Reclaim Reclaim

	parts string // the bounds of a joined pool
}

// Order is how a pool chooses among its free values.
type Order string

const (
	// ByHash begins at a hash of the owner, so that an owner's value hardly depends on the others.
	ByHash Order = ""
	// Lowest takes the lowest free value, in the order of the claims.
	Lowest Order = "lowest"
)

// Reclaim is what happens to the values of owners that no longer exist.
type Reclaim string

const (
	// ReclaimDefault leaves it to the caller of Allocate.
	ReclaimDefault Reclaim = ""
	// Retain keeps a value for its owner as long as other values are free.
	Retain Reclaim = "retain"
	// Recycle frees a value at once.
	Recycle Reclaim = "recycle"
)

// Result of Allocate.
type Result[V comparable] struct {
	// Values by owner.
	Values map[string]V
	// Released are earlier values whose owner no longer exists and which nobody took.
	Released map[string]V
}

// Allocate serves claims in this order: values that users wrote, values that
// owners had before (previous), and then first choices by hash in the order of
// the claims. With retain, which the pool's Reclaim overrides, values whose owner no longer
// exists stay taken for as long as others are free. Duplicates, values outside the pool and
// exhaustion are errors in diags; a claim that loses an earlier value is a warning.
func Allocate[V comparable](p Pool[V], claims []Claim[V], previous map[string]V, retain bool, diags *diag.List) Result[V] {
	if p.Reclaim != ReclaimDefault {
		retain = p.Reclaim == Retain
	}
	r := Result[V]{Values: make(map[string]V, len(claims)), Released: map[string]V{}}
	taken := make(map[uint64]string, len(claims))
	wanted := make(map[V]Claim[V])
	for _, v := range p.Reserved {
		if i, ok := p.Index(v); ok {
			taken[i] = reserved
		}
	}
	for _, c := range claims {
		if c.Has {
			claimWritten(p, c, taken, wanted, r.Values, diags)
		}
	}
	owners := make(map[string]bool, len(claims))
	var lost []loss[V]
	for _, c := range claims {
		owners[c.Owner] = true
		if c.Has {
			continue
		}
		if v, had := previous[c.Owner]; had {
			switch i, ok := p.Index(v); {
			case !ok:
				lost = append(lost, loss[V]{c, v, ""})
			case taken[i] == "":
				taken[i], r.Values[c.Owner] = c.Owner, v
			default:
				lost = append(lost, loss[V]{c, v, taken[i]})
			}
		}
	}
	held := holdBack(p, previous, owners, taken, retain, r.Released)
	for _, c := range claims {
		if _, done := r.Values[c.Owner]; done || c.Has {
			continue
		}
		i, ok := free(p, c, taken)
		if !ok && len(held) > 0 {
			delete(taken, held[0].index)
			delete(r.Released, held[0].owner)
			held = held[1:]
			i, ok = free(p, c, taken)
		}
		if !ok {
			hint := "use fewer nodes or links"
			if p.Larger != "" {
				hint = p.Larger + ", or " + hint
			}
			diags.Errorf(CodeExhausted, c.Pos, hint,
				"the pool of %s has room for %d, and the lab needs more", p.Name, p.Available())
			return r
		}
		taken[i], r.Values[c.Owner] = c.Owner, p.At(i)
	}
	warnLost(p, lost, r.Values, diags)
	return r
}

// loss is a claim that cannot have its earlier value: taker has it, or, if taker is "", the
// pool does not have it any more.
type loss[V comparable] struct {
	claim Claim[V]
	value V
	taker string
}

// warnLost reports the claims that lost their values; a smaller pool loses many at once, which
// is one warning.
func warnLost[V comparable](p Pool[V], lost []loss[V], values map[string]V, diags *diag.List) {
	left := 0
	for _, l := range lost {
		if l.taker == "" {
			left++
		}
	}
	told := false
	for _, l := range lost {
		now, ok := values[l.claim.Owner]
		switch {
		case !ok: // the pool is exhausted, which is an error
			continue
		case l.taker == reserved:
			diags.Warnf(CodeTakenOver, l.claim.Pos, "change what reserves it to keep it",
				"%s had %v of the %s, which is reserved now; it gets %v", l.claim.Owner, l.value, p.Name, now)
		case l.taker != "":
			diags.Warnf(CodeTakenOver, l.claim.Pos, "request another value, or write both",
				"%s had %v of the %s, which %s has now; it gets %v", l.claim.Owner, l.value, p.Name, l.taker, now)
		case !told:
			told = true
			more := ""
			if left > 1 {
				more = " (and so do " + diag.Count(left-1, "other") + ")"
			}
			diags.Warnf(CodeLeftPool, l.claim.Pos, "restore the pool, or write the value to choose it",
				"%s had %v, which is no longer one of the %s; it gets %v%s", l.claim.Owner, l.value, p.Name, now, more)
		}
	}
}

// reserved is the owner of reserved values.
const reserved = "(reserved)"

// Available is how many values of the pool are not reserved.
func (p Pool[V]) Available() uint64 {
	all := map[uint64]bool{}
	for _, v := range p.Reserved {
		if i, ok := p.Index(v); ok && i < p.Size {
			all[i] = true
		}
	}
	return p.Size - uint64(len(all))
}

// claimWritten serves a claim with a value that the user wrote.
func claimWritten[V comparable](p Pool[V], c Claim[V], taken map[uint64]string, wanted map[V]Claim[V], values map[string]V, diags *diag.List) {
	if other, dup := wanted[c.Want]; dup {
		diags.Errorf(CodeDuplicate, c.Pos, "give each its own value, or omit one to have it allocated",
			"%s and %s both request %v (the other one is at %s)", other.Owner, c.Owner, c.Want, other.Pos)
		return
	}
	wanted[c.Want] = c
	i, ok := p.Index(c.Want)
	if !ok {
		diags.Errorf(CodeOutside, c.Pos, "choose a value between the first and the last of the pool, or change the pool",
			"%v is not one of the %s (%s)", c.Want, p.Name, p.bounds())
		return
	}
	taken[i] = c.Owner
	values[c.Owner] = c.Want
}

// bounds are the first and the last value, of each part of a joined pool.
func (p Pool[V]) bounds() string {
	if p.parts != "" {
		return p.parts
	}
	return fmt.Sprintf("%v to %v", p.At(0), p.At(p.Size-1))
}

type heldValue struct {
	owner string
	index uint64
}

// holdBack keeps the values of owners that are gone, if retain says so.
func holdBack[V comparable](p Pool[V], previous map[string]V, owners map[string]bool, taken map[uint64]string, retain bool, released map[string]V) []heldValue {
	if !retain {
		return nil
	}
	var held []heldValue
	for owner, v := range previous {
		i, ok := p.Index(v)
		if owners[owner] || !ok || taken[i] != "" {
			continue
		}
		held = append(held, heldValue{owner, i})
	}
	slices.SortFunc(held, func(a, b heldValue) int {
		if a.owner < b.owner {
			return -1
		}
		return 1
	})
	for _, h := range held {
		taken[h.index] = fmt.Sprintf("(retained for %s)", h.owner)
		released[h.owner] = p.At(h.index)
	}
	return held
}

// free finds the first free value from the claim's first choice on.
func free[V comparable](p Pool[V], c Claim[V], taken map[uint64]string) (uint64, bool) {
	sum := sha256.Sum256([]byte(p.Name + "\x00" + c.Owner))
	size := p.Size
	if c.Within > 0 {
		size = min(size, c.Within)
	}
	first := binary.BigEndian.Uint64(sum[:8]) % size
	if p.Order == Lowest {
		first = 0
	}
	if c.HasPrefer {
		if i, ok := p.Index(c.Prefer); ok && i < size {
			first = i
		}
	}
	for n := range size {
		i := (first + n) % size
		if _, used := taken[i]; !used {
			return i, true
		}
	}
	return 0, false
}
