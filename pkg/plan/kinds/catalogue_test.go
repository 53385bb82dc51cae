package kinds

import "testing"

func TestBuiltinHasAllNames(t *testing.T) {
	c := Builtin()
	if got := len(c.All()); got != 63 {
		t.Errorf("%d kinds, want 63", got)
	}
	if got := len(c.Names()); got != 99 {
		t.Errorf("%d names, want 99", got)
	}
	for _, name := range []string{"srl", "CEOS", "nokia_srlinux", "vr-sros"} {
		if _, ok := c.Lookup(name); !ok {
			t.Errorf("%s not found", name)
		}
	}
	if _, ok := c.Lookup("_vrnetlab"); ok {
		t.Error("_vrnetlab is abstract")
	}
}

func BenchmarkLoad(b *testing.B) {
	files := builtinData()
	for b.Loop() {
		load(nil, files, "")
	}
}
