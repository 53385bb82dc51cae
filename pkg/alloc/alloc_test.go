package alloc

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/google/go-cmp/cmp"
)

func names(n int) []Claim[uint32] {
	out := make([]Claim[uint32], n)
	for i := range out {
		out[i].Owner = fmt.Sprintf("node%d", i)
	}
	return out
}

func allocate[V comparable](t *testing.T, p Pool[V], claims []Claim[V], previous map[string]V, retain bool) Result[V] {
	t.Helper()
	var diags diag.List
	r := Allocate(p, claims, previous, retain, &diags)
	for _, d := range diags.All() {
		t.Errorf("unexpected: %s", d)
	}
	seen := map[V]string{}
	for owner, v := range r.Values {
		if other, dup := seen[v]; dup {
			t.Errorf("%s and %s both got %v", owner, other, v)
		}
		seen[v] = owner
	}
	return r
}

func TestAppendedClaimChangesNoOther(t *testing.T) {
	pool := Numbers("n", 1, 200)
	before := allocate(t, pool, names(150), nil, false)
	after := allocate(t, pool, names(151), nil, false)
	delete(after.Values, "node150")
	if diff := cmp.Diff(before.Values, after.Values); diff != "" {
		t.Error(diff)
	}
}

func TestEarlierValuesSurviveEveryEdit(t *testing.T) {
	pool := Numbers("n", 1, 300)
	claims := names(200)
	before := allocate(t, pool, claims, nil, false)
	edited := append(names(210)[205:], claims[50:]...) // five new at the front, fifty gone
	after := allocate(t, pool, edited, before.Values, false)
	for _, c := range claims[50:] {
		if after.Values[c.Owner] != before.Values[c.Owner] {
			t.Errorf("%s had %d and got %d", c.Owner, before.Values[c.Owner], after.Values[c.Owner])
		}
	}
}

func TestRetainAndRecycle(t *testing.T) {
	pool := Numbers("n", 1, 3)
	before := allocate(t, pool, names(3), nil, true)
	two := names(3)[1:]
	kept := allocate(t, pool, two, before.Values, true)
	if want := map[string]uint32{"node0": before.Values["node0"]}; !maps.Equal(kept.Released, want) {
		t.Errorf("released %v, want %v", kept.Released, want)
	}
	freed := allocate(t, pool, two, before.Values, false)
	if len(freed.Released) != 0 {
		t.Errorf("released %v though recycling", freed.Released)
	}
	// With nothing else free, a value that is kept back is given after all.
	more := append(two, Claim[uint32]{Owner: "new"})
	got := allocate(t, pool, more, before.Values, true)
	if got.Values["new"] != before.Values["node0"] || len(got.Released) != 0 {
		t.Errorf("new got %d, released %v", got.Values["new"], got.Released)
	}
}

func TestWrittenValuesWinAndFail(t *testing.T) {
	pool := Numbers("numbers", 1, 3)
	at := func(line int) diag.Pos { return diag.Pos{File: "t", Line: line, Column: 1} }
	claims := []Claim[uint32]{
		{Owner: "a", Pos: at(1)},
		{Owner: "b", Want: 2, Has: true, Pos: at(2)},
		{Owner: "c", Want: 2, Has: true, Pos: at(3)},
		{Owner: "d", Want: 9, Has: true, Pos: at(4)},
		{Owner: "e", Pos: at(5)},
		{Owner: "f", Pos: at(6)},
	}
	var diags diag.List
	r := Allocate(pool, claims, map[string]uint32{"a": 2}, false, &diags)
	if r.Values["b"] != 2 || r.Values["a"] == 2 {
		t.Errorf("values %v: b wrote 2", r.Values)
	}
	var got []string
	for _, d := range diags.All() {
		got = append(got, fmt.Sprintf("%d %s", d.Line, d.Code))
	}
	want := []string{"3 duplicate-value", "4 value-outside-pool", "6 pool-exhausted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAddresses(t *testing.T) {
	subnet, gateway := netip.MustParsePrefix("10.0.0.0/29"), netip.MustParseAddr("10.0.0.1")
	pool := Addresses("addresses", subnet, netip.Prefix{}, gateway)
	claims := make([]Claim[netip.Addr], 5)
	for i := range claims {
		claims[i].Owner = fmt.Sprint(i)
	}
	for _, a := range allocate(t, pool, claims, nil, false).Values {
		if !subnet.Contains(a) || a == gateway || a == subnet.Addr() || a.String() == "10.0.0.7" {
			t.Errorf("%s was given out", a)
		}
	}
	within := netip.MustParsePrefix("10.0.0.4/30")
	pool = Addresses("addresses", subnet, within, gateway)
	r := allocate(t, pool, []Claim[netip.Addr]{{Owner: "free"}, {Owner: "static", Want: netip.MustParseAddr("10.0.0.2"), Has: true}}, nil, false)
	if !within.Contains(r.Values["free"]) || r.Values["static"].String() != "10.0.0.2" {
		t.Errorf("values %v: a dynamic address comes from the range, a written one from the subnet", r.Values)
	}
	v6 := Addresses("v6", netip.MustParsePrefix("2001:db8::/64"), netip.Prefix{}, netip.MustParseAddr("2001:db8::1"))
	r = allocate(t, v6, []Claim[netip.Addr]{{Owner: "a", Prefer: netip.MustParseAddr("2001:db8::11"), HasPrefer: true}}, nil, false)
	if r.Values["a"].String() != "2001:db8::11" {
		t.Errorf("the preferred address was free, and %s was given", r.Values["a"])
	}
}

func TestMACs(t *testing.T) {
	pool := MACs()
	for _, i := range []uint64{0, 1, 0x123456, 1<<24 - 1} {
		if got, ok := pool.Index(pool.At(i)); !ok || got != i {
			t.Errorf("Index(At(%#x)) = %#x, %v", i, got, ok)
		}
	}
	if i, ok := pool.Index("02:00:00:00:00:01"); !ok || i < pool.Size {
		t.Errorf("another prefix has index %d, %v: it must not stand in anybody's way", i, ok)
	}
	if _, ok := pool.Index("text"); ok {
		t.Error("text is taken for a MAC address")
	}
}

// TestWithin: some owners can have the first values of a pool only, but keep what they
// had before.
func TestWithin(t *testing.T) {
	claims := names(250)
	for i := range 100 {
		claims[i].Within = 100
	}
	r := allocate(t, Numbers("n", 1, 1000), claims, map[string]uint32{"node7": 900}, false)
	if v := r.Values["node7"]; v != 900 {
		t.Errorf("node7 had 900 and got %d", v)
	}
	for _, c := range claims[:100] {
		if v := r.Values[c.Owner]; c.Owner != "node7" && v > 100 {
			t.Errorf("%s got %d", c.Owner, v)
		}
	}
	var diags diag.List
	Allocate(Numbers("n", 1, 1000), append(claims[:100:100], Claim[uint32]{Owner: "more", Within: 100}), nil, false, &diags)
	if n, _ := diags.Count(); n != 1 {
		t.Errorf("101 claims of 100 values: %v", diags.All())
	}
}

func TestRanges(t *testing.T) {
	pool := Ranges("r", 100, 199, 20)
	if pool.Size != 5 || pool.At(4) != 180 {
		t.Errorf("%d ranges, the last from %d", pool.Size, pool.At(4))
	}
	for v, want := range map[uint32]bool{80: false, 100: true, 110: false, 180: true, 200: false} {
		if i, ok := pool.Index(v); ok != want || ok && pool.At(i) != v {
			t.Errorf("%d is number %d, %v", v, i, ok)
		}
	}
}

// TestLost: a claim that loses its earlier value gets another one, with a warning.
func TestLost(t *testing.T) {
	pool := Numbers("numbers", 1, 9)
	for name, c := range map[string]struct {
		claims   []Claim[uint32]
		previous map[string]uint32
		want     string
	}{
		"taken over by a written value": {
			[]Claim[uint32]{{Owner: "a", Want: 3, Has: true}, {Owner: "b"}}, map[string]uint32{"a": 1, "b": 3},
			"b had 3 of the numbers, which a has now; it gets ",
		},
		"no longer in the pool":    {[]Claim[uint32]{{Owner: "a"}}, map[string]uint32{"a": 12}, "a had 12, which is no longer one of the numbers; it gets "},
		"kept":                     {[]Claim[uint32]{{Owner: "a"}, {Owner: "b", Want: 5, Has: true}}, map[string]uint32{"a": 4, "b": 6}, ""},
		"reserved by a past owner": {[]Claim[uint32]{{Owner: "a"}}, map[string]uint32{"gone": 4, "a": 5}, ""},
	} {
		var diags diag.List
		r := Allocate(pool, c.claims, c.previous, true, &diags)
		text := ""
		for _, d := range diags.All() {
			if d.Severity != diag.Warning {
				t.Errorf("%s: %v", name, d)
			}
			text += d.Message
		}
		if c.want == "" && text != "" || !strings.HasPrefix(text, c.want) || len(r.Values) != len(c.claims) {
			t.Errorf("%s: %q, values %v", name, text, r.Values)
		}
		for owner, v := range r.Values {
			for other, w := range r.Values {
				if owner != other && v == w {
					t.Errorf("%s: %s and %s both have %d", name, owner, other, v)
				}
			}
		}
	}
}

// TestSeveralRanges: a pool joins ranges, in their order, and gives the lowest free values.
func TestSeveralRanges(t *testing.T) {
	var parts []Pool[netip.Addr]
	for _, p := range []string{"10.0.0.0/30", "10.9.0.4/31", "10.8.0.1/32"} {
		parts = append(parts, Addresses("loopbacks", netip.MustParsePrefix(p), netip.Prefix{}, netip.Addr{}))
	}
	pool := Join("loopbacks", parts...)
	pool.Order = Lowest
	claims := []Claim[netip.Addr]{
		{Owner: "a"}, {Owner: "b", Want: netip.MustParseAddr("10.0.0.1"), Has: true}, {Owner: "c"}, {Owner: "d"}, {Owner: "e"},
	}
	got := map[string]string{}
	for owner, a := range allocate(t, pool, claims, nil, false).Values {
		got[owner] = a.String()
	}
	want := map[string]string{"a": "10.0.0.2", "b": "10.0.0.1", "c": "10.9.0.4", "d": "10.9.0.5", "e": "10.8.0.1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := pool.Available(); n != 5 {
		t.Errorf("%d values are available, want 5", n)
	}
	var diags diag.List
	Allocate(pool, []Claim[netip.Addr]{{Owner: "a", Want: netip.MustParseAddr("10.0.1.1"), Has: true}}, nil, false, &diags)
	if got, want := diags.All()[0].Message, "10.0.1.1 is not one of the loopbacks (10.0.0.0 to 10.0.0.3, 10.9.0.4 to 10.9.0.5, 10.8.0.1 to 10.8.0.1)"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPrefixes(t *testing.T) {
	pool := Prefixes("links", netip.MustParsePrefix("10.1.0.0/29"), 31)
	if pool.Size != 4 || pool.At(3).String() != "10.1.0.6/31" {
		t.Errorf("%d prefixes, the last %s", pool.Size, pool.At(3))
	}
	for text, want := range map[string]int{"10.1.0.2/31": 1, "10.1.0.3/31": -1, "10.1.0.2/30": -1, "10.1.0.8/31": -1, "10.0.0.0/31": -1} {
		if i, ok := pool.Index(netip.MustParsePrefix(text)); ok != (want >= 0) || ok && i != uint64(want) {
			t.Errorf("%s is number %d, %v; want %d", text, i, ok, want)
		}
	}
	v6 := Prefixes("links", netip.MustParsePrefix("2001:db8::/64"), 127)
	if p := v6.At(2); p.String() != "2001:db8::4/127" {
		t.Errorf("IPv6 prefix %s", p)
	}
}

// TestReclaim: what the pool says of values without an owner counts more than the run's rule.
func TestReclaim(t *testing.T) {
	pool := Numbers("n", 1, 9)
	for reclaim, want := range map[Reclaim][2]int{ReclaimDefault: {1, 0}, Retain: {1, 1}, Recycle: {0, 0}} {
		pool.Reclaim = reclaim
		for i, retain := range []bool{true, false} {
			if r := allocate(t, pool, names(1), map[string]uint32{"gone": 5}, retain); len(r.Released) != want[i] {
				t.Errorf("reclaim %q, retain %v: %v are kept, want %d", reclaim, retain, r.Released, want[i])
			}
		}
	}
}

// TestLedger: values go in and out as text, and the ledger knows how much a pool can give.
func TestLedger(t *testing.T) {
	l := &Ledger{Before: map[string]map[string]string{"p": {"a": "10.1.0.4/31", "gone": "10.1.0.2/31", "bad": "text"}}}
	pool := Prefixes("links", netip.MustParsePrefix("10.1.0.0/29"), 31)
	pool.Order = Lowest
	var diags diag.List
	got := Take(l, "p", pool, []Claim[netip.Prefix]{{Owner: "a"}, {Owner: "b"}, {Owner: "c"}}, PrefixForm, &diags)
	if got["a"].String() != "10.1.0.4/31" || len(diags.All()) != 0 {
		t.Errorf("values %v, %v", got, diags.All())
	}
	want := Ledger{
		Pools:    map[string]map[string]string{"p": {"a": "10.1.0.4/31", "b": "10.1.0.0/31", "c": "10.1.0.6/31"}},
		Released: map[string]map[string]string{"p": {"gone": "10.1.0.2/31"}}, Sizes: map[string]uint64{"p": 4},
	}
	if diff := cmp.Diff(want, Ledger{Pools: l.Pools, Released: l.Released, Sizes: l.Sizes}); diff != "" {
		t.Error(diff)
	}
}
