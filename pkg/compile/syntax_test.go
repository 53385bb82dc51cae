package compile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseBindAndVolume(t *testing.T) {
	b, err := ParseBind("a/b:/c/../d:ro,z")
	if diff := cmp.Diff(Bind{"a/b", "/d", "ro,z"}, b); diff != "" || err != nil || !b.ReadOnly() {
		t.Errorf("%v %s", err, diff)
	}
	for in, want := range map[string]Volume{
		"/data":                 {"", "/data", false},
		"v:/data":               {"v", "/data", false},
		"v:/data:ro,nocopy":     {"v", "/data", true},
		"v:/data:volume-nocopy": {"v", "/data", false},
	} {
		if got, err := ParseVolume(in); got != want || err != nil {
			t.Errorf("ParseVolume(%q) = %+v, %v", in, got, err)
		}
	}
}

func FuzzParseBind(f *testing.F) {
	for _, seed := range []string{"a:/b", "a:/b:ro", "/b", "", ":", "a:b", "a:/b:c:d", "a:/../.."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if b, err := ParseBind(text); err == nil && (b.Source == "" || !strings.HasPrefix(b.Target, "/") || strings.Contains(b.Target, "/../")) {
			t.Errorf("ParseBind(%q) = %+v", text, b)
		}
		if v, err := ParseVolume(text); err == nil && (!strings.HasPrefix(v.Target, "/") || strings.HasPrefix(v.Name, "/")) {
			t.Errorf("ParseVolume(%q) = %+v", text, v)
		}
	})
}

func FuzzMapName(f *testing.F) {
	for _, seed := range []string{"R1", "", "-", "1", strings.Repeat("a-", 60), "ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := MapName(text, maxNodeID)
		ok := got != "" && len(got) <= maxNodeID && got[0] >= 'a' && got[0] <= 'z' && got[len(got)-1] != '-' && got == strings.ToLower(got)
		for _, r := range got {
			ok = ok && (r == '-' || (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9'))
		}
		if !ok || MapName(got, maxNodeID) != got {
			t.Errorf("MapName(%q) = %q", text, got)
		}
	})
}

func TestPathStaysInFolder(t *testing.T) {
	for _, tt := range []struct {
		name, target string
		want         bool
	}{{"a", "b", true}, {"d/a", "../b", true}, {"a", "../b", false}, {"d/a", "../../b", false}, {"a", "/etc/passwd", false}, {"d/a", "..", true}} {
		if got := staysInside(tt.name, tt.target); got != tt.want {
			t.Errorf("staysInside(%q, %q) = %v", tt.name, tt.target, got)
		}
	}
}
