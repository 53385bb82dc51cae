package xtables

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/passage"
)

var ours = passage.Passage{Underlay: "c9s0", Leg: "c9sr0", Mesh: "c9sm", Mark: 0xc95, UDP: []uint16{14800}, TCP: 14802}

// plainRule is a rule of a device, with counters.
func plainRule(f *family, verdict int32) []byte {
	e := f.entry(passage.Rule{In: "eth9"})
	binary.NativeEndian.PutUint32(f.verdict(e), uint32(verdict))
	binary.NativeEndian.PutUint64(e[f.counters:], 7)
	return e
}

// errorRule is the head of a device's chain, and the end of a table.
func errorRule(f *family) []byte {
	e := f.entry(passage.Rule{})
	copy(e[int(binary.NativeEndian.Uint16(e[f.targetOffset:]))+2:], "ERROR")
	return e
}

// deviceTable is a filter table: INPUT jumps to a chain of the device and drops,
// FORWARD accepts, OUTPUT drops; the device's chain accepts and returns.
func deviceTable(t *testing.T, f *family) *table {
	t.Helper()
	size := uint32(len(plainRule(f, 0)))
	at := func(n uint32) uint32 { return n * size }
	block := slices.Concat(
		plainRule(f, int32(at(5))), plainRule(f, verdictDrop), // INPUT
		plainRule(f, verdictAccept), // FORWARD
		plainRule(f, verdictDrop),   // OUTPUT
		errorRule(f), plainRule(f, verdictAccept), plainRule(f, -5),
		errorRule(f))
	tab := &table{family: f, name: "filter", hooks: 1<<passage.Input | 1<<passage.Forward | 1<<passage.Output}
	tab.first = [passage.Hooks]uint32{passage.Forward: at(2), passage.Output: at(3)}
	tab.policy = [passage.Hooks]uint32{passage.Input: at(1), passage.Forward: at(2), passage.Output: at(3)}
	if err := tab.parse(block); err != nil {
		t.Fatal(err)
	}
	return tab
}

// again is the table as the kernel would have it after a write.
func again(t *testing.T, tab *table) *table {
	t.Helper()
	block, _, err := tab.layout()
	if err != nil {
		t.Fatal(err)
	}
	next := &table{family: tab.family, name: tab.name, hooks: tab.hooks, first: tab.first, policy: tab.policy}
	if err := next.parse(block); err != nil {
		t.Fatal(err)
	}
	return next
}

// chain writes what a packet meets at a hook: "our" rules, the device's with their
// verdicts, and after an arrow what a jump leads to.
func chain(tab *table, hook passage.Hook) string {
	f := tab.family
	var out []string
	for i := tab.index(tab.first[hook]); ; i++ {
		e := tab.entries[i]
		v := verdictOf(f.verdict(e.data))
		switch {
		case slices.ContainsFunc(ours.Rules(hook), func(r passage.Rule) bool { return bytes.Equal(f.bare(e.data), f.entry(r)) }):
			out = append(out, "our")
		case v >= 0:
			to := tab.entries[tab.index(uint32(v))]
			out = append(out, fmt.Sprintf("->%d", verdictOf(f.verdict(to.data))))
		default:
			out = append(out, fmt.Sprint(v))
		}
		if e.was == tab.policy[hook] {
			return strings.Join(slices.Compact(out), " ")
		}
	}
}

func TestAdmit(t *testing.T) {
	for name, f := range map[string]*family{"IPv4": ipv4, "IPv6": ipv6} {
		tab := deviceTable(t, f)
		if !tab.admit(ours.Rules) {
			t.Fatalf("%s: a table that drops needs no rules", name)
		}
		tab = again(t, tab)
		for hook, want := range map[passage.Hook]string{passage.Input: "our ->-2 -1", passage.Forward: "-2", passage.Output: "our -1"} {
			if got := chain(tab, hook); got != want {
				t.Errorf("%s, hook %d: %q, want %q", name, hook, got, want)
			}
		}
		if tab.admit(ours.Rules) {
			t.Errorf("%s: a table that has the rules is changed again", name)
		}
		// The kernel's own notes in our entries change nothing.
		for _, e := range tab.entries {
			binary.NativeEndian.PutUint64(e.data[f.counters:], 99)
			e.data[f.targetOffset+4] = 3
		}
		if tab.admit(ours.Rules) {
			t.Errorf("%s: counters make our rules foreign", name)
		}
	}
}

// A device puts its own rules first: one that drops, and one without a target, which
// leads to the rule after it.
func TestAdmitAgain(t *testing.T) {
	f := ipv4
	tab := deviceTable(t, f)
	tab.admit(ours.Rules)
	tab = again(t, tab)
	size := uint32(len(plainRule(f, 0)))
	block, _, err := tab.layout()
	if err != nil {
		t.Fatal(err)
	}
	next := &table{family: f, name: "filter", hooks: tab.hooks}
	for _, e := range tab.entries {
		if v := f.verdict(e.data); v != nil && verdictOf(v) >= 0 {
			binary.NativeEndian.PutUint32(block[e.was+uint32(len(e.data)-8):], uint32(verdictOf(v))+2*size)
		}
	}
	for hook := range passage.Hooks {
		if hook != passage.Input {
			next.first[hook] = tab.first[hook] + 2*size
		}
		next.policy[hook] = tab.policy[hook] + 2*size
	}
	if err := next.parse(slices.Concat(plainRule(f, verdictDrop), plainRule(f, int32(2*size)), block)); err != nil {
		t.Fatal(err)
	}
	if got := chain(next, passage.Input); got != "-1 ->-2 our ->-2 -1" {
		t.Fatalf("the device's chain is %q", got)
	}
	if !next.admit(ours.Rules) {
		t.Fatal("rules behind others are good enough")
	}
	count := len(next.entries)
	next = again(t, next)
	// The rule without a target led to ours, and leads to the device's jump.
	own := len(ours.Rules(passage.Input)) - 1 // IPv4 has none for ICMPv6
	jump := next.entries[next.index(next.first[passage.Input])+own+1]
	to := next.entries[next.index(uint32(verdictOf(f.verdict(jump.data))))]
	if got := chain(next, passage.Input); got[:6] != "our -1" || verdictOf(f.verdict(to.data)) < 0 {
		t.Errorf("after that: %q, the rule without a target leads to verdict %d", got, verdictOf(f.verdict(to.data)))
	}
	if len(next.entries) >= count {
		t.Errorf("%d rules, %d with those that are gone: none are", len(next.entries), count)
	}
	if next.admit(ours.Rules) {
		t.Error("it does not come to rest")
	}
}

func TestEntry(t *testing.T) {
	if e := ipv4.entry(passage.Rule{Protocol: unix.IPPROTO_ICMPV6}); e != nil {
		t.Error("IPv4 has a rule for ICMPv6")
	}
	for name, f := range map[string]*family{"IPv4": ipv4, "IPv6": ipv6} {
		for _, r := range append(ours.Rules(passage.Input), ours.Rules(passage.Output)...) {
			e := f.entry(r)
			if e == nil {
				continue
			}
			tab := &table{family: f}
			if len(e)%8 != 0 || tab.parse(e) != nil || len(tab.entries) != 1 || verdictOf(f.verdict(e)) != verdictAccept {
				t.Errorf("%s, %+v: %d bytes, %d entries", name, r, len(e), len(tab.entries))
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(errorRule(ipv4))
	f.Add(append(plainRule(ipv4, 0), errorRule(ipv4)...))
	f.Fuzz(func(t *testing.T, block []byte) {
		tab := &table{family: ipv4, hooks: 1 << passage.Input}
		if tab.parse(block) != nil || len(tab.entries) == 0 {
			return
		}
		tab.policy[passage.Input] = tab.entries[len(tab.entries)-1].was
		if tab.admit(ours.Rules) {
			if out, origin, err := tab.layout(); err == nil && (len(origin) < len(ours.Rules(passage.Input))-1 || len(out) == 0) {
				t.Errorf("%d entries came out", len(origin))
			}
		}
	})
}
