package save

import (
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

func TestDiff(t *testing.T) {
	frr, _ := kinds.Builtin().Lookup("frr")
	srl, _ := kinds.Builtin().Lookup("nokia_srlinux")
	iol, _ := kinds.Builtin().Lookup("cisco_iol")
	bsd, _ := kinds.Builtin().Lookup("openbsd")
	for _, tt := range []struct {
		name string
		rule *kinds.Save
		a, b string
		want string
	}{
		{"the same", frr.Save, "hostname R1\n", "hostname R1\n", ""},
		{"only the form", frr.Save, "hostname R1\n!\ninterface eth1\n ip address 10.0.0.1/30\n", "frr version 10.2.1\nfrr defaults traditional\nhostname R1  \r\n!\ninterface eth1\r\n ip address 10.0.0.1/30\nexit\n!\nend\n", ""},
		{"the order of blocks", frr.Save, "interface eth1\n ip ospf area 0\ninterface eth2\n", "interface eth2\ninterface eth1\n ip ospf area 0\n", ""},
		{"a line", frr.Save, "hostname R1\ninterface eth1\n ip ospf area 0\n", "hostname R1\ninterface eth1\n ip ospf area 1\n",
			"--- saved/R1\n+++ running/R1\n@@ -1,3 +1,3 @@\n hostname R1\n interface eth1\n- ip ospf area 0\n+ ip ospf area 1\n"},
		{"a salt", iol.Save, "username a secret 9 $9$Vr3x$abc\n", "! Last configuration change at 20:00\nusername a secret 9 $9$Qm2p$xyz\n", ""},
		{"the order of JSON", srl.Save, `{"b": 1, "a": {"hash": "$y$abc$def"}}`, `{"a":{"hash":"$y$ghi$jkl"},"b":1}`, ""},
		{"a value of JSON", srl.Save, `{"a": 1}`, `{"a":2}`, "--- saved/R1\n+++ running/R1\n@@ -1,3 +1,3 @@\n {\n-  \"a\": 1\n+  \"a\": 2\n }\n"},
		{"archives", bsd.Save, "\x1f\x8b1", "\x1f\x8b2", "Binary files saved/R1 and running/R1 differ\n"},
		{"the same archives", bsd.Save, "\x1f\x8b1\r\n", "\x1f\x8b1\r\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Diff(tt.rule, "saved/R1", []byte(tt.a), "running/R1", []byte(tt.b))
			if err != nil || got != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
