package xtables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/c9s-lab/c9s/sidecar/passage"
)

// table is a table as the kernel has it: all chains in one block, jumps as offsets
// in it.
type table struct {
	family *family
	name   string
	// hooks has the bit of each hook that the table has a chain at.
	hooks uint32
	// first is the offset of each chain's first rule, policy of its last.
	first, policy [passage.Hooks]uint32
	entries       []entry
}

// entry is one rule, with the offset that it had when it was read. An added one had
// none; one that is gone is no longer written.
type entry struct {
	data        []byte
	was         uint32
	added, gone bool
	// top is the hook whose chain begins here now, of an added entry.
	top passage.Hook
}

var errMalformed = errors.New("the kernel's table is malformed")

// parse cuts a block into its entries.
func (t *table) parse(block []byte) error {
	for at := 0; at < len(block); {
		f := t.family
		if len(block)-at < f.size {
			return errMalformed
		}
		size := int(binary.NativeEndian.Uint16(block[at+f.targetOffset+2:]))
		target := int(binary.NativeEndian.Uint16(block[at+f.targetOffset:]))
		if size < f.size+partHeader || size > len(block)-at || target < f.size || target+partHeader > size {
			return errMalformed
		}
		t.entries = append(t.entries, entry{data: bytes.Clone(block[at : at+size]), was: uint32(at)})
		at += size
	}
	return nil
}

// verdict is where the bytes of an entry's standard verdict are, nil for an entry
// with another target.
func (f *family) verdict(e []byte) []byte {
	target := e[binary.NativeEndian.Uint16(e[f.targetOffset:]):]
	if len(target) < partHeader+4 || target[2] != 0 {
		return nil
	}
	return target[partHeader : partHeader+4]
}

func verdictOf(v []byte) int32 { return int32(binary.NativeEndian.Uint32(v)) }

// bare is an entry without what the kernel counts and notes in it.
func (f *family) bare(e []byte) []byte {
	out := bytes.Clone(e)
	clear(out[f.targetOffset-4 : f.targetOffset])    // nfcache
	clear(out[f.targetOffset+4 : f.counters])        // comefrom
	clear(out[f.counters : f.counters+countersSize]) // counters
	return out
}

// admit puts the rules at the top of each chain that holds something back, once,
// and tells whether the table is another one then.
func (t *table) admit(rules func(passage.Hook) []passage.Rule) bool {
	changed := false
	for hook := range passage.Hooks {
		if t.hooks&(1<<hook) == 0 {
			continue
		}
		var want [][]byte
		for _, r := range rules(hook) {
			if e := t.family.entry(r); e != nil {
				want = append(want, e)
			}
		}
		changed = t.admitAt(hook, want) || changed
	}
	return changed
}

func (t *table) admitAt(hook passage.Hook, want [][]byte) bool {
	begin, end := t.index(t.first[hook]), t.index(t.policy[hook])
	if begin < 0 || end < begin || len(want) == 0 {
		return false
	}
	chain := t.entries[begin:end]
	if policy := t.family.verdict(t.entries[end].data); len(chain) == 0 && policy != nil && verdictOf(policy) == verdictAccept {
		return false
	}
	isOurs := func(e entry) bool {
		bare := t.family.bare(e.data)
		return slices.ContainsFunc(want, func(w []byte) bool { return bytes.Equal(bare, w) })
	}
	ours, top := 0, true
	for i, e := range chain {
		if isOurs(e) {
			top = top && i == ours && ours < len(want) && bytes.Equal(t.family.bare(e.data), want[ours])
			ours++
		}
	}
	if top && ours == len(want) {
		return false
	}
	for i := range chain {
		chain[i].gone = isOurs(chain[i])
	}
	added := make([]entry, len(want))
	for i, w := range want {
		added[i] = entry{data: w, added: true, top: passage.Hooks}
	}
	added[0].top = hook
	t.entries = slices.Insert(t.entries, begin, added...)
	return true
}

// policies are the verdicts of the chains' last rules.
func (t *table) policies() []int32 {
	var out []int32
	for hook := range passage.Hooks {
		if i := t.index(t.policy[hook]); t.hooks&(1<<hook) != 0 && i >= 0 {
			if v := t.family.verdict(t.entries[i].data); v != nil {
				out = append(out, verdictOf(v))
			}
		}
	}
	return out
}

// index finds the entry that was at an offset, -1 for none.
func (t *table) index(was uint32) int {
	return slices.IndexFunc(t.entries, func(e entry) bool { return !e.added && e.was == was })
}

// layout puts the entries one after the other again, and has jumps and hooks lead
// where they led. It returns the block and, for each entry in it, its place among
// those that were read, -1 for an added one.
func (t *table) layout() (block []byte, origin []int, err error) {
	now, tops := map[uint32]uint32{}, map[passage.Hook]uint32{}
	at, n := uint32(0), 0
	for i := range t.entries {
		e := &t.entries[i]
		switch {
		case e.added:
			if e.top < passage.Hooks {
				tops[e.top] = at
			}
			origin = append(origin, -1)
		case e.gone: // what led here leads to what came next
			now[e.was] = at
			n++
			continue
		default:
			now[e.was] = at
			origin = append(origin, n)
			n++
		}
		at += uint32(len(e.data))
	}
	for hook := range passage.Hooks {
		if t.hooks&(1<<hook) == 0 {
			continue
		}
		t.first[hook] = now[t.first[hook]]
		if top, ok := tops[hook]; ok {
			t.first[hook] = top
		}
		t.policy[hook] = now[t.policy[hook]]
	}
	for _, e := range t.entries {
		if e.gone {
			continue
		}
		data := bytes.Clone(e.data)
		if v := t.family.verdict(data); v != nil && verdictOf(v) >= 0 {
			to, ok := now[binary.NativeEndian.Uint32(v)]
			if !ok {
				return nil, nil, errMalformed
			}
			binary.NativeEndian.PutUint32(v, to)
		}
		block = append(block, data...)
	}
	return block, origin, nil
}
