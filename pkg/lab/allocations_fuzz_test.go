package lab

import "testing"

// Whatever a cluster's ConfigMaps or a folder's files say, it is joined or rejected.
func FuzzJoinAllocations(f *testing.F) {
	f.Add([]byte(`{"version":"c9s.dev/allocations/v1","pools":{"wire":{"a:eth1 b:eth1":"7"}}}`), []byte(`{"version":"c9s.dev/allocations/v1","released":{"mac":{"x":"y"}}}`))
	f.Add([]byte(`{}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		joined, err := JoinAllocations(a, b)
		if err == nil && joined.Version != AllocationsVersion {
			t.Errorf("joined: %+v", joined)
		}
		if _, err := JoinAllocations(b, a); err == nil {
			if _, again := JoinAllocations(a, b); again != nil {
				t.Errorf("in one order: %v", again)
			}
		}
	})
}
