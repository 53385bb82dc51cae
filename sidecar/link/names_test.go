package link

import (
	"strings"
	"testing"
)

func TestLinuxName(t *testing.T) {
	for name, kept := range map[string]bool{
		"eth1": true, "e1-1": true, "123456789012345": true, "1234567890123456": false,
		"a b": false, "1/1/c1": false, "a:b": false, "..": false, "": false, "x\ty": false,
	} {
		got := LinuxName("r1", name)
		if kept != (got == name) || !Legal(got) || strings.HasPrefix(got, Prefix) {
			t.Errorf("LinuxName(%q) = %q", name, got)
		}
	}
	if LinuxName("r1", "a b") == LinuxName("r2", "a b") {
		t.Error("two nodes of a Pod would have one name")
	}
}

func TestAltName(t *testing.T) {
	for in, want := range map[string]string{"ethernet-1/1": "ethernet-1-1", "Gi 0/0": "Gi-0-0", strings.Repeat("x", 200): strings.Repeat("x", maxAltName)} {
		if got := AltName(in); got != want {
			t.Errorf("AltName(%q) = %q, want %q", in, got, want)
		}
	}
}

// A leg's mark fits an ifalias, and two interfaces never have the same.
func TestKeyString(t *testing.T) {
	long := strings.Repeat("n", 250)
	a, b := Key{long, "eth1"}.String(), Key{long, "eth2"}.String()
	if a == b || len(a) > maxAlias || !strings.HasPrefix(a, aliasPrefix) {
		t.Errorf("%q, %q", a, b)
	}
	if got := (Key{"r1", "eth1"}).String(); got != "c9s:r1:eth1" {
		t.Errorf("%q", got)
	}
}
