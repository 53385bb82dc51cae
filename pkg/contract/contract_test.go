package contract

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestServiceName(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, id := range []string{"r1", long[:58], long[:59], long} {
		if name := CertificateSecret(id); len(name) > 63 || !strings.HasSuffix(name, "-tls") {
			t.Errorf("%s", name)
		}
	}
	if CertificateSecret(long) == CertificateSecret(long[:62]) {
		t.Error("two nodes have one name")
	}
}

func TestMode(t *testing.T) {
	data, err := json.Marshal(Entry{Path: "a", Mode: 0o4755})
	if err != nil || !strings.Contains(string(data), `"mode":"4755"`) {
		t.Fatalf("%s %v", data, err)
	}
	var e Entry
	if err := json.Unmarshal(data, &e); err != nil || e.Mode != 0o4755 {
		t.Errorf("%o %v", e.Mode, err)
	}
	if err := json.Unmarshal([]byte(`{"mode":"9"}`), &e); err == nil {
		t.Error("9 is octal")
	}
}
