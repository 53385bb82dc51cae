package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// TestWithoutKept: only what is kept for the owner goes.
func TestWithoutKept(t *testing.T) {
	const text = `{"version": "c9s.dev/allocations/v1", "pools": {"mac": {"r1": "a"}},
		"released": {"mac": {"r1": "b", "r2": "c"}, "index": {"r1": "7"}}}`
	freed, without, err := withoutKept(text, "r1")
	if err != nil || freed != 2 {
		t.Fatalf("%d values, %v", freed, err)
	}
	got, err := lab.JoinAllocations([]byte(without))
	if err != nil {
		t.Fatal(err)
	}
	want := lab.Allocations{Version: lab.AllocationsVersion, Pools: map[string]map[string]string{"mac": {"r1": "a"}}, Released: map[string]map[string]string{"mac": {"r2": "c"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, _, err := withoutKept("{}", "r1"); err == nil {
		t.Error("allocations without a version are accepted")
	}
}
